/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph/private.h"

#include <stdio.h>
#include <string.h>

/* The extensions that components name by their IDs. */

/* key: that of the component, which has the ID as its value. what: "" or a word before the ID. */
static void *refuse(struct graph *g, const char *key, const char *what, const char *id,
		    const char *reason)
{
	g->missing = (struct missing){ .key = key, .what = what, .reason = reason };
	snprintf(g->missing.id, sizeof g->missing.id, "%s", id);
	return NULL;
}

static struct authenticator *refuse_authenticator(struct graph *g, const char *id,
						  const char *reason)
{
	return refuse(g, "authenticator", "authenticator ", id, reason);
}

/* Is it listed, but has an error, which has been reported? */
static bool is_unsound(const struct graph *g, const char *id)
{
	const struct strings *list = &g->inventory.service.extensions;
	const struct declared *d = inventory_find(&g->inventory, COMPONENT_EXTENSION, id);
	return config_lists(list, id) && (!d || !d->sound);
}

static struct authenticator *find_authenticator(void *context, const char *id)
{
	struct graph *g = context;
	const struct instance *i = graph_find(g, COMPONENT_EXTENSION, id);
	if (is_unsound(g, id))
		return NULL;
	if (!i)
		return refuse_authenticator(g, id,
					    "authenticator not found in service::extensions");
	if (!i->declared->factory->extension->authenticator)
		return refuse_authenticator(g, id, "requested extension is not an authenticator");
	return authenticator_ref(i->declared->factory->extension->authenticator(i->self));
}

struct authenticators graph_authenticators(struct graph *g)
{
	return (struct authenticators){ g, find_authenticator };
}

static struct storage *refuse_storage(struct graph *g, const char *id, const char *reason)
{
	return refuse(g, "storage", "", id, reason);
}

static struct storage *find_storage(struct graph *g, const char *id)
{
	const struct instance *i = graph_find(g, COMPONENT_EXTENSION, id);
	if (is_unsound(g, id))
		return NULL;
	if (!i)
		return refuse_storage(g, id, "extension not found in service::extensions");
	if (!i->declared->factory->extension->storage)
		return refuse_storage(g, id, "requested extension is not a storage extension");
	return i->declared->factory->extension->storage(i->self);
}

struct storage *graph_storage(struct graph *g, const struct delivery_config *config)
{
	bool durable = delivery_config_is_durable(config);
	return durable ? find_storage(g, config->sending_queue.storage) : NULL;
}

bool graph_resolved(struct graph *g, const struct declared *declared, struct error *err)
{
	char path[PATH_TEXT];
	const struct missing m = g->missing;
	if (!m.reason)
		return true;
	snprintf(path, sizeof path, "%s", declared->path);
	const struct node *at = node_find(declared->node, m.key, m.id, path);
	node_error(at ? at : declared->node, path, err, "failed to resolve %s\"%s\": %s", m.what,
		   at ? node_shown(at) : m.id, m.reason);
	g->missing.reason = NULL;
	return false;
}

struct naming {
	struct graph *graph;
	const struct declared *declared;
	struct problems *problems;
};

/* Only looks for what the key names. */
static void resolve_key(struct graph *g, const struct config_spot *spot, const char *id)
{
	bool auth = spot->table == &auth_table || spot->table == &auth_server_table;
	if (auth && !strcmp(spot->row->key, "authenticator")) {
		struct authenticator *found = find_authenticator(g, id);
		authenticator_unref(&found);
	} else if (spot->table == &queue_table && !strcmp(spot->row->key, "storage")) {
		find_storage(g, id);
	}
}

static void visit_name(void *context, const struct config_spot *spot)
{
	const struct naming *naming = context;
	const char *id = spot->row->type == CONFIG_STRING ? *(char *const *)spot->member : NULL;
	struct error why;
	naming->graph->missing.reason = NULL;
	if (!id || problems_has(naming->problems, spot->node))
		return;
	resolve_key(naming->graph, spot, id);
	if (!graph_resolved(naming->graph, naming->declared, &why))
		problems_add(naming->problems, &why);
}

void graph_check_names(struct graph *g, struct problems *problems)
{
	for (size_t i = 0; i < g->inventory.count; i++) {
		const struct declared *d = &g->inventory.at[i];
		struct naming naming = { g, d, problems };
		if (!d->sound && inventory_uses(&g->inventory, d))
			config_walk(d->factory->config, d->config, d->node, d->path, visit_name,
				    &naming);
	}
}

const struct inventory *graph_inventory(const struct graph *g)
{
	return &g->inventory;
}

void graph_walk(const struct graph *g, void (*visit)(void *context, const struct config_spot *spot),
		void *context)
{
	inventory_walk(&g->inventory, visit, context);
}
