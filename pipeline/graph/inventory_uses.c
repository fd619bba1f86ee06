/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph/inventory_private.h"

#include "base/memory.h"
#include "base/path.h"
#include "pipeline/delivery/delivery.h"

#include <string.h>

/* Which components are used, and what only one of them may have. */

bool inventory_uses(const struct inventory *inventory, const struct declared *d)
{
	const struct config_items *pipelines = &inventory->service.pipelines;
	const struct pipeline_config *p = pipelines->at;
	enum component_kind kind = d->factory->kind;
	bool used =
		kind == COMPONENT_EXTENSION && config_lists(&inventory->service.extensions, d->id);
	for (size_t i = 0; i < pipelines->count && !used; i++)
		used = (kind == COMPONENT_EXPORTER && config_lists(&p[i].exporters, d->id)) ||
		       (kind == COMPONENT_RECEIVER && config_lists(&p[i].receivers, d->id)) ||
		       (kind == COMPONENT_PROCESSOR && config_lists(&p[i].processors, d->id));
	return used;
}

/* What only this exporter may write to: where it exports to, and its dead letters. */
enum { PATHS = 2 };

static const char *named_path(const struct declared *d, size_t which)
{
	const struct exporter_ops *ops = d->factory->exporter;
	if (which)
		return inventory_delivery(d)->dead_letter.directory;
	return ops->owned_path ? ops->owned_path(d->config) : NULL;
}

/* Normalised; NULL: there is none, or no pipeline uses the exporter. */
static char *owned_path(const struct inventory *inventory, const struct declared *d, size_t which)
{
	if (!d->factory->exporter || !inventory_uses(inventory, d))
		return NULL;
	const char *path = named_path(d, which);
	return path && *path && !path_is_device(path) ? path_normal(path) : NULL;
}

struct search {
	const void *wanted;
	const struct node *found;
};

static void look(void *context, const struct config_spot *spot)
{
	struct search *search = context;
	bool text = spot->row->type == CONFIG_STRING;
	if ((text ? *(void *const *)spot->member : spot->member) == search->wanted)
		search->found = spot->node;
}

const struct node *declared_place(const struct declared *d, const void *value)
{
	struct search search = { value, NULL };
	config_walk(d->factory->config, d->config, d->node, d->path, look, &search);
	return search.found ? search.found : d->node;
}

/* The first exporter before that one with the same path; NULL: there is none. */
static const struct declared *other_owner(const struct inventory *inventory, char **paths, size_t i)
{
	size_t k = 0;
	while (k < i && (!paths[k] || !paths[i] || strcmp(paths[k], paths[i]) != 0))
		k++;
	return k < i ? &inventory->at[k / PATHS] : NULL;
}

void inventory_check_paths(const struct inventory *inventory, struct problems *problems)
{
	size_t count = inventory->count * PATHS;
	char **paths = memory_array(count, sizeof *paths);
	for (size_t i = 0; i < count; i++) {
		const struct declared *d = &inventory->at[i / PATHS];
		paths[i] = owned_path(inventory, d, i % PATHS);
		const struct declared *other = other_owner(inventory, paths, i);
		struct error why;
		if (!other)
			continue;
		node_error(declared_place(d, named_path(d, i % PATHS)), d->path, &why,
			   "writes to the same place as %s; each exporter needs its own",
			   other->path);
		problems_add(problems, &why);
	}
	for (size_t i = 0; i < count; i++)
		memory_free(paths[i]);
	memory_free(paths);
}

void inventory_walk(const struct inventory *inventory,
		    void (*visit)(void *context, const struct config_spot *spot), void *context)
{
	for (size_t i = 0; i < inventory->count; i++) {
		const struct declared *d = &inventory->at[i];
		if (inventory_uses(inventory, d))
			config_walk(d->factory->config, d->config, d->node, d->path, visit,
				    context);
	}
	config_walk(&service_table, &inventory->service, node_get(inventory->root, "service"),
		    "service", visit, context);
}
