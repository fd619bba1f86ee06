/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "profile/pprof/encode_pprof.h"
#include "profile/stores/kinds.h"
#include "profile/stores/write_raw.h"
#include "profile/wire.h"

#include <ctype.h>
#include <stdlib.h>

/* A Profile, or the samples of a Profile that have the same lifted attributes. */
struct row {
	struct profile profile;
	struct list lifted; /* a list in `indices` */
	uint32_t group; /* the group of rows with the same lifted attributes; 0: none are lifted */
};

struct member { /* a sample of a Profile that is being divided */
	uint32_t group, sample;
	struct list lifted;
};

struct prepare {
	struct profiles *p;
	const struct write_raw_rules *rules;
	uint64_t *lost;
	struct series_labels series;
	struct bytes name; /* scratch */
	uint8_t *lifts;    /* by attribute: is it lifted? NULL: no attribute is */
	/* of a scope, by the lifted attributes; first: group, second: where their list begins */
	struct memo groups;
	uint32_t group_count;
	struct row *rows; /* of a scope */
	uint32_t row_count, row_room;
	struct member *members; /* of a Profile */
	uint32_t member_room;
};

const char *write_raw_loss(int loss)
{
	return loss < SERIES_LOSSES ? series_losses[loss] : "sample_label";
}

/* ---- samples */

static void mark_lifted(struct prepare *w)
{
	const struct profiles *p = w->p;
	for (uint32_t i = 0; i < p->attributes.count; i++)
		for (const char *const *key = w->rules->lift; *key; key++)
			w->lifts[i] |= string_is(p, p->attributes.at[i].key, *key);
}

/* Appends the lifted attributes of a sample after the end of the indices. The caller may keep
 * them. */
static struct list find_lifted(struct prepare *w, const struct sample *sample)
{
	struct profiles *p = w->p;
	struct list found = { p->indices.count, 0 };
	if (!w->lifts || !profiles_room(p, &p->indices, sample->attributes.count))
		return found;
	for (uint32_t i = 0; i < sample->attributes.count; i++) {
		uint32_t attribute = p->indices.at[sample->attributes.first + i];
		if (w->lifts[attribute])
			p->indices.at[found.first + found.count++] = attribute;
	}
	return found;
}

static void find_group(struct prepare *w, struct member *member, struct list lifted)
{
	struct profiles *p = w->p;
	struct memo_entry *entry = memo_enter(&w->groups, 0, &p->indices.at[lifted.first],
					      lifted.count * sizeof *p->indices.at);
	if (!entry) {
		p->over_cap = true;
		return;
	}
	if (!entry->first) {
		entry->first = ++w->group_count;
		entry->second = lifted.first;
		p->indices.count += lifted.count;
	}
	member->group = entry->first;
	member->lifted = (struct list){ entry->second, lifted.count };
}

/* One value replaces several values or timestamps, so that samples that differ only in them can be
 * added up without overflow. */
static bool settle_value(struct profiles *p, struct sample *sample)
{
	uint8_t text[10];
	size_t len = (size_t)(wire_put_varint(text, encode_pprof_value(p, sample)) - text);
	if (!sample->timestamps.len &&
	    view_equal(span_view(p, sample->values), (struct view){ text, len }))
		return false;
	sample->values = profiles_bytes_new(p, text, len);
	sample->timestamps.len = 0;
	return true;
}

/* Removes attributes that Parca does not store. False: there were none. */
static bool strip(struct prepare *w, struct sample *sample, uint32_t lifted)
{
	uint32_t labels = sample->attributes.count + (sample->link ? 2 : 0);
	w->lost[WRITE_RAW_SAMPLE_LABEL] += labels - lifted;
	sample->attributes.count = sample->link = 0;
	return settle_value(w->p, sample) || labels;
}

/* ---- rows */

static void add_row(struct prepare *w, const struct profile *profile, const struct member *member)
{
	if (w->row_count == w->row_room) {
		w->row_room = w->row_room * 2 + 64;
		w->rows = memory_resize(w->rows, w->row_room * sizeof *w->rows);
	}
	w->rows[w->row_count++] = (struct row){ *profile, member->lifted, member->group };
}

static int by_group(const void *left, const void *right)
{
	const struct member *a = left, *b = right;
	return a->group == b->group ? (a->sample > b->sample) - (a->sample < b->sample)
				    : (a->group > b->group) - (a->group < b->group);
}

/* The samples that Parca can store, each with its group. */
static uint32_t find_members(struct prepare *w, const struct profile *profile)
{
	const struct profiles *p = w->p;
	uint32_t count = 0;
	if (profile->samples.count > w->member_room) {
		w->member_room = profile->samples.count;
		w->members = memory_resize(w->members, w->member_room * sizeof *w->members);
	}
	for (uint32_t i = 0; i < profile->samples.count && !p->over_cap; i++) {
		uint32_t sample = profile->samples.first + i;
		if ((int64_t)encode_pprof_value(p, &p->samples.at[sample]) < 0)
			continue;
		w->members[count] = (struct member){ .sample = sample };
		if (w->lifts)
			find_group(w, &w->members[count], find_lifted(w, &p->samples.at[sample]));
		count++;
	}
	if (w->lifts && count)
		qsort(w->members, count, sizeof *w->members, by_group);
	return count;
}

