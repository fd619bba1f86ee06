/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/thin.h"

#include <assert.h>

#include "profile/pprof_keys.h"
#include "profile/wire.h"

static uint32_t value_count(const struct profiles *p, const struct sample *s)
{
	uint32_t count = 0;
	if (s->values.len)
		wire_packed_ok(span_view(p, s->values), &count);
	return count;
}

/* ---- where it applies */

static bool is_cumulative_type(const struct profiles *p, uint32_t type)
{
	static const char *const names[] = { "alloc_objects", "alloc_space", "contentions",
					     "delay" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (string_is(p, type, names[i]))
			return true;
	return false;
}

static bool is_cumulative(const struct profiles *p, const struct profile *profile)
{
	const char *key = pprof_keys[PPROF_KEY_TEMPORALITY];
	for (uint32_t i = 0; i < profile->attributes.count; i++) {
		uint32_t index = p->indices.at[profile->attributes.first + i];
		const struct attribute *a = &p->attributes.at[index];
		if (a->type == VALUE_STRING && string_is(p, a->key, key))
			return !string_is(p, a->string, "delta");
	}
	return profile->has_sample_type && is_cumulative_type(p, profile->sample_type.type);
}

/* Adds the values to the sum. False: one is negative, or the sum exceeds an int64. */
static bool add_values(const struct profiles *p, const struct sample *s, uint64_t *sum)
{
	struct wire w = wire_of(span_view(p, s->values));
	for (; wire_more(&w);) {
		uint64_t value = wire_varint(&w);
		if (value > INT64_MAX || value > INT64_MAX - *sum)
			return false;
		*sum += value;
	}
	return true;
}

static bool may_thin(const struct profiles *p, const struct sample *s, uint64_t *sum)
{
	uint32_t values = value_count(p, s), times = s->timestamps.len / 8;
	if (!values) {
		*sum += times;
		return *sum <= INT64_MAX;
	}
	return (times ? values == times : values == 1) && add_values(p, s, sum);
}

bool thin_applies(const struct profiles *p, const struct profile *profile)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < profile->samples.count; i++)
		if (!may_thin(p, &p->samples.at[profile->samples.first + i], &sum))
			return false;
	return !is_cumulative(p, profile);
}

/* ---- the strata */

struct strata {
	uint64_t whole, count; /* the line's length, and the number of strata: at most its length */
	uint64_t next;         /* the stratum of the point */
	uint64_t point;        /* of which point < at is false */
	uint64_t at;           /* the end of the values that were laid down */
	uint64_t random;
};

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static uint64_t start_of(const struct strata *t, uint64_t stratum)
{
	return (uint64_t)((unsigned __int128)t->whole * stratum / t->count);
}

static uint64_t length_of(const struct strata *t, uint64_t stratum)
{
	return start_of(t, stratum + 1) - start_of(t, stratum);
}

static void place_point(struct strata *t)
{
	uint64_t random = draw(&t->random);
	if (t->next < t->count)
		t->point = start_of(t, t->next) +
			   (uint64_t)((unsigned __int128)random * length_of(t, t->next) >> 64);
}

static void strata_init(struct strata *t, uint64_t whole, uint64_t count, uint64_t random)
{
	*t = (struct strata){ .whole = whole, .count = count, .random = random };
	if (t->count > t->whole)
		t->count = t->whole;
	place_point(t);
}

/* Lays the value down, and returns what it becomes. */
static uint64_t lay(struct strata *t, uint64_t value)
{
	uint64_t become = 0;
	t->at += value;
	while (t->next < t->count && t->point < t->at) {
		become += length_of(t, t->next++);
		place_point(t);
	}
	return become;
}

/* ---- samples */

/* Lays down all values of a sample. */
static uint64_t lay_sample(struct strata *t, const struct profiles *p, const struct sample *s,
			   bool *same)
{
	struct wire w = wire_of(span_view(p, s->values));
	uint32_t count = s->values.len ? value_count(p, s) : s->timestamps.len / 8;
	uint64_t sum = 0;
	*same = true;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t value = s->values.len ? wire_varint(&w) : 1, become = lay(t, value);
		*same = *same && value == become;
		sum += become;
	}
	return sum;
}

static void append(struct profiles *p, struct span *span, const void *data, size_t len)
{
	struct span added = profiles_bytes_new(p, data, len);
	span->at = span->len ? span->at : added.at;
	span->len += added.len;
}

/* Lays the values of a sample down again, from the same state, and appends what is kept: the new
 * values, or their timestamps. */
static struct span kept(struct profiles *p, struct strata t, const struct sample *s, bool times)
{
	uint32_t count = s->timestamps.len ? s->timestamps.len / 8 : 1, offset = 0;
	struct span out = { 0 };
	for (uint32_t i = 0; i < count; i++) {
		uint8_t data[10];
		uint64_t value = 1;
		if (s->values.len) {
			/* `added` may have moved */
			struct view values = span_view(p, s->values);
			struct wire w =
				wire_of((struct view){ values.at + offset, values.len - offset });
			value = wire_varint(&w);
			offset = (uint32_t)(w.at - values.at);
		}
		uint64_t become = lay(&t, value);
		if (become && times) {
			memcpy(data, span_at(p, s->timestamps) + 8 * (size_t)i, 8);
			append(p, &out, data, 8);
		} else if (become) {
			append(p, &out, data, (size_t)(wire_put_varint(data, become) - data));
		}
	}
	return out;
}

/* False: nothing of the sample is kept. */
static bool thin_sample(struct profiles *p, struct strata *t, struct sample *s)
{
	struct strata before = *t;
	bool same;
	if (!lay_sample(t, p, s, &same))
		return false;
	if (same)
		return true;
	struct span values = kept(p, before, s, false);
	if (s->timestamps.len)
		s->timestamps = kept(p, before, s, true);
	s->values = values;
	return true;
}

/* A Profile without any value keeps its first sample. */
static uint32_t keep_first(struct profile *profile)
{
	uint32_t removed = profile->samples.count ? profile->samples.count - 1 : 0;
	profile->samples.count -= removed;
	return removed;
}

uint32_t thin_profile(struct profiles *p, struct profile *profile, uint32_t share, uint64_t *random)
{
	uint64_t whole = 0, values = 0;
	uint32_t kept_samples = 0, all = profile->samples.count;
	struct sample *samples = p->samples.at + profile->samples.first;
	if (share >= THIN_ALL)
		return 0;
	for (uint32_t i = 0; i < all; i++) {
		bool may = may_thin(p, &samples[i], &whole);
		assert(may);
		(void)may;
		values += samples[i].timestamps.len ? samples[i].timestamps.len / 8 : 1;
	}
	if (!whole)
		return keep_first(profile);
	uint64_t wanted = (values * share) >> 16;
	struct strata t;
	strata_init(&t, whole, wanted ? wanted : 1, *random);
	for (uint32_t i = 0; i < all; i++)
		if (thin_sample(p, &t, &samples[i]))
			samples[kept_samples++] = samples[i];
	*random = t.random;
	profile->samples.count = kept_samples;
	return all - kept_samples;
}
