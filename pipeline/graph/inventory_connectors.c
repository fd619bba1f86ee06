/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph/inventory.h"

#include "base/memory.h"

#include <string.h>

/* The rules of connectors, and their words, are the Collector's (service/internal/graph), where it
 * has them. */
#define BUILD "failed to build pipelines"

static const struct pipeline_config *pipeline_at(const struct inventory *inventory, size_t i)
{
	return (const struct pipeline_config *)inventory->service.pipelines.at + i;
}

static size_t pipeline_count(const struct inventory *inventory)
{
	return inventory->service.pipelines.count;
}

static const struct node *place_of(const struct inventory *inventory, size_t pipeline)
{
	const struct node *service = node_get(inventory->root, "service");
	return node_get(service, "pipelines")->children[pipeline];
}

bool inventory_leads_to(const struct inventory *inventory, const struct declared *connector,
			size_t pipeline)
{
	return config_lists(&pipeline_at(inventory, pipeline)->receivers, connector->id);
}

static bool comes_from(const struct inventory *inventory, const struct declared *connector,
		       size_t pipeline)
{
	return config_lists(&pipeline_at(inventory, pipeline)->exporters, connector->id);
}

/* The pipelines that have the connector on one side; empty: none. */
static void list_users(const struct inventory *inventory, const struct declared *d,
		       bool (*uses)(const struct inventory *inventory, const struct declared *d,
				    size_t pipeline),
		       struct bytes *out, const struct node **first)
{
	for (size_t i = 0; i < pipeline_count(inventory); i++) {
		if (!uses(inventory, d, i))
			continue;
		if (!out->len)
			*first = place_of(inventory, i);
		bytes_format(out, "%s%s", out->len ? " " : "",
			     node_shown_key(place_of(inventory, i)));
	}
}

/* One that no pipeline names is checked but not built, as any component. */
static void check_sides(const struct inventory *inventory, const struct declared *d,
			struct problems *problems)
{
	struct bytes before, behind;
	struct error why;
	const struct node *at = d->node;
	bytes_init(&before, 4096);
	bytes_init(&behind, 4096);
	list_users(inventory, d, comes_from, &before, &at);
	list_users(inventory, d, inventory_leads_to, &behind, &at);
	bool ok = !before.len == !behind.len;
	const struct bytes *users = before.len ? &before : &behind;
	if (!ok) {
		node_error(at, BUILD, &why,
			   "connector \"%s\" used as %s in [%.*s] pipeline but not used in any "
			   "supported %s pipeline",
			   node_shown_key(d->node), before.len ? "exporter" : "receiver",
			   (int)users->len, (const char *)users->at,
			   before.len ? "receiver" : "exporter");
		problems_add(problems, &why);
	}
	bytes_fini(&before);
	bytes_fini(&behind);
}

static bool leads_to(const struct inventory *inventory, const struct declared *d, const char *name)
{
	size_t k = 0;
	while (k < pipeline_count(inventory) &&
	       strcmp(inventory->service.pipelines.names[k], name) != 0)
		k++;
	return k < pipeline_count(inventory) && inventory_leads_to(inventory, d, k);
}

static void check_route(const struct inventory *inventory, const struct declared *d,
			const struct strings *names, struct problems *problems)
{
	const struct node *list = declared_place(d, names);
	for (size_t i = 0; i < names->count; i++) {
		bool listed = list->kind == NODE_LIST && i < list->count;
		const struct node *at = listed ? list->children[i] : list;
		struct error why;
		if (leads_to(inventory, d, names->at[i]) || problems_has(problems, at))
			continue;
		node_error(at, d->path, &why,
			   "a route names a pipeline that does not exist, or that does not have "
			   "this connector among its receivers (name %zu of the route)",
			   i + 1);
		problems_add_at(problems, at, &why);
	}
}

static void check_routes(const struct inventory *inventory, const struct declared *d,
			 struct problems *problems)
{
	const struct strings *names;
	for (uint32_t i = 0; (names = d->factory->connector->route(d->config, i)); i++)
		check_route(inventory, d, names, problems);
}

