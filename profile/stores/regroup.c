/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/stores/regroup.h"
#include "base/array.h"
#include "base/memory.h"
#include "profile/pprof/encode_pprof.h"
#include "profile/pprof/pprof_run.h"
#include "profile/stores/kinds.h"

#include <stdlib.h>

#define MS UINT64_C(1000000)
/*
 * Each pprof of a packet becomes a request with its own dictionary. Thousands of pprofs would
 * create more requests than splitting a packet is allowed to create. After the first ALONE_MAX,
 * pprofs therefore share requests by series. More than GROUPS_MAX series occur only by error or in
 * an attack.
 */
enum { GROUPS_MAX = 4096, ALONE_MAX = 256, LEVELS = 3 };

struct group {              /* a series */
	struct list labels; /* attributes, in indices */
	uint64_t key;       /* for slots */
};

struct run {                   /* one pprof */
	uint32_t group, scope; /* scope: the scope that it comes from */
	uint32_t first, count; /* in profiles */
	uint32_t order;        /* position in the packet */
	uint64_t time;
};

struct work {
	struct regroup *r;
	struct profiles *p;
	uint32_t cpu_time; /* the string PPROF_CPU_TIME */
	struct memo memo;  /* a set of labels; first: the group + 1 */
	uint32_t last;     /* the group of the last resource */
	ARRAY(struct group) groups;
	ARRAY(struct run) runs;
};

/* ---- names ---- */

/* Clients of the store choose the name of a profile by a word in the name of its type (backends of
 * Pyroscope's /ingest). As there, Go's lock profiles count as mutex profiles. */
static const struct name_rule {
	const char *word, *name;
	bool whole;
} name_rules[] = {
	{ "wall", "wall", true },        { "off_cpu", "off_cpu", true },
	{ "cpu", "process_cpu", false }, { "alloc_", "memory", false },
	{ "inuse_", "memory", false },   { "space", "memory", true },
	{ "objects", "memory", true },   { "mutex_", "mutex", false },
	{ "block_", "block", false },    { "contentions", "mutex", true },
	{ "delay", "mutex", true },      { "goroutine", "goroutines", false },
};

static bool fits(const struct name_rule *rule, struct view type)
{
	if (rule->whole)
		return view_is(type, rule->word);
	return type.len && memmem(type.at, type.len, rule->word, strlen(rule->word));
}

static const char *name_by_rule(struct view type)
{
	for (size_t i = 0; i < sizeof name_rules / sizeof *name_rules; i++)
		if (fits(&name_rules[i], type))
			return name_rules[i].name;
	return NULL;
}

static struct view type_of(const struct profiles *p, const struct pprof_run *run, uint32_t i)
{
	return string_view(p, run->profiles[run->place[i]].sample_type.type);
}

/* "samples" alone is ambiguous, so the period type is checked first. NULL: no name that clients of
 * the store know. */
static const char *known_name(const struct profiles *p, const struct pprof_run *run)
{
	const char *name = NULL;
	for (uint32_t i = 0; i < run->count; i++)
		if (view_is(type_of(p, run, i), "wall"))
			return "wall";
	for (uint32_t i = 0; i < run->count && !name; i++)
		name = name_by_rule(type_of(p, run, i));
	name = name ? name : name_by_rule(string_view(p, run->profiles->period_type.type));
	return name || !view_is(type_of(p, run, run->count - 1), "samples") ? name : "process_cpu";
}

/* The name that a client of the store gave its series, in the attributes of the resource; empty:
 * the sender is no such client. */
static struct view sent_name(const struct work *w, struct list resource)
{
	return series_sent_name(w->p, resource, w->r->series->rules->utf8);
}

static struct view name_of(const struct work *w, const struct pprof_run *run, struct list resource)
{
	struct view given = sent_name(w, resource);
	const char *name = known_name(w->p, run);
	if (given.len)
		return given;
	if (name)
		return view_of(name);
	uint32_t plain = series_plain_name(w->r->series, type_of(w->p, run, run->count - 1));
	return plain ? string_view(w->p, plain) : view_of(KINDS_UNKNOWN);
}

/* ---- corrections of data that the store would reject ---- */

/* Removes ":", which separates the strings of a type: with additional ones, the store's list of
 * types fails for all users. Also removes "-" where the store rejects it. */
static uint32_t corrected(struct work *w, uint32_t string, bool dashes)
{
	struct view text = string_view(w->p, string);
	uint8_t clean[KINDS_LONGEST];
	bool fit = true;
	if (text.len > sizeof clean)
		return series_text(w->r->series, view_of(KINDS_UNKNOWN));
	for (size_t i = 0; i < text.len; i++) {
		bool bad = text.at[i] == ':' || (text.at[i] == '-' && !dashes);
		clean[i] = bad ? '_' : text.at[i];
		fit = fit && !bad;
	}
	return fit ? string : series_text(w->r->series, (struct view){ clean, text.len });
}

