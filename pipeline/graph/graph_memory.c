/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph/private.h"

/* The lowest limit of all pipelines applies to the whole program, because there is only one
 * heap. */
void graph_settle_memory(struct graph *g)
{
	struct path_settings settled = { .memory_check_interval = { 1000000000 } };
	for (uint32_t i = 0; i < g->pipeline_count; i++) {
		const struct path_settings *s = &g->paths[i].settings;
		if (s->memory_limit &&
		    (!settled.memory_limit || s->memory_limit < settled.memory_limit))
			settled = *s;
	}
	if (!settled.memory_limit) {
		settled.memory_limit = (uint64_t)budget_ceiling();
		settled.memory_spike = settled.memory_limit / 5;
	}
	g->check_interval_ns = (uint64_t)settled.memory_check_interval.ns;
	g->memory_limit = (int64_t)settled.memory_limit;
	g->memory_spike = (int64_t)settled.memory_spike;
	if (g->budget->limit)
		return;
	budget_init(g->budget, (int64_t)settled.memory_limit, (int64_t)settled.memory_spike);
	budget_tune(g->budget);
}

/* Each destination gets the same share, regardless of what the others use: a destination that fails
 * later also needs its share. */
void graph_share_memory(struct graph *g)
{
	int64_t share = exporters_share(g->options.exporters, g->options.workers);
	for (uint32_t i = 0; i < g->pipeline_count; i++)
		for (uint32_t k = 0; k < g->paths[i].route_count; k++)
			batcher_bound(g->paths[i].routes[k].batcher,
				      (size_t)budget_batch_max(g->budget, share));
}

void graph_check_memory(void *argument)
{
	struct graph *g = argument;
	bool sheds = g->budget->shedding;
	budget_check(g->budget);
	if (g->budget->shedding && !sheds)
		log_warn(&g->log,
			 "Memory is short. Best-effort destinations and senders give way.");
	else if (sheds && !g->budget->shedding)
		log_info(&g->log, "Memory is no longer short.");
	graph_share_memory(g); /* the number of exporters changes when another graph ends */
	loop_timer_start(g->check, g->check_interval_ns);
}