/* Creates a copy of the Profile for each group of its samples. */
static void part_profile(struct prepare *w, struct profile profile)
{
	struct profiles *p = w->p;
	uint32_t count = find_members(w, &profile);
	if (!profiles_room(p, &p->samples, count))
		return;
	if (!profile.time)
		profile.time = w->rules->arrival;
	for (uint32_t i = 0; i < count;) {
		const struct member *first = &w->members[i];
		profile.samples = (struct list){ p->samples.count, 0 };
		for (; i < count && w->members[i].group == first->group; i++) {
			struct sample *sample = &p->samples.at[p->samples.count++];
			*sample = p->samples.at[w->members[i].sample];
			profile.changed |= strip(w, sample, first->lifted.count);
			profile.samples.count++;
		}
		add_row(w, &profile, first);
	}
}

/* ---- series */

/* The names that Parca's scraper gives to the profiles that Go's runtime serves. */
static struct view name_of(const struct prepare *w, const struct profile *profile)
{
	static const struct {
		const char *type, *name;
	} names[] = {
		{ "cpu", "process_cpu" },      { "space", "memory" },
		{ "alloc_objects", "memory" }, { "alloc_space", "memory" },
		{ "inuse_objects", "memory" }, { "inuse_space", "memory" },
		{ "goroutines", "goroutine" }, { "contentions", "mutex" },
		{ "delay", "mutex" },
	};
	struct view type = string_view(w->p, profile->period_type.type);
	if (w->rules->name)
		return view_of(w->rules->name);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (view_is(type, names[i].type))
			return view_of(names[i].name);
	return type;
}

static bool same_labels(const struct prepare *w, const struct row *a, const struct row *b)
{
	struct list x = a->profile.attributes, y = b->profile.attributes;
	const uint32_t *indices = w->p->indices.at;
	return a->group == b->group && x.count == y.count &&
	       (!x.count ||
		!memcmp(indices + x.first, indices + y.first, x.count * sizeof *indices)) &&
	       view_equal(name_of(w, &a->profile), name_of(w, &b->profile));
}

/* A query cannot contain a name that begins with a digit. What the sender named takes precedence
 * over what is derived from the types. */
static void set_name(struct prepare *w, struct view sent, struct view derived)
{
	struct view name = sent.len && !w->rules->name ? sent : derived;
	w->name.len = 0;
	if (name.len && isdigit(name.at[0]))
		bytes_add_byte(&w->name, '_');
	bytes_add(&w->name, name.at, name.len);
	series_put(&w->series, "__name__", bytes_view(&w->name));
}

static struct list labels_of(struct prepare *w, struct list resource, struct list scope,
			     const struct row *row)
{
	struct series_labels *s = &w->series;
	series_begin(s);
	set_name(w, series_sent_name(w->p, resource, false), name_of(w, &row->profile));
	series_take(s, resource);
	series_take(s, scope);
	series_take(s, row->profile.attributes);
	series_take(s, row->lifted);
	series_end(s);
	return series_attributes(s);
}

/* Creates a resource for rows with the same labels. collect merges equal ones. */
static void add_series(struct prepare *w, struct list resource, struct scope scope,
		       const struct row *rows, uint32_t count)
{
	struct profiles *p = w->p;
	if (!profiles_room(p, &p->profiles, count) || !profiles_room(p, &p->scopes, 1) ||
	    !profiles_room(p, &p->resources, 1))
		return;
	const struct list labels = labels_of(w, resource, scope.attributes, rows);
	scope.profiles = (struct list){ p->profiles.count, count };
	for (uint32_t i = 0; i < count; i++)
		p->profiles.at[p->profiles.count++] = rows[i].profile;
	p->resources.at[p->resources.count++] = (struct resource){ .attributes = labels,
								   .scopes = { p->scopes.count, 1 },
								   .changed = 1 };
	p->scopes.at[p->scopes.count++] = scope;
}

static void part_scope(struct prepare *w, struct list resource, struct scope scope)
{
	w->row_count = w->group_count = 0;
	memo_fini(&w->groups);
	w->groups.max_bytes = PROFILES_INPUT_MAX;
	for (uint32_t i = 0; i < scope.profiles.count; i++)
		part_profile(w, w->p->profiles.at[scope.profiles.first + i]);
	for (uint32_t i = 0, end; i < w->row_count; i = end) {
		for (end = i + 1; end < w->row_count && same_labels(w, &w->rows[i], &w->rows[end]);)
			end++;
		add_series(w, resource, scope, &w->rows[i], end - i);
	}
}

/* The new resources are created after the old ones and then replace them. */
static void part_all(struct prepare *w)
{
	struct profiles *p = w->p;
	uint32_t old = p->resources.count;
	for (uint32_t i = 0; i < old; i++) {
		const struct resource resource = p->resources.at[i];
		for (uint32_t k = 0; k < resource.scopes.count; k++)
			part_scope(w, resource.attributes, p->scopes.at[resource.scopes.first + k]);
	}
	p->resources.count -= old;
	memmove(p->resources.at, p->resources.at + old,
		p->resources.count * sizeof *p->resources.at);
}

bool write_raw_prepare(struct profiles *p, const struct write_raw_rules *rules,
		       uint64_t lost[WRITE_RAW_LOSSES], struct error *err)
{
	struct prepare w = { .p = p, .rules = rules, .lost = lost };
	bytes_init(&w.name, PROFILES_INPUT_MAX);
	kinds_guard(p);
	series_init(&w.series, &rules->series);
	series_open(&w.series, p);
	if (rules->lift && *rules->lift) {
		w.lifts = memory_array(p->attributes.count, sizeof *w.lifts);
		mark_lifted(&w);
	}
	part_all(&w);
	for (int i = 0; i < SERIES_LOSSES; i++)
		lost[i] += w.series.lost[i];
	series_fini(&w.series);
	bytes_fini(&w.name);
	memo_fini(&w.groups);
	memory_free(w.lifts);
	memory_free(w.rows);
	memory_free(w.members);
	return !p->over_cap || profiles_over_cap(p, err);
}