static void correct_kind(struct work *w, struct value_kind *kind, bool dashes)
{
	kind->type = corrected(w, kind->type, dashes);
	kind->unit = corrected(w, kind->unit, true);
}

static void correct_types(struct work *w)
{
	struct profiles *p = w->p;
	for (uint32_t i = 0; i < p->profiles.count; i++) {
		struct profile *f = &p->profiles.at[i];
		if (!string_view(p, f->sample_type.type).len)
			f->sample_type.type = series_text(w->r->series, view_of(KINDS_UNKNOWN));
		correct_kind(w, &f->sample_type, false);
		correct_kind(w, &f->period_type, true);
		f->has_sample_type = 1;
		f->time = f->time ? f->time : w->r->now;
	}
}

/* Sets one period type for all Profiles of a run: with different ones they would not remain one
 * run. If a client of the store sent none, it is empty, so that the type has the same name as after
 * a direct write. */
static void mend_period_types(struct work *w, const struct pprof_run *run, bool client)
{
	const struct profile *first = run->profiles;
	struct profile *f = &w->p->profiles.at[first - w->p->profiles.at];
	bool named = first->has_period_type && string_view(w->p, first->period_type.type).len;
	struct value_kind kind = named || client ? first->period_type : first->sample_type;
	for (uint32_t i = 0; i < run->count; i++) {
		f[i].period_type = kind;
		f[i].has_period_type = 1;
	}
}

/* Clients of the store never send CPU sample counts alone: they also send the CPU time. */
static void mark_cpu_time(struct work *w, const struct pprof_run *run)
{
	struct profiles *p = w->p;
	struct profile *f = &p->profiles.at[run->profiles - p->profiles.at];
	struct attribute mark = { .key = w->cpu_time, .type = VALUE_BOOL, .boolean = 1 };
	if (run->count != 1 || !string_is(p, f->sample_type.type, "samples") ||
	    !string_is(p, f->period_type.type, "cpu"))
		return;
	struct list marked = profiles_list_copy(p, f->attributes, 1);
	if (p->over_cap)
		return;
	p->indices.at[marked.first + marked.count++] = profiles_attribute_new(p, mark);
	f->attributes = marked;
}

/* The frames next to the leaf are kept: samples are attributed to them. */
static void cut_stacks(struct work *w)
{
	uint32_t max = w->r->stack_max;
	for (uint32_t i = 0; i < w->p->stacks.count && max; i++) {
		struct stack *stack = &w->p->stacks.at[i];
		if (stack->locations.count <= max)
			continue;
		stack->locations.count = max;
		stack->changed = 1;
		w->r->stacks_cut++;
	}
}

/* ---- labels ---- */

static void set_service(struct work *w, const struct list *levels, size_t count)
{
	static const char *const keys[] = { "service.name", "service_name" };
	struct view service = { 0 };
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < count && !service.len; i++)
			service = series_text_in(w->p, levels[i], keys[k]);
	struct view executable = series_text_in(w->p, levels[0], "process.executable.name");
	if (service.len || executable.len > UINT16_MAX) /* longer than any label */
		executable.len = 0;
	char *unknown = memory_format("unknown_service%s%.*s", executable.len ? ":" : "",
				      (int)executable.len, (const char *)executable.at);
	series_put(w->r->series, "service_name", service.len ? service : view_of(unknown));
	memory_free(unknown);
}

/* Computed from the strings, because they are the same in every packet, regardless of the order. */
static uint64_t key_of(const struct profiles *p, const struct label *labels, uint32_t count)
{
	uint64_t key = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct view name = string_view(p, labels[i].name),
			    value = string_view(p, labels[i].value);
		uint64_t pair[2] = { hash_bytes(name.at, name.len),
				     hash_bytes(value.at, value.len) };
		key += hash_bytes(pair, sizeof pair);
	}
	return key;
}

/* The group with these labels. A new one is created only up to a maximum number. UINT32_MAX: there
 * is no group. */
static uint32_t group_of(struct work *w, uint32_t max)
{
	struct series_labels *s = w->r->series;
	struct memo_entry *entry = memo_enter(&w->memo, 0, s->labels, s->count * sizeof *s->labels);
	if (!entry) {
		w->p->over_cap = true;
		return 0;
	}
	if (!entry->first && w->groups.count >= max)
		return UINT32_MAX;
	if (!entry->first) {
		array_push(&w->groups) =
			(struct group){ series_attributes(s), key_of(w->p, s->labels, s->count) };
		entry->first = w->groups.count;
	}
	return entry->first - 1;
}

