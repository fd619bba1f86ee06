/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph/ways.h"

#include "base/memory.h"
#include "pipeline/graph/private.h"

/* One pipeline of a way, and how the way leads to it. */
struct step {
	const struct pipeline *path;
	const struct connection *by; /* NULL: by a receiver */
	uint32_t route;
};

struct way {
	const struct graph *graph;
	struct step *steps;
	uint32_t count;
};

/* ---- finding them */

/* A way as far as it is known. The graph has no cycles, so no way has more steps than pipelines. */
struct walk {
	struct ways *ways;
	struct way way;
};

static void add_way(struct walk *w)
{
	struct ways *ways = w->ways;
	size_t size = w->way.count * sizeof *w->way.steps;
	ways->at = memory_resize(ways->at, (ways->count + 1) * sizeof *ways->at);
	struct way *way = &ways->at[ways->count++];
	*way = w->way;
	way->steps = memory_new(size);
	memcpy(way->steps, w->way.steps, size);
}

static void visit(struct walk *w, struct step step);

static void visit_connection(struct walk *w, const struct connection *c)
{
	for (uint32_t route = 0; route < c->route_count; route++)
		for (uint32_t i = 0; i < c->routes[route].count; i++)
			visit(w, (struct step){ c->routes[route].paths[i], c, route });
}

static void visit(struct walk *w, struct step step)
{
	const struct pipeline *path = step.path;
	if (w->ways->count == WAYS_MAX) {
		w->ways->more = true; /* each pipeline leads to exporters */
		return;
	}
	w->way.steps[w->way.count++] = step;
	if (path->route_count)
		add_way(w);
	for (uint32_t i = 0; i < path->connection_count; i++)
		visit_connection(w, &path->connections[i]);
	w->way.count--;
}

static bool has_receiver(const struct graph *g, uint32_t pipeline)
{
	const struct pipeline_config *config =
		(const struct pipeline_config *)g->inventory.service.pipelines.at + pipeline;
	for (size_t i = 0; i < config->receivers.count; i++)
		if (inventory_find(&g->inventory, COMPONENT_RECEIVER, config->receivers.at[i]))
			return true;
	return false;
}

void ways_init(struct ways *ways, const struct graph *g)
{
	struct walk walk = { .ways = ways, .way.graph = g };
	*ways = (struct ways){ 0 };
	walk.way.steps = memory_array(g->pipeline_count, sizeof *walk.way.steps);
	for (uint32_t i = 0; i < g->pipeline_count; i++)
		if (has_receiver(g, i))
			visit(&walk, (struct step){ &g->paths[i], NULL, 0 });
	memory_free(walk.way.steps);
}

void ways_fini(struct ways *ways)
{
	for (uint32_t i = 0; i < ways->count; i++)
		memory_free(ways->at[i].steps);
	memory_free(ways->at);
}

/* ---- using them */

static const char *id_of(const struct graph *g, const void *self)
{
	for (uint32_t i = 0; i < g->instance_count; i++)
		if (g->instances[i]->self == self)
			return g->instances[i]->declared->id;
	return "";
}

void ways_name(const struct ways *ways, uint32_t number, struct bytes *out)
{
	const struct way *way = &ways->at[number];
	for (uint32_t i = 0; i < way->count; i++) {
		const struct step *step = &way->steps[i];
		if (step->by)
			bytes_format(out, " > %s > ", id_of(way->graph, step->by->self));
		bytes_add_text(out, step->path->id);
	}
}

static bool run_stage(const struct graph *g, const struct stage *stage, struct profiles *p,
		      struct error *err)
{
	const struct processor_ops *ops = stage->ops;
	void *scratch = ops->scratch_size ? memory_new(ops->scratch_size) : NULL;
	if (p->audit)
		p->audit->processor = id_of(g, stage->self);
	bool ok = !ops->process || ops->process(stage->self, scratch, p, err);
	if (scratch && ops->scratch_fini)
		ops->scratch_fini(stage->self, scratch);
	memory_free(scratch);
	return ok;
}

bool ways_run(const struct ways *ways, uint32_t number, struct profiles *p, struct error *err)
{
	const struct way *way = &ways->at[number];
	for (uint32_t i = 0; i < way->count; i++) {
		const struct step *step = &way->steps[i];
		if (step->by)
			connection_keep(step->by, p, step->route);
		for (uint32_t k = 0; k < step->path->stage_count; k++)
			if (!run_stage(way->graph, &step->path->stages[k], p, err))
				return false;
	}
	return true;
}
