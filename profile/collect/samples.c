/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/collect/samples.h"
#include "base/memory.h"

#include <stdlib.h>

void samples_init(struct samples *m, size_t max)
{
	*m = (struct samples){ 0 };
	intern_init(&m->identities, 0, max);
}

void samples_fini(struct samples *m)
{
	memory_free(m->outs.at);
	memory_free(m->attributes.at);
	memory_free(m->key.at);
	memory_free(m->owners.at);
	memory_free(m->sums.at);
	intern_fini(&m->identities);
}

size_t samples_footprint(const struct samples *m)
{
	return m->outs.room * sizeof *m->outs.at + m->sums.room * sizeof *m->sums.at +
	       ((size_t)m->attributes.room + m->key.room + m->owners.room) * sizeof(uint32_t) +
	       intern_footprint(&m->identities);
}

/* Copies the entries that the samples refer to. */
static void copy_references(struct samples *m, struct dictionary *d, struct list list)
{
	const struct sample *samples = d->p->samples.at + list.first;
	m->outs.count = m->attributes.count = 0;
	array_reserve(&m->outs, list.count);
	for (uint32_t i = 0; i < list.count; i++) {
		const struct sample *s = &samples[i];
		uint32_t first = m->attributes.count;
		uint32_t stack = dictionary_stack(d, s->stack);
		if (s->attributes.count)
			dictionary_attributes(d, s->attributes, &m->attributes);
		uint32_t link = dictionary_link(d, s->link);
		m->outs.at[i] = (struct sample_out){
			.source = list.first + i,
			.stack = DICTIONARY_INDEX(stack),
			.link = DICTIONARY_INDEX(link),
			.attributes = { first, m->attributes.count - first },
		};
	}
	m->outs.count = list.count;
}

enum shape { SHAPE_OTHER, SHAPE_TIMES, SHAPE_PAIRS, SHAPE_VALUES };

/* The shape of a sample, for SHAPE_VALUES plus the number of values: two samples of equal shape can
 * be merged. */
static uint32_t shape_of(const struct profiles *p, const struct sample *s)
{
	uint32_t values = 0;
	if (s->values.len)
		wire_packed_ok(span_view(p, s->values), &values);
	if (!s->timestamps.len)
		return values + SHAPE_VALUES;
	if (!values)
		return SHAPE_TIMES;
	return values == s->timestamps.len / 8 ? SHAPE_PAIRS : SHAPE_OTHER;
}

