/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/pipeline.h"

#include "base/memory.h"

#include <assert.h>
#include <string.h>

/* The route for an exporter: exporters that use the pipeline's batch share the first such route. */
static struct route *find_route(struct pipeline *path, const struct batch_settings *own,
				const struct sample_types_config *selection)
{
	bool alone = own->on || selection;
	for (uint32_t i = 0; i < path->route_count && !alone; i++)
		if (!path->routes[i].own)
			return &path->routes[i];
	struct route *route = &path->routes[path->route_count++];
	*route = (struct route){ .path = path,
				 .own = alone,
				 .selection = selection,
				 .settings = own->on ? *own : path->settings.batch };
	return route;
}

static bool has_destination(const struct pipeline *path, const struct delivery *delivery)
{
	for (uint32_t i = 0; i < path->route_count; i++)
		for (uint32_t k = 0; k < path->routes[i].delivery_count; k++)
			if (path->routes[i].deliveries[k] == delivery)
				return true;
	return false;
}

static bool is_kept(const struct strings *keys, const char *key)
{
	for (size_t i = 0; i < keys->count; i++)
		if (!strcasecmp(keys->at[i], key))
			return true;
	return false;
}

/* The route's batches keep this metadata too. */
static void keep_metadata(struct route *route, const char *key)
{
	struct strings *keys = &route->settings.metadata_keys;
	if (is_kept(keys, key))
		return;
	char **more = memory_array(keys->count + 1, sizeof *more);
	if (keys->count)
		memcpy(more, keys->at, keys->count * sizeof *more);
	more[keys->count] = (char *)key;
	memory_free(route->keys);
	route->keys = more;
	*keys = (struct strings){ more, keys->count + 1 };
}

/* The row of the pipeline follows the route without batches of an exporter, if there is one. */
static void choose_leader(struct pipeline *path)
{
	struct route *leader = &path->routes[0];
	for (uint32_t i = 0; i < path->route_count; i++) {
		path->routes[i].leads = false;
		if (leader->own && !path->routes[i].own)
			leader = &path->routes[i];
	}
	leader->leads = true;
}

void pipeline_add_destination(struct pipeline *path, struct delivery *delivery, bool required,
			      const struct batch_settings *own,
			      const struct sample_types_config *selection,
			      const char *const *context_keys)
{
	if (has_destination(path, delivery))
		return;
	struct route *route = find_route(path, own, selection);
	size_t size = (route->delivery_count + 1) * sizeof *route->deliveries;
	route->deliveries = memory_resize(route->deliveries, size);
	route->deliveries[route->delivery_count++] = delivery;
	assert(!required || route->required_count + 1 == route->delivery_count);
	route->required_count += required;
	route->waits = route->waits || delivery_waits(delivery);
	for (; context_keys && *context_keys; context_keys++)
		keep_metadata(route, *context_keys);
	if (route->own)
		route->row = delivery_book(delivery, path->id, NULL)->row;
	choose_leader(path);
}