static void clean_samples(struct work *w, const struct pprof_run *run)
{
	struct profile *f = &w->p->profiles.at[run->profiles - w->p->profiles.at];
	for (uint32_t i = 0; i < run->count; i++)
		for (uint32_t k = 0; k < f[i].samples.count; k++)
			if (series_clean_sample(w->r->series,
						&w->p->samples.at[f[i].samples.first + k]))
				f[i].changed = 1;
}

/* Do the values cover their own time only? The sender's label __delta__ says so with "false": the
 * store shall not compute differences. */
static bool is_delta(const struct work *w, struct list resource)
{
	struct view given = series_text_in(w->p, resource, "__delta__");
	return given.len ? view_is(given, "false") : !w->r->cumulative;
}

static uint32_t labelled_group(struct work *w, const struct pprof_run *run,
			       const struct list *levels)
{
	struct series_labels *s = w->r->series;
	series_begin(s);
	series_put(s, "__name__", name_of(w, run, levels[0]));
	set_service(w, levels, LEVELS);
	if (is_delta(w, levels[0]))
		series_put(s, "__delta__", view_of("false"));
	for (size_t i = 0; i < LEVELS; i++)
		series_take(s, levels[i]);
	series_end(s);
	return group_of(w, GROUPS_MAX);
}

/* As in every store of series, too many series become one overflow series. */
static uint32_t overflow_group(struct work *w, const struct pprof_run *run,
			       const struct list *levels)
{
	struct series_labels *s = w->r->series;
	const char *name = known_name(w->p, run);
	series_begin(s);
	series_put(s, "__name__", view_of(name ? name : KINDS_UNKNOWN));
	series_put(s, "service_name", view_of("overflow"));
	if (!w->r->cumulative)
		series_put(s, "__delta__", view_of("false"));
	for (size_t i = 0; i < LEVELS; i++)
		s->lost[SERIES_TOO_MANY] += levels[i].count;
	series_end(s);
	return group_of(w, UINT32_MAX);
}

static void take_run(struct work *w, const struct resource *resource, uint32_t scope,
		     const struct pprof_run *run)
{
	const struct list levels[LEVELS] = { resource->attributes,
					     w->p->scopes.at[scope].attributes,
					     run->profiles->attributes };
	bool client = sent_name(w, resource->attributes).len != 0;
	mend_period_types(w, run, client);
	uint32_t group = labelled_group(w, run, levels);
	if (group == UINT32_MAX)
		group = overflow_group(w, run, levels);
	array_push(&w->runs) = (struct run){
		group,      scope,         (uint32_t)(run->profiles - w->p->profiles.at),
		run->count, w->runs.count, run->profiles->time
	};
	clean_samples(w, run);
	if (!client)
		mark_cpu_time(w, run);
}

static void take_scope(struct work *w, const struct resource *resource, uint32_t scope)
{
	const struct scope *from = &w->p->scopes.at[scope];
	struct list order = pprof_run_hints(w->p, from).order;
	struct pprof_run run;
	for (uint32_t i = 0; i < from->profiles.count; i += run.count) {
		pprof_run_find(w->p, from, order, i, &run);
		take_run(w, resource, scope, &run);
	}
}

/* ---- one resource for each pprof ---- */