/* ---- cycles */

/* The pipelines from the first one to the one that is visited, and the connectors between them. */
struct walk {
	const struct inventory *inventory;
	size_t *pipelines;
	const struct declared **connectors; /* [i] leads to pipelines[i + 1] */
	bool *done;
	size_t depth;
};

static void put_connector(struct bytes *out, const struct declared *d)
{
	bytes_format(out, "connector \"%s\" (profiles to profiles)", node_shown_key(d->node));
}

static void put_processors(const struct walk *w, struct bytes *out, size_t pipeline)
{
	const struct strings *list = &pipeline_at(w->inventory, pipeline)->processors;
	for (size_t i = 0; i < list->count; i++) {
		const struct declared *d =
			inventory_find(w->inventory, COMPONENT_PROCESSOR, list->at[i]);
		if (!d)
			continue;
		bytes_format(out, " -> processor \"%s\" in pipeline \"%s\"",
			     node_shown_key(d->node),
			     node_shown_key(place_of(w->inventory, pipeline)));
	}
}

static bool report_cycle(const struct walk *w, size_t first, struct error *err)
{
	struct bytes text;
	bytes_init(&text, 4096);
	put_connector(&text, w->connectors[w->depth - 1]);
	for (size_t i = first; i < w->depth; i++) {
		put_processors(w, &text, w->pipelines[i]);
		bytes_add_text(&text, " -> ");
		put_connector(&text, w->connectors[i]);
	}
	node_error(place_of(w->inventory, w->pipelines[first]), BUILD, err, "cycle detected: %.*s",
		   (int)text.len, (const char *)text.at);
	bytes_fini(&text);
	return false;
}

static bool visit(struct walk *w, size_t pipeline, struct error *err);

static bool follow(struct walk *w, const struct declared *connector, size_t to, struct error *err)
{
	w->connectors[w->depth - 1] = connector;
	for (size_t i = 0; i < w->depth; i++)
		if (w->pipelines[i] == to)
			return report_cycle(w, i, err);
	return visit(w, to, err);
}

static bool visit(struct walk *w, size_t pipeline, struct error *err)
{
	const struct strings *exporters = &pipeline_at(w->inventory, pipeline)->exporters;
	if (w->done[pipeline])
		return true;
	w->pipelines[w->depth++] = pipeline;
	for (size_t i = 0; i < exporters->count; i++) {
		const struct declared *d =
			inventory_find(w->inventory, COMPONENT_CONNECTOR, exporters->at[i]);
		for (size_t k = 0; d && k < pipeline_count(w->inventory); k++)
			if (inventory_leads_to(w->inventory, d, k) && !follow(w, d, k, err))
				return false;
	}
	w->depth--;
	w->done[pipeline] = true;
	return true;
}

static bool check_cycles(const struct inventory *inventory, struct error *err)
{
	size_t count = pipeline_count(inventory);
	struct walk w = { .inventory = inventory,
			  .pipelines = memory_array(count, sizeof *w.pipelines),
			  .connectors = memory_array(count, sizeof *w.connectors),
			  .done = memory_array(count, sizeof *w.done) };
	bool ok = true;
	for (size_t i = 0; i < count && ok; i++)
		ok = visit(&w, i, err);
	memory_free(w.pipelines);
	memory_free(w.connectors);
	memory_free(w.done);
	return ok;
}

bool inventory_check_cycles(const struct inventory *inventory, struct problems *problems)
{
	struct error why;
	return check_cycles(inventory, &why) || problems_add(problems, &why);
}

void inventory_check_connectors(const struct inventory *inventory, struct problems *problems)
{
	for (size_t i = 0; i < inventory->count; i++) {
		const struct declared *d = &inventory->at[i];
		if (d->factory->kind != COMPONENT_CONNECTOR)
			continue;
		check_sides(inventory, d, problems);
		check_routes(inventory, d, problems);
	}
}