static int compare_indices(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static void sort_indices(uint32_t *at, uint32_t count)
{
	if (count > 16) {
		qsort(at, count, sizeof *at, compare_indices);
		return;
	}
	for (uint32_t i = 1; i < count; i++) {
		uint32_t moving = at[i], j = i;
		for (; j && at[j - 1] > moving; j--)
			at[j] = at[j - 1];
		at[j] = moving;
	}
}

/* A pointer to the index of the sample that this one may join; it points to this sample's own index
 * if it is the first of its kind. NULL: it may not join any. */
static uint32_t *owner_of(struct samples *m, uint32_t i, uint32_t shape)
{
	const struct sample_out *o = &m->outs.at[i];
	uint32_t count = o->attributes.count, known = m->identities.count;
	m->key.count = 0;
	array_reserve(&m->key, 3 + (uint64_t)count + BYTES_SLACK / sizeof *m->key.at);
	m->key.at[0] = o->stack;
	m->key.at[1] = o->link;
	m->key.at[2] = shape;
	if (count)
		memcpy(m->key.at + 3, m->attributes.at + o->attributes.first,
		       count * sizeof *m->key.at);
	sort_indices(m->key.at + 3, count);
	uint32_t identity = intern_put(&m->identities, (const uint8_t *)m->key.at,
				       (3 + (size_t)count) * sizeof *m->key.at);
	if (!identity)
		return NULL;
	m->owners.count = identity;
	array_reserve(&m->owners, 1);
	if (identity >= known)
		m->owners.at[identity] = i;
	return &m->owners.at[identity];
}

/* Appends the values of a sample to m->sums. */
static void take_values(struct samples *m, const struct profiles *p, const struct sample *s,
			uint32_t count)
{
	struct wire w = wire_of(span_view(p, s->values));
	array_reserve(&m->sums, count);
	for (uint32_t i = 0; i < count; i++)
		m->sums.at[m->sums.count++] = (int64_t)wire_varint(&w);
}

/* Adds the values of a sample to its owner's. False, with nothing changed, if a sum would
 * overflow. */
static bool add_values(struct samples *m, const struct profiles *p, struct sample_out *owner,
		       const struct sample *s, uint32_t count)
{
	if (!owner->sums.count) {
		owner->sums = (struct list){ m->sums.count, count };
		take_values(m, p, &p->samples.at[owner->source], count);
	}
	uint32_t fresh = m->sums.count;
	take_values(m, p, s, count);
	m->sums.count = fresh;
	int64_t *sums = m->sums.at + owner->sums.first, *more = m->sums.at + fresh;
	for (uint32_t i = 0; i < count; i++)
		if (__builtin_add_overflow(sums[i], more[i], &more[i]))
			return false;
	if (count)
		memcpy(sums, more, count * sizeof *sums);
	return true;
}

static void join(struct samples *m, uint32_t owner, uint32_t i)
{
	struct sample_out *o = &m->outs.at[owner];
	m->outs.at[o->last ? o->last : owner].next = i;
	o->last = i;
}

static uint64_t merge(struct samples *m, const struct profiles *p)
{
	uint64_t merged = 0;
	intern_reset(&m->identities);
	m->sums.count = 0;
	for (uint32_t i = 0; i < m->outs.count; i++) {
		const struct sample *s = &p->samples.at[m->outs.at[i].source];
		uint32_t shape = shape_of(p, s);
		uint32_t *owner = shape != SHAPE_OTHER ? owner_of(m, i, shape) : NULL;
		if (!owner || *owner == i)
			continue;
		if (shape < SHAPE_VALUES) {
			join(m, *owner, i);
		} else if (!add_values(m, p, &m->outs.at[*owner], s, shape - SHAPE_VALUES)) {
			*owner = i;
			continue;
		}
		m->outs.at[i].joined = true;
		merged++;
	}
	return merged;
}

static const struct sample *source_of(const struct samples *m, const struct profiles *p, uint32_t i)
{
	return &p->samples.at[m->outs.at[i].source];
}

/* The total lengths of the values and the timestamps of a sample and of those that joined it. */
static void measure(const struct samples *m, const struct profiles *p, uint32_t i, size_t *values,
		    size_t *times)
{
	const struct list sums = m->outs.at[i].sums;
	*values = *times = 0;
	for (uint32_t n = 0; n < sums.count; n++)
		*values += wire_varint_len((uint64_t)m->sums.at[sums.first + n]);
	do {
		const struct sample *s = source_of(m, p, i);
		if (!sums.count)
			*values += s->values.len;
		*times += s->timestamps.len;
		i = m->outs.at[i].next;
	} while (i);
}

static uint8_t *put_span(uint8_t *at, const struct profiles *p, struct span span)
{
	return span.len ? put_copy(at, span_at(p, span), span.len) : at;
}

static uint8_t *put_values(const struct samples *m, const struct profiles *p, uint32_t i,
			   uint8_t *at)
{
	const struct list sums = m->outs.at[i].sums;
	for (uint32_t n = 0; n < sums.count; n++)
		at = wire_put_varint(at, (uint64_t)m->sums.at[sums.first + n]);
	if (!sums.count)
		do {
			at = put_span(at, p, source_of(m, p, i)->values);
			i = m->outs.at[i].next;
		} while (i);
	return at;
}

static uint8_t *put_times(const struct samples *m, const struct profiles *p, uint32_t i,
			  uint8_t *at)
{
	do {
		at = put_span(at, p, source_of(m, p, i)->timestamps);
		i = m->outs.at[i].next;
	} while (i);
	return at;
}

static size_t field_size(size_t len)
{
	return len ? 1 + wire_varint_len(len) + len : 0;
}

static bool put_sample(const struct samples *m, const struct profiles *p, uint32_t i,
		       struct bytes *out)
{
	const struct sample_out *o = &m->outs.at[i];
	size_t values, times;
	measure(m, p, i, &values, &times);
	if (!bytes_reserve(out, values + times + 5 * (size_t)o->attributes.count + 6 * PUT_MAX))
		return false;
	uint8_t *start = out->at + out->len, *head = start + PUT_MAX;
	uint8_t *end = put_number(head, PUT_VARINT(1), o->stack);
	if (o->attributes.count)
		end = put_packed(end, PUT_LEN(2), m->attributes.at + o->attributes.first,
				 o->attributes.count);
	end = put_number(end, PUT_VARINT(3), o->link);
	size_t len = (size_t)(end - head);
	uint8_t *at = put_header(start, PUT_LEN(2), len + field_size(values) + field_size(times));
	at = put_copy(at, head, len);
	if (values)
		at = put_values(m, p, i, put_header(at, PUT_LEN(4), values));
	if (times)
		at = put_times(m, p, i, put_header(at, PUT_LEN(5), times));
	out->len = (size_t)(at - out->at);
	return true;
}

/* Copies the references and writes the sample in one pass. Returns DICTIONARY_CHANGED, and the
 * output is invalid, if something in the sample was changed. */
static inline uint32_t put_unchanged(struct samples *m, struct dictionary *d,
				     const struct sample *s, struct bytes *out)
{
	uint32_t stack = dictionary_stack(d, s->stack), link = dictionary_link(d, s->link);
	uint32_t changed = stack | link | (s->changed ? DICTIONARY_CHANGED : 0);
	m->attributes.count = 0;
	if (s->attributes.count)
		changed |= dictionary_attributes(d, s->attributes, &m->attributes);
	uint8_t *start = out->at + out->len, *at = start + PUT_HEADER;
	*at++ = PUT_VARINT(1);
	at = put_index(at, DICTIONARY_INDEX(stack));
	at = put_packed(at, PUT_LEN(2), m->attributes.at, m->attributes.count);
	at = put_number(at, PUT_VARINT(3), DICTIONARY_INDEX(link));
	if (s->values.len)
		at = put_bytes(at, PUT_LEN(4), span_view(d->p, s->values));
	if (s->timestamps.len)
		at = put_bytes(at, PUT_LEN(5), span_view(d->p, s->timestamps));
	at = put_close(start, PUT_LEN(2), at);
	out->len = (size_t)(at - out->at);
	return changed & DICTIONARY_CHANGED;
}

enum outcome { ALL_PUT, FOUND_CHANGED, OUT_FULL };

/* Most Profiles are unchanged, and need no table of what is to be written. */
static enum outcome put_all_unchanged(struct samples *m, struct dictionary *d, struct list list,
				      struct bytes *out)
{
	const struct sample *s = d->p->samples.at + list.first, *end = s + list.count;
	size_t mark = out->len;
	for (; s < end; s++) {
		size_t max =
			(size_t)s->values.len + s->timestamps.len + 5 * (size_t)s->attributes.count;
		if (!bytes_reserve(out, max + 6 * PUT_MAX))
			return OUT_FULL;
		if (put_unchanged(m, d, s, out)) {
			out->len = mark;
			return FOUND_CHANGED;
		}
	}
	return ALL_PUT;
}

bool samples_put(struct samples *m, struct dictionary *d, const struct profile *profile,
		 struct bytes *out, uint64_t *merged)
{
	enum outcome unchanged =
		profile->changed ? FOUND_CHANGED : put_all_unchanged(m, d, profile->samples, out);
	if (unchanged != FOUND_CHANGED)
		return unchanged == ALL_PUT;
	copy_references(m, d, profile->samples);
	*merged += merge(m, d->p);
	for (uint32_t i = 0; i < m->outs.count; i++)
		if (!m->outs.at[i].joined && !put_sample(m, d->p, i, out))
			return false;
	return true;
}
