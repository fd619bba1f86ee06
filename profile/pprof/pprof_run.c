/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/pprof/pprof_run.h"
#include "base/memory.h"

#include <string.h>

static bool same_list(const struct profiles *p, struct list a, struct list b)
{
	return a.count == b.count && (!a.count || a.first == b.first ||
				      memcmp(&p->indices.at[a.first], &p->indices.at[b.first],
					     a.count * sizeof *p->indices.at) == 0);
}

static bool same_kind(const struct profiles *p, struct value_kind a, struct value_kind b)
{
	return view_equal(string_view(p, a.type), string_view(p, b.type)) &&
	       view_equal(string_view(p, a.unit), string_view(p, b.unit));
}

static bool goes_with(const struct profiles *p, const struct profile *a, const struct profile *b)
{
	if (a->time != b->time || a->duration != b->duration || a->period != b->period ||
	    a->has_period_type != b->has_period_type ||
	    !same_kind(p, a->period_type, b->period_type) ||
	    !same_list(p, a->attributes, b->attributes) || a->samples.count != b->samples.count)
		return false;
	for (uint32_t i = 0; i < a->samples.count; i++) {
		const struct sample *x = &p->samples.at[a->samples.first + i];
		const struct sample *y = &p->samples.at[b->samples.first + i];
		if (x->stack != y->stack || x->link != y->link ||
		    !same_list(p, x->attributes, y->attributes))
			return false;
	}
	return true;
}

static bool repeats_type(const struct profiles *p, const struct pprof_run *run)
{
	for (uint32_t i = 0; i < run->count; i++)
		if (same_kind(p, run->profiles[i].sample_type,
			      run->profiles[run->count].sample_type))
			return true;
	return false;
}

struct pprof_run_hints pprof_run_hints(const struct profiles *p, const struct scope *scope)
{
	struct pprof_run_hints hints = { 0 };
	for (uint32_t i = 0; i < scope->attributes.count; i++) {
		uint32_t index = p->indices.at[scope->attributes.first + i];
		const struct attribute *a = &p->attributes.at[index];
		enum pprof_key key = pprof_key_of(string_view(p, a->key));
		if (key == PPROF_KEY_DEFAULT_SAMPLE_TYPE && a->type == VALUE_STRING)
			hints.default_type = a->string;
		else if (key == PPROF_KEY_SAMPLE_TYPE_ORDER && a->type == VALUE_ARRAY &&
			 a->children.count <= PPROF_TYPES_MAX)
			hints.order = a->children;
	}
	return hints;
}

/* The order says where each Profile's type stood; it is used if it is a permutation of the run.
 */
static void settle_order(const struct profiles *p, struct pprof_run *run, struct list order)
{
	bool taken[PPROF_TYPES_MAX] = { false };
	bool good = order.count == run->count;
	for (uint32_t i = 0; i < order.count && good; i++) {
		const struct attribute *a = &p->attributes.at[order.first + i];
		uint64_t place = a->type == VALUE_INT ? (uint64_t)attribute_integer(a) : UINT64_MAX;
		good = place < run->count && !taken[place];
		if (good) {
			taken[place] = true;
			run->place[place] = (uint16_t)i;
		}
	}
	for (uint32_t i = 0; i < run->count && !good; i++)
		run->place[i] = (uint16_t)i;
}

void pprof_run_find(const struct profiles *p, const struct scope *scope, struct list order,
		    uint32_t start, struct pprof_run *run)
{
	struct list profiles = scope->profiles;
	uint32_t max = order.count ? order.count : PPROF_TYPES_MAX;
	run->profiles = &p->profiles.at[profiles.first + start];
	for (run->count = 1; run->count < max && start + run->count < profiles.count; run->count++)
		if (!goes_with(p, run->profiles, run->profiles + run->count) ||
		    (!order.count && repeats_type(p, run)))
			break;
	settle_order(p, run, order);
}

static void number_runs(const struct profiles *p, const struct scope *scope, uint32_t *runs)
{
	struct list order = pprof_run_hints(p, scope).order;
	struct pprof_run run;
	for (uint32_t i = 0; i < scope->profiles.count; i += run.count) {
		uint32_t first = scope->profiles.first + i;
		pprof_run_find(p, scope, order, i, &run);
		for (uint32_t k = 0; k < run.count; k++)
			runs[first + k] = first;
	}
}

uint32_t *pprof_runs(const struct profiles *p)
{
	uint32_t *runs = memory_array(p->profiles.count, sizeof *runs);
	for (uint32_t i = 0; i < p->scopes.count; i++)
		number_runs(p, &p->scopes.at[i], runs);
	return runs;
}
