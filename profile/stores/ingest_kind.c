/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/stores/ingest_kind.h"
#include "profile/pprof/pprof_run.h"

static const struct {
	const char *type, *name;
} known[] = {
	{ "samples", "cpu" },
	{ "goroutine", "goroutines" },
	{ "contentions", "mutex_count" },
	{ "delay", "mutex_duration" },
};

/* In this order for each type; the first type that fits decides. */
static const struct rule {
	const char *word, *name;
	bool whole;
} rules[] = {
	{ "cpu", "process_cpu", false }, { "alloc_", "memory", false },
	{ "inuse_", "memory", false },   { "space", "memory", true },
	{ "objects", "memory", true },   { "mutex_", "mutex", false },
	{ "block_", "block", false },    { "goroutines", "goroutines", false },
};

static struct view display_of(const struct ingest_displays *displays, struct view type)
{
	for (uint32_t i = 0; i < displays->count; i++)
		if (view_equal(displays->at[i].type, type))
			return displays->at[i].name.len ? displays->at[i].name : type;
	for (size_t i = 0; i < sizeof known / sizeof *known && !displays->given; i++)
		if (view_is(type, known[i].type))
			return view_of(known[i].name);
	return type;
}

static bool fits(const struct rule *rule, struct view type)
{
	if (rule->whole)
		return view_is(type, rule->word);
	return type.len && memmem(type.at, type.len, rule->word, strlen(rule->word));
}

static const char *name_by_rule(struct view type)
{
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if (fits(&rules[i], type))
			return rules[i].name;
	return NULL;
}

static struct view type_of(const struct profiles *p, const struct pprof_run *run, uint32_t i)
{
	return string_view(p, run->profiles[run->place[i]].sample_type.type);
}

struct view ingest_kind_name(const struct profiles *p, const struct scope *scope,
			     const struct ingest_displays *displays)
{
	struct pprof_run run;
	struct view last = { 0 };
	const char *name = NULL;
	if (!scope->profiles.count)
		return last;
	pprof_run_find(p, scope, pprof_run_hints(p, scope).order, 0, &run);
	for (uint32_t i = 0; i < run.count; i++)
		if (view_is(type_of(p, &run, i), "wall"))
			return view_of("wall");
	for (uint32_t i = 0; i < run.count && !name; i++) {
		last = display_of(displays, type_of(p, &run, i));
		name = name_by_rule(last);
	}
	return name ? view_of(name) : last;
}
