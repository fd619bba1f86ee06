/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph/private.h"

static bool may_pass(const struct instance *instance)
{
	enum component_kind kind = instance_kind(instance);
	return instance->started && (kind == COMPONENT_RECEIVER || kind == COMPONENT_EXTENSION);
}

struct instance *succession_find(struct graph *g, const struct declared *declared,
				 struct authenticators authenticators)
{
	const struct graph *before = g->options.predecessor;
	struct instance *i =
		before ? graph_find(before, declared->factory->kind, declared->id) : NULL;
	return i && may_pass(i) && declared_same(i->declared, declared) &&
			       named_auths_same(&i->auths, authenticators)
		       ? i
		       : NULL;
}

static bool is_shared(const struct instance *instance)
{
	return !instance->exporter && instance->graphs > 1;
}

static void pass(struct graph *g, uint64_t owner)
{
	for (uint32_t i = 0; i < g->instance_count; i++)
		if (is_shared(g->instances[i]))
			g->instances[i]->owner = owner;
}

void succession_own(struct graph *g)
{
	pass(g, g->options.number);
}

void succession_return(struct graph *g)
{
	const struct graph *before = g->options.predecessor;
	if (before)
		pass(g, before->options.number);
}

void graph_succeed(struct graph *g)
{
	kill_switch_apply(&g->kills);
	for (uint32_t i = 0; i < g->reception_count; i++)
		entrance_lead(g->receptions[i].receiver->entrance, g->receptions[i].gate);
	g->options.predecessor = NULL;
}

uint32_t graph_kept(const struct graph *g)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < g->instance_count; i++)
		kept += is_shared(g->instances[i]);
	return kept;
}

bool graph_fits_pool(const struct graph *g)
{
	const struct graph *before = g->options.predecessor;
	return !before || inventory_blocking_sends(&g->inventory) <=
				  inventory_blocking_sends(&before->inventory);
}

bool graph_fits_memory(const struct graph *g)
{
	const struct graph *before = g->options.predecessor;
	return !before ||
	       (g->memory_limit == before->memory_limit && g->memory_spike == before->memory_spike);
}
