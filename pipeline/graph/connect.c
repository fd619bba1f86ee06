/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph/private.h"

#include "base/memory.h"

static const struct pipeline_config *config_of(const struct graph *g, uint32_t pipeline)
{
	return (const struct pipeline_config *)g->inventory.service.pipelines.at + pipeline;
}

/* The pipelines of one route, each once; no names: all that are behind the connector. */
static struct connection_route build_route(struct graph *g, const struct declared *d,
					   const struct strings *names)
{
	struct connection_route route = { .paths = memory_array(g->pipeline_count,
								sizeof(struct pipeline *)) };
	for (uint32_t i = 0; i < g->pipeline_count; i++)
		if (inventory_leads_to(&g->inventory, d, i) &&
		    (!names->count || config_lists(names, g->paths[i].id)))
			route.paths[route.count++] = &g->paths[i];
	return route;
}

static void build_connection(struct graph *g, struct pipeline *path,
			     const struct instance *instance)
{
	const struct declared *d = instance->declared;
	const struct connector_ops *ops = d->factory->connector;
	const struct strings *names;
	struct connection *c = &path->connections[path->connection_count++];
	*c = (struct connection){
		.ops = ops,
		.self = instance->self,
		.row = ledger_destination(path->ledger, path->id, d->id),
		.leads = !path->route_count && path->connection_count == 1,
	};
	while ((names = ops->route(d->config, c->route_count))) {
		size_t size = (c->route_count + 1) * sizeof *c->routes;
		c->routes = memory_resize(c->routes, size);
		c->routes[c->route_count++] = build_route(g, d, names);
	}
}

/* All pipelines share one instance. */
static struct instance *instance_of(struct graph *g, const struct declared *d, struct error *err)
{
	struct instance *instance = graph_find(g, COMPONENT_CONNECTOR, d->id);
	return instance ? instance : graph_add(g, d, NULL, err);
}

static bool is_connected(const struct pipeline *path, const struct instance *instance)
{
	for (uint32_t i = 0; i < path->connection_count; i++)
		if (path->connections[i].self == instance->self)
			return true;
	return false;
}

static bool connect(struct graph *g, uint32_t pipeline, struct error *err)
{
	const struct strings *exporters = &config_of(g, pipeline)->exporters;
	struct pipeline *path = &g->paths[pipeline];
	path->connections = memory_array(exporters->count, sizeof *path->connections);
	for (size_t i = 0; i < exporters->count; i++) {
		const struct declared *d =
			inventory_find(&g->inventory, COMPONENT_CONNECTOR, exporters->at[i]);
		struct instance *instance = d ? instance_of(g, d, err) : NULL;
		if (d && !instance)
			return false;
		if (d && !is_connected(path, instance))
			build_connection(g, path, instance);
	}
	return true;
}

bool connect_pipelines(struct graph *g, struct error *err)
{
	for (uint32_t i = 0; i < g->pipeline_count; i++)
		if (!connect(g, i, err))
			return false;
	return true;
}
