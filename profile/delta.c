/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/delta.h"

#include "base/hash.h"
#include "base/memory.h"
#include "profile/wire.h"

#include <assert.h>
#include <stdlib.h>

enum { SUMS_MAX = 16, STEP = 256 };

/* A row is a key and the sums of one sample; rows are sorted by key and have at least one sum. */
struct delta {
	uint64_t time, types; /* types: hash of the names of the sums */
	uint32_t width, count, room;
	uint64_t cells[]; /* count * (1 + width) */
};

struct row {
	uint64_t key;
	uint32_t sample; /* its position in each Profile */
};

/* One pass over the tables. The arrays hold a hash for each entry of a table. */
struct pass {
	struct profiles *p;
	uint64_t *strings, *functions, *locations, *attributes, *stacks;
	uint64_t *hashes; /* the memory of all of them */
	struct row *rows;
	uint32_t samples;
	uint32_t sums[SUMS_MAX], width; /* the Profiles with sums */
	struct error *err;
};

static uint64_t mix(uint64_t a, uint64_t b)
{
	const uint64_t both[2] = { a, b };
	return hash_bytes(both, sizeof both);
}

static void hash_names(struct pass *s)
{
	const struct profiles *p = s->p;
	for (uint32_t i = 0; i < p->strings.count; i++) {
		struct view text = string_view(p, i);
		s->strings[i] = hash_bytes(text.at, text.len);
	}
	for (uint32_t i = 0; i < p->functions.count; i++) {
		const struct function *f = &p->functions.at[i];
		s->functions[i] = mix(mix(s->strings[f->name], s->strings[f->system_name]),
				      s->strings[f->filename]);
	}
}

static void hash_frames(struct pass *s)
{
	const struct profiles *p = s->p;
	for (uint32_t i = 0; i < p->locations.count; i++) {
		const struct location *l = &p->locations.at[i];
		s->locations[i] = mix(l->address, l->lines.count);
		for (uint32_t k = 0; k < l->lines.count; k++) {
			const struct line *line = &p->lines.at[l->lines.first + k];
			s->locations[i] = mix(mix(s->locations[i], s->functions[line->function]),
					      mix((uint64_t)line->line, (uint64_t)line->column));
		}
	}
	for (uint32_t i = 0; i < p->stacks.count; i++) {
		struct list frames = p->stacks.at[i].locations;
		s->stacks[i] = frames.count;
		for (uint32_t k = 0; k < frames.count; k++)
			s->stacks[i] =
				mix(s->stacks[i], s->locations[p->indices.at[frames.first + k]]);
	}
}

/* Depth is bounded by VALUE_DEPTH_MAX; each child belongs to one list. */
static uint64_t hash_value(const struct pass *s, const struct attribute *a)
{
	const struct profiles *p = s->p;
	uint64_t hash = mix(s->strings[a->key], mix(s->strings[a->unit], a->type));
	struct view bytes;
	switch (a->type) {
	case VALUE_STRING:
		return mix(hash, s->strings[a->string]);
	case VALUE_BYTES:
		bytes = span_view(p, a->bytes);
		return mix(hash, hash_bytes(bytes.at, bytes.len));
	case VALUE_ARRAY:
	case VALUE_KVLIST:
		for (uint32_t i = 0; i < a->children.count; i++)
			hash = mix(hash, hash_value(s, &p->attributes.at[a->children.first + i]));
		return hash;
	case VALUE_BOOL:
		return mix(hash, a->boolean);
	default:
		return mix(hash, (uint64_t)attribute_integer(a));
	}
}

static void hash_attributes(struct pass *s)
{
	for (uint32_t i = 0; i < s->p->attributes.count; i++)
		s->attributes[i] = hash_value(s, &s->p->attributes.at[i]);
}

/* The order of the attributes does not matter. */
static uint64_t key_of(const struct pass *s, const struct sample *sample)
{
	const struct profiles *p = s->p;
	const struct link *link = &p->links.at[sample->link];
	uint64_t labels = 0;
	for (uint32_t i = 0; i < sample->attributes.count; i++)
		labels += s->attributes[p->indices.at[sample->attributes.first + i]];
	uint64_t key = mix(s->stacks[sample->stack], labels);
	if (sample->link)
		key = mix(key, mix(hash_bytes(link->trace_id, sizeof link->trace_id),
				   hash_bytes(link->span_id, sizeof link->span_id)));
	return key;
}

static struct sample *sample_at(const struct pass *s, uint32_t profile, uint32_t i)
{
	return &s->p->samples.at[s->p->profiles.at[profile].samples.first + i];
}