static int by_group_and_time(const void *left, const void *right)
{
	const struct run *a = left, *b = right;
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

static bool same_kind(const struct profiles *p, struct value_kind a, struct value_kind b)
{
	return view_equal(string_view(p, a.type), string_view(p, b.type)) &&
	       view_equal(string_view(p, a.unit), string_view(p, b.unit));
}

static bool can_merge(const struct profiles *p, const struct run *a, const struct run *b)
{
	if (a->group != b->group || a->time / MS != b->time / MS || a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++) {
		const struct profile *x = &p->profiles.at[a->first + i],
				     *y = &p->profiles.at[b->first + i];
		if (!same_kind(p, x->sample_type, y->sample_type) ||
		    !same_kind(p, x->period_type, y->period_type) || x->period != y->period)
			return false;
	}
	return true;
}

/* Appends the samples of the i-th Profile of each run, so that they are adjacent. */
static void join_profile(struct profiles *p, const struct run *runs, uint32_t count, uint32_t i)
{
	struct profile *into = &p->profiles.at[runs->first + i];
	struct list joined = { p->samples.count, 0 };
	for (uint32_t k = 0; k < count; k++) {
		const struct profile *f = &p->profiles.at[runs[k].first + i];
		uint64_t end = f->time + f->duration;
		if (!profiles_room(p, &p->samples, f->samples.count))
			return;
		memcpy(&p->samples.at[p->samples.count], &p->samples.at[f->samples.first],
		       f->samples.count * sizeof *p->samples.at);
		p->samples.count += f->samples.count;
		if (end > into->time + into->duration)
			into->duration = end - into->time;
	}
	joined.count = p->samples.count - joined.first;
	into->samples = joined;
	into->changed = 1;
}

/* Begins the request of one more pprof. */
static void open_request(struct work *w, const struct run *run)
{
	struct profiles *p = w->p;
	bool shared = p->resources.count >= ALONE_MAX && w->last == run->group;
	if (!profiles_room(p, &p->resources, 1) || !profiles_room(p, &p->scopes, 1))
		return;
	if (!shared)
		p->resources.at[p->resources.count++] =
			(struct resource){ .attributes = w->groups.at[run->group].labels,
					   .scopes = { p->scopes.count, 0 } };
	/* A scope records the original form of its pprof's types. Each pprof therefore has its own
	 * scope. */
	struct scope scope = p->scopes.at[run->scope];
	scope.profiles = (struct list){ p->profiles.count, 0 };
	p->scopes.at[p->scopes.count++] = scope;
	p->resources.at[p->resources.count - 1].scopes.count++;
	w->last = run->group;
}

/* Appends as many samples as one pprof may have, starting at `from`, from all Profiles of the run.
 * Returns where the next part begins. */
static uint32_t put_part(struct work *w, const struct run *run, uint32_t from)
{
	struct profiles *p = w->p;
	uint32_t left = p->profiles.at[run->first].samples.count - from, max = w->r->samples_max;
	uint32_t count = max && left > max ? max : left;
	uint64_t time = slots_take(w->r->slots, w->groups.at[run->group].key, run->time);
	w->r->moved += time != run->time;
	open_request(w, run);
	for (uint32_t i = 0; i < run->count && profiles_room(p, &p->profiles, 1); i++) {
		struct profile *part = &p->profiles.at[p->profiles.count++];
		*part = p->profiles.at[run->first + i];
		part->time = time;
		part->samples = (struct list){ part->samples.first + from, count };
		p->scopes.at[p->scopes.count - 1].profiles.count++;
	}
	return from + count;
}

/* Appends the runs that become one pprof; returns the number of runs. */
static uint32_t put_run(struct work *w, const struct run *runs, uint32_t left)
{
	struct profiles *p = w->p;
	uint32_t count = 1;
	while (count < left && can_merge(p, runs, runs + count))
		count++;
	for (uint32_t i = 0; i < runs->count && count > 1; i++)
		join_profile(p, runs, count, i);
	w->r->merged += count - 1;
	uint32_t samples = p->profiles.at[runs->first].samples.count, at = 0;
	do
		at = put_part(w, runs, at);
	while (at < samples && !p->over_cap);
	return count;
}

static void put_runs(struct work *w)
{
	w->p->resources.count = 0;
	for (uint32_t i = 0; i < w->runs.count && !w->p->over_cap;)
		i += put_run(w, &w->runs.at[i], w->runs.count - i);
}

bool regroup_by_series(struct regroup *r, struct profiles *p, struct error *err)
{
	struct work w = { .r = r, .p = p, .memo.max_bytes = PROFILES_INPUT_MAX };
	series_open(r->series, p);
	w.cpu_time = series_text(r->series, view_of(PPROF_CPU_TIME));
	correct_types(&w);
	cut_stacks(&w);
	for (uint32_t i = 0; i < p->resources.count && !p->over_cap; i++)
		for (uint32_t k = 0; k < p->resources.at[i].scopes.count; k++)
			take_scope(&w, &p->resources.at[i], p->resources.at[i].scopes.first + k);
	if (w.runs.count)
		qsort(w.runs.at, w.runs.count, sizeof *w.runs.at, by_group_and_time);
	put_runs(&w);
	memo_fini(&w.memo);
	memory_free(w.groups.at);
	memory_free(w.runs.at);
	return !p->over_cap || profiles_over_cap(p, err);
}

/* The labels are still in the form in which they were created: each is a string. */
uint64_t regroup_key(const struct profiles *p)
{
	struct list attributes =
		p->resources.count ? p->resources.at->attributes : (struct list){ 0 };
	struct label labels[SERIES_LABELS_MAX];
	uint32_t count =
		attributes.count < SERIES_LABELS_MAX ? attributes.count : SERIES_LABELS_MAX;
	for (uint32_t i = 0; i < count; i++) {
		const struct attribute *a = &p->attributes.at[p->indices.at[attributes.first + i]];
		labels[i] = (struct label){ a->key, a->type == VALUE_STRING ? a->string : 0 };
	}
	return key_of(p, labels, count);
}
