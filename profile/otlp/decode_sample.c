/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/otlp/decode_layout.h"
#include "profile/otlp/decoder.h"

/* A known field with a wrong wire type belongs to an older layout: see decode_layout.h. */
MESSAGE(sample, "stack_index", "attribute_indices", "link_index", "values", "timestamps_unix_nano");

static inline void check_values(struct decoder *d, struct view values, uint8_t *fault)
{
	/* Up to nine bytes, only the last byte can be invalid. */
	uint32_t count;
	if (values.len <= 9 ? !values.len || values.at[values.len - 1] < 0x80
			    : wire_packed_ok(values, &count))
		return;
	*fault = decoder_fault(d, FAULT_VALUE, "values", "contains a malformed varint");
}

static inline void check_timestamps(struct decoder *d, struct view timestamps, uint8_t *fault)
{
	if (timestamps.len % 8)
		*fault = decoder_fault(d, FAULT_VALUE, "timestamps_unix_nano",
				       "is not a multiple of 8 bytes");
}

/* Repeated numbers that come as one packed chunk are used in place. Numbers that come in several
 * chunks, or unpacked (in the field `plain`), are collected in `added`. Each chunk must be
 * complete. */
static bool gather(struct decoder *d, struct view message, uint32_t packed, uint32_t plain,
		   void (*check)(struct decoder *, struct view, uint8_t *), struct sample *s,
		   struct span *span)
{
	struct bytes *added = &d->p->added;
	size_t start = added->len;
	uint32_t chunks = 0;
	struct wire w = wire_of(message);
	while (wire_more(&w)) {
		uint32_t tag = wire_tag(&w);
		struct wire value = w;
		wire_skip(&w, tag);
		if (tag != packed && tag != plain)
			continue;
		struct view chunk = { value.at, (size_t)(w.at - value.at) };
		if (tag == packed)
			chunk = wire_len(&value);
		check(d, chunk, &s->fault);
		*span = decoder_span(d, chunk);
		if (!bytes_add(added, chunk.at, chunk.len))
			return decoder_full(d);
		chunks++;
	}
	if (chunks < 2)
		added->len = start;
	else
		*span = (struct span){ (uint32_t)start | SPAN_ADDED,
				       (uint32_t)(added->len - start) };
	return true;
}

/* The entries to which the sample refers must exist and have no fault. */
WIRE_HOT void check_references(struct decoder *d, struct sample *s, uint64_t stack, uint64_t link)
{
	const struct profiles *p = d->p;
	s->stack = (uint32_t)stack;
	s->link = (uint32_t)link;
	if (__builtin_expect(stack >= d->limit[TABLE_STACK] ||
				     (d->bad[TABLE_STACK] && p->stacks.at[stack].fault),
			     0)) {
		s->fault = decoder_bad_index(d, "stack_index", TABLE_STACK, stack);
		s->stack = 0;
	}
	if (__builtin_expect(link >= d->limit[TABLE_LINK] ||
				     (d->bad[TABLE_LINK] && p->links.at[link].fault),
			     0)) {
		s->fault = decoder_bad_index(d, "link_index", TABLE_LINK, link);
		s->link = 0;
	}
}

/* The fields of a sample. */
struct parts {
	uint64_t stack, link;
	struct view attributes, values, timestamps; /* attributes: only of a usual sample */
	uint32_t seen;                              /* enum evidence */
	bool more_values, more_timestamps;          /* they must be collected */
};

/* The fast path: a sample as writers usually send it, with each field at most once, packed, and in
 * order. False: the sample is not of this form. */
WIRE_HOT bool usual_sample(struct wire w, struct parts *x)
{
	if (wire_seems(&w, WIRE_TAG(1, WIRE_VARINT)))
		x->stack = wire_varint(&w);
	if (wire_seems(&w, WIRE_TAG(2, WIRE_LEN))) {
		x->attributes = wire_len(&w);
		x->seen |= SEEN_2_LEN;
	}
	if (wire_is(&w, WIRE_TAG(3, WIRE_VARINT))) {
		x->link = wire_varint(&w);
		x->seen |= SEEN_3_VARINT;
	}
	if (wire_seems(&w, WIRE_TAG(4, WIRE_LEN))) {
		x->values = wire_len(&w);
		x->seen |= SEEN_4_LEN;
	}
	if (wire_seems(&w, WIRE_TAG(5, WIRE_LEN))) {
		x->timestamps = wire_len(&w);
		x->seen |= SEEN_5;
	}
	return wire_at_end(&w);
}