static int64_t value_of(const struct pass *s, uint32_t profile, uint32_t i)
{
	struct wire w = wire_of(span_view(s->p, sample_at(s, profile, i)->values));
	return (int64_t)wire_varint(&w);
}

static void set_value(struct pass *s, uint32_t profile, uint32_t i, int64_t value)
{
	uint8_t varint[16];
	size_t len = (size_t)(wire_put_varint(varint, (uint64_t)value) - varint);
	sample_at(s, profile, i)->values = profiles_bytes_new(s->p, varint, len);
}

/* ---- reading ---- */

static bool is_sum(const struct profiles *p, const struct profile *profile)
{
	static const char level[] = "inuse_";
	struct view type = string_view(p, profile->sample_type.type);
	return type.len < sizeof level - 1 || memcmp(type.at, level, sizeof level - 1) != 0;
}

static bool examine(struct pass *s)
{
	const struct profiles *p = s->p;
	for (uint32_t i = 0; i < p->profiles.count; i++) {
		const struct profile *profile = &p->profiles.at[i];
		if (i == 0)
			s->samples = profile->samples.count;
		if (profile->samples.count != s->samples)
			return error_set(s->err, ERROR_INVALID,
					 "delta: the Profiles have different samples");
		if (!is_sum(p, profile))
			continue;
		if (s->width == SUMS_MAX)
			return error_set(s->err, ERROR_INVALID, "delta: more than %d sample types",
					 SUMS_MAX);
		s->sums[s->width++] = i;
	}
	return true;
}

static bool make_arrays(struct pass *s)
{
	const struct profiles *p = s->p;
	size_t count = (size_t)p->strings.count + p->functions.count + p->locations.count +
		       p->attributes.count + p->stacks.count;
	size_t bytes = count * sizeof *s->hashes + s->samples * sizeof *s->rows;
	if (profiles_used(p) + bytes > p->table_bytes_max)
		return profiles_over_cap(p, s->err);
	s->hashes = memory_array(count, sizeof *s->hashes);
	s->strings = s->hashes;
	s->functions = s->strings + p->strings.count;
	s->locations = s->functions + p->functions.count;
	s->attributes = s->locations + p->locations.count;
	s->stacks = s->attributes + p->attributes.count;
	s->rows = memory_array(s->samples, sizeof *s->rows);
	return true;
}

static int by_key(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->sample < y->sample ? -1 : x->sample > y->sample;
}

static void make_rows(struct pass *s)
{
	hash_names(s);
	hash_frames(s);
	hash_attributes(s);
	for (uint32_t i = 0; i < s->samples; i++)
		s->rows[i] = (struct row){ key_of(s, sample_at(s, 0, i)), i };
	qsort(s->rows, s->samples, sizeof *s->rows, by_key);
}

static uint64_t types_of(const struct pass *s)
{
	uint64_t hash = s->width;
	for (uint32_t i = 0; i < s->width; i++) {
		const struct value_kind *kind = &s->p->profiles.at[s->sums[i]].sample_type;
		hash = mix(hash, mix(s->strings[kind->type], s->strings[kind->unit]));
	}
	return hash;
}

/* ---- the state ---- */

static size_t bytes_for(uint32_t rows, uint32_t width)
{
	return sizeof(struct delta) + (size_t)rows * (1 + width) * sizeof(uint64_t);
}

static const uint64_t *row_at(const struct delta *d, uint32_t i)
{
	return d->cells + (size_t)i * (1 + d->width);
}

/* The end of the rows from `i` on that have one key. */
static uint32_t end_of_key(const struct pass *s, uint32_t i)
{
	uint64_t key = s->rows[i].key;
	while (i < s->samples && s->rows[i].key == key)
		i++;
	return i;
}

static struct delta *append(struct delta *d, uint64_t key, const uint64_t *sums)
{
	uint64_t any = 0;
	for (uint32_t i = 0; i < d->width; i++)
		any |= sums[i];
	if (!any)
		return d;
	if (d->count == d->room) {
		d->room = d->room ? d->room * 2 : STEP;
		d = memory_resize(d, bytes_for(d->room, d->width));
	}
	uint64_t *row = d->cells + (size_t)d->count++ * (1 + d->width);
	*row = key;
	memcpy(row + 1, sums, d->width * sizeof *sums);
	return d;
}

