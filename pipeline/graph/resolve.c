/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph/private.h"

#include <stdio.h>

/* The extensions that components name by their IDs. */

/* key: that of the component, which has the ID as its value. */
static void *refuse(struct graph *g, const char *key, const char *id, const char *text)
{
	g->missing.key = key;
	snprintf(g->missing.id, sizeof g->missing.id, "%s", id);
	error_set(&g->missing.err, ERROR_CONFIG, "%s", text);
	return NULL;
}

static struct authenticator *refuse_authenticator(struct graph *g, const char *id,
						  const char *reason)
{
	struct error why;
	error_set(&why, ERROR_CONFIG, "failed to resolve authenticator \"%s\": %s", id, reason);
	return refuse(g, "authenticator", id, why.text);
}

static struct authenticator *find_authenticator(void *context, const char *id)
{
	struct graph *g = context;
	const struct instance *i = graph_find(g, COMPONENT_EXTENSION, id);
	if (!i)
		return refuse_authenticator(g, id, "authenticator not found");
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
	struct error why;
	error_set(&why, ERROR_CONFIG, "failed to resolve \"%s\": %s", id, reason);
	return refuse(g, "storage", id, why.text);
}

struct storage *graph_storage(struct graph *g, const struct delivery_config *config)
{
	const char *id = config->sending_queue.storage;
	if (!delivery_config_is_durable(config))
		return NULL;
	const struct instance *i = graph_find(g, COMPONENT_EXTENSION, id);
	if (!i)
		return refuse_storage(g, id, "extension not found in service::extensions");
	if (!i->declared->factory->extension->storage)
		return refuse_storage(g, id, "requested extension is not a storage extension");
	return i->declared->factory->extension->storage(i->self);
}

bool graph_resolved(struct graph *g, const struct declared *declared, struct error *err)
{
	char path[PATH_TEXT];
	struct missing *m = &g->missing;
	if (m->err.kind == ERROR_NONE)
		return true;
	snprintf(path, sizeof path, "%s", declared->path);
	const struct node *at = node_find(declared->node, m->key, m->id, path);
	node_error(at ? at : declared->node, path, err, "%s", m->err.text);
	error_clear(&m->err);
	return false;
}

void graph_walk(const struct graph *g, void (*visit)(void *context, const struct config_spot *spot),
		void *context)
{
	const struct inventory *inventory = &g->inventory;
	for (size_t i = 0; i < inventory->count; i++) {
		const struct declared *d = &inventory->at[i];
		if (inventory_uses(inventory, d))
			config_walk(d->factory->config, d->config, d->node, d->path, visit,
				    context);
	}
	config_walk(&service_table, &inventory->service, node_get(inventory->root, "service"),
		    "service", visit, context);
}