/* Any other sample: several chunks, unpacked numbers, older layouts, unknown fields. */
static bool unusual_sample(struct decoder *d, struct wire w, struct sample *s, struct parts *x)
{
	static const char indices[] = "attribute_indices";
	uint32_t tag = 0;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		uint32_t bit = decode_layout_bit(tag);
		x->seen |= bit == SEEN_4_VARINT && (x->seen & bit) ? SEEN_4_TWICE : bit;
		switch (tag) {
		case WIRE_TAG(1, WIRE_VARINT):
			x->stack = wire_varint(&w);
			break;
		case WIRE_TAG(2, WIRE_LEN):
			if (!decoder_indices(d, indices, TABLE_ATTRIBUTE, wire_len(&w), &s->fault))
				return false;
			break;
		case WIRE_TAG(2, WIRE_VARINT):
			if (!decoder_one_index(d, indices, TABLE_ATTRIBUTE, wire_varint(&w),
					       &s->fault))
				return false;
			break;
		case WIRE_TAG(3, WIRE_VARINT):
			x->link = wire_varint(&w);
			break;
		case WIRE_TAG(4, WIRE_LEN):
		case WIRE_TAG(4, WIRE_VARINT):
			x->more_values = true;
			wire_skip(&w, tag);
			break;
		case WIRE_TAG(5, WIRE_LEN):
		case WIRE_TAG(5, WIRE_FIXED64):
			x->more_timestamps = true;
			wire_skip(&w, tag);
			break;
		default:
			/* the ones that no layout has had with this type end the decoding */
			if (bit & ~(uint32_t)SEEN_OTHER_TYPE)
				wire_skip(&w, tag);
			else
				decoder_other(&w, tag, &sample);
		}
	}
	return decoder_end(d, &w, tag, &sample);
}

/* The last step for both kinds of samples. */
WIRE_HOT void finish(struct decoder *d, struct sample *s, const struct parts *x)
{
	/* The protocol requires one of them. Stores reject the whole request if a sample has
	 * neither. */
	if (__builtin_expect(!s->values.len && !s->timestamps.len, 0))
		s->fault = decoder_fault(d, FAULT_VALUE, "values", "and timestamps are both empty");
	check_references(d, s, x->stack, x->link);
	s->attributes.count = d->p->indices.count - s->attributes.first;
	d->evidence |= decode_layout_of_sample(x->seen);
}

static __attribute__((noinline)) bool decode_unusual(struct decoder *d, struct view message,
						     struct sample *s)
{
	struct parts x = { 0 };
	if (!unusual_sample(d, wire_of(message), s, &x) ||
	    (x.more_values && !gather(d, message, WIRE_TAG(4, WIRE_LEN), WIRE_TAG(4, WIRE_VARINT),
				      check_values, s, &s->values)) ||
	    (x.more_timestamps &&
	     !gather(d, message, WIRE_TAG(5, WIRE_LEN), WIRE_TAG(5, WIRE_FIXED64), check_timestamps,
		     s, &s->timestamps)))
		return false;
	finish(d, s, &x);
	return true;
}

WIRE_HOT bool decode_sample(struct decoder *d, struct view message, struct sample *s)
{
	struct parts x = { 0 };
	*s = (struct sample){ .attributes.first = d->p->indices.count };
	if (!usual_sample(wire_of(message), &x))
		return decode_unusual(d, message, s);
	if (x.attributes.len &&
	    !decoder_indices(d, "attribute_indices", TABLE_ATTRIBUTE, x.attributes, &s->fault))
		return false;
	s->values = decoder_span(d, x.values);
	s->timestamps = decoder_span(d, x.timestamps);
	check_values(d, x.values, &s->fault);
	check_timestamps(d, x.timestamps, &s->fault);
	finish(d, s, &x);
	return true;
}

bool decode_samples(struct decoder *d, struct view profile, uint32_t count, uint8_t *fault)
{
	struct profiles *p = d->p;
	struct wire w = wire_of(profile);
	d->level = LEVEL_SAMPLE;
	d->first_sample = p->samples.count;
	if (!count)
		return true;
	if (!profiles_room(p, &p->samples, count))
		return decoder_full(d);
	for (struct sample *s = p->samples.at + p->samples.count; count;) {
		uint32_t tag = wire_tag(&w);
		if (tag != WIRE_TAG(2, WIRE_LEN)) {
			wire_skip(&w, tag);
			continue;
		}
		if (!decode_sample(d, wire_len(&w), s))
			return false;
		if (!*fault)
			*fault = s->fault;
		p->samples.count++;
		s++;
		count--;
	}
	return true;
}