static struct delta *read_state(const struct pass *s)
{
	struct delta *d = memory_new(bytes_for(0, s->width));
	d->width = s->width;
	d->types = types_of(s);
	d->time = s->p->profiles.count ? s->p->profiles.at[0].time : 0;
	for (uint32_t i = 0, end; i < s->samples; i = end) {
		uint64_t sums[SUMS_MAX] = { 0 };
		end = end_of_key(s, i);
		for (uint32_t k = i; k < end; k++)
			for (uint32_t t = 0; t < s->width; t++)
				sums[t] += (uint64_t)value_of(s, s->sums[t], s->rows[k].sample);
		d = append(d, s->rows[i].key, sums);
	}
	d->room = d->count;
	return memory_resize(d, bytes_for(d->count, d->width));
}

/* The rows of both states are sorted by key. */
static bool was_reset(const struct delta *before, const struct delta *now)
{
	if (before->types != now->types || before->time > now->time)
		return true;
	for (uint32_t b = 0, n = 0; b < before->count; b++) {
		const uint64_t *old = row_at(before, b), *new;
		while (n < now->count && *row_at(now, n) < *old)
			n++;
		if (n == now->count || *row_at(now, n) != *old)
			return true;
		new = row_at(now, n);
		for (uint32_t t = 1; t <= now->width; t++)
			if ((int64_t) new[t] < (int64_t)old[t])
				return true;
	}
	return false;
}

/* ---- the difference ---- */

/* Of samples with one key, the first gets the difference and the others nothing. */
static void write_key(struct pass *s, uint32_t first, uint32_t end, const uint64_t *new,
		      const uint64_t *old)
{
	for (uint32_t t = 0; t < s->width; t++) {
		uint64_t sum = (new ? new[1 + t] : 0) - (old ? old[1 + t] : 0);
		for (uint32_t i = first; i < end; i++)
			set_value(s, s->sums[t], s->rows[i].sample, i == first ? (int64_t)sum : 0);
	}
}

static const uint64_t *find_key(const struct delta *d, uint32_t *at, uint64_t key)
{
	while (*at < d->count && *row_at(d, *at) < key)
		++*at;
	return *at < d->count && *row_at(d, *at) == key ? row_at(d, *at) : NULL;
}

static void write_differences(struct pass *s, const struct delta *before, const struct delta *now)
{
	uint32_t old = 0, new = 0;
	for (uint32_t i = 0, end; i < s->samples; i = end) {
		uint64_t key = s->rows[i].key;
		end = end_of_key(s, i);
		write_key(s, i, end, find_key(now, &new, key), find_key(before, &old, key));
	}
}

static bool is_empty(const struct pass *s, uint32_t i)
{
	for (uint32_t k = 0; k < s->p->profiles.count; k++)
		if (value_of(s, k, i))
			return false;
	return true;
}

static void drop_empty(struct pass *s)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < s->samples; i++) {
		if (is_empty(s, i))
			continue;
		for (uint32_t k = 0; k < s->p->profiles.count; k++)
			*sample_at(s, k, kept) = *sample_at(s, k, i);
		kept++;
	}
	for (uint32_t k = 0; k < s->p->profiles.count; k++)
		s->p->profiles.at[k].samples.count = kept;
}

static void set_times(struct profiles *p, uint64_t before)
{
	for (uint32_t i = 0; i < p->profiles.count && before; i++) {
		struct profile *profile = &p->profiles.at[i];
		profile->duration = profile->time - before;
		profile->time = before;
	}
}

static bool apply(struct pass *s, const struct delta *before, struct delta *now,
		  enum delta_result *result)
{
	*result = !before ? DELTA_FIRST : was_reset(before, now) ? DELTA_RESET : DELTA_DIFFERENCE;
	if (*result != DELTA_DIFFERENCE)
		return true;
	write_differences(s, before, now);
	if (s->p->over_cap)
		return profiles_over_cap(s->p, s->err);
	drop_empty(s);
	if (!s->p->profiles.count || !s->p->profiles.at[0].samples.count)
		*result = DELTA_NOTHING;
	set_times(s->p, before->time);
	return true;
}

struct delta *delta_apply(struct profiles *p, const struct delta *before, enum delta_result *result,
			  struct error *err)
{
	struct pass s = { .p = p, .err = err };
	struct delta *now = NULL;
	if (examine(&s) && make_arrays(&s)) {
		make_rows(&s);
		now = read_state(&s);
		if (!apply(&s, before, now, result))
			delta_unref(&now);
	}
	memory_free(s.hashes);
	memory_free(s.rows);
	return now;
}

size_t delta_bytes(const struct delta *delta)
{
	return delta ? bytes_for(delta->count, delta->width) : 0;
}

void delta_unref(struct delta **slot)
{
	memory_free(*slot);
	*slot = NULL;
}
