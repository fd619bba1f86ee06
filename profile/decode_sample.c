/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/decode_layout.h"
#include "profile/decoder.h"

/* A known field with a wrong wire type belongs to an older layout: see decode_layout.h. */
MESSAGE(sample, "stack_index", "attribute_indices", "link_index", "values", "timestamps_unix_nano");

/* Repeated numbers of a sample that come as one chunk are used where they lie. What comes in more, or
 * unpacked, is gathered in `added`. */
static bool gather(struct decoder *d, struct view message, uint32_t number, struct span *span)
{
	struct bytes *added = &d->p->added;
	size_t start = added->len;
	struct wire w = wire_of(message);
	while (wire_more(&w)) {
		uint32_t tag = wire_tag(&w);
		const uint8_t *at = w.at;
		wire_skip(&w, tag);
		struct view chunk = { at, (size_t)(w.at - at) };
		if (tag == WIRE_TAG(number, WIRE_LEN)) {
			struct wire len = { at, w.at, WIRE_OK };
			chunk = wire_len(&len);
		}
		if (tag >> 3 == number && !bytes_add(added, chunk.at, chunk.len))
			return decoder_full(d);
	}
	*span = (struct span){ (uint32_t)start | SPAN_ADDED, (uint32_t)(added->len - start) };
	return true;
}

static void check_values(struct decoder *d, struct view values, uint8_t *fault)
{
	uint32_t count;
	if (!wire_packed_ok(values, &count))
		*fault = decoder_fault(d, FAULT_VALUE, "values", "holds a malformed varint");
}

static void check_timestamps(struct decoder *d, struct view timestamps, uint8_t *fault)
{
	if (timestamps.len % 8)
		*fault = decoder_fault(d, FAULT_VALUE, "timestamps_unix_nano",
				       "is no multiple of 8 bytes");
}

/* What the sample refers to must be there and good. */
static void check_references(struct decoder *d, struct sample *s, uint64_t stack, uint64_t link)
{
	const struct profiles *p = d->p;
	if (stack >= d->limit[TABLE_STACK] || p->stacks.at[stack].fault)
		s->fault = decoder_bad_index(d, "stack_index", TABLE_STACK, stack);
	else
		s->stack = (uint32_t)stack;
	if (link >= d->limit[TABLE_LINK] || p->links.at[link].fault)
		s->fault = decoder_bad_index(d, "link_index", TABLE_LINK, link);
	else
		s->link = (uint32_t)link;
}

/* What the fields of one sample leave for after the loop. */
struct loose {
	uint64_t stack, link;
	struct view values, timestamps;
	uint32_t seen; /* enum evidence */
	bool gather_values, gather_timestamps;
};

/* The rare forms: unpacked numbers, fields of older layouts, unknown ones. */
static bool decode_sample_rarity(struct decoder *d, struct wire *w, uint32_t tag, struct sample *s,
				 struct loose *l)
{
	l->seen |= decode_layout_bit(tag);
	switch (tag) {
	case WIRE_TAG(2, WIRE_VARINT):
		return decoder_one_index(d, "attribute_indices", TABLE_ATTRIBUTE, wire_varint(w),
					 &s->fault);
	case WIRE_TAG(4, WIRE_VARINT):
		if (l->gather_values)
			l->seen |= SEEN_4_TWICE;
		l->gather_values = true;
		break;
	case WIRE_TAG(5, WIRE_FIXED64):
		l->gather_timestamps = true;
		break;
	}
	wire_skip(w, tag);
	return true;
}

static bool decode_sample_fields(struct decoder *d, struct wire w, struct sample *s, struct loose *l)
{
	uint32_t tag = 0;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		switch (tag) {
		case WIRE_TAG(1, WIRE_VARINT):
			l->stack = wire_varint(&w);
			break;
		case WIRE_TAG(2, WIRE_LEN):
			l->seen |= SEEN_2_LEN;
			if (!decoder_indices(d, "attribute_indices", TABLE_ATTRIBUTE, wire_len(&w),
					     &s->fault))
				return false;
			break;
		case WIRE_TAG(3, WIRE_VARINT):
			l->seen |= SEEN_3_VARINT;
			l->link = wire_varint(&w);
			break;
		case WIRE_TAG(4, WIRE_LEN):
			l->seen |= SEEN_4_LEN;
			l->gather_values |= l->values.len > 0;
			l->values = wire_len(&w);
			check_values(d, l->values, &s->fault);
			break;
		case WIRE_TAG(5, WIRE_LEN):
			l->seen |= SEEN_5;
			l->gather_timestamps |= l->timestamps.len > 0;
			l->timestamps = wire_len(&w);
			check_timestamps(d, l->timestamps, &s->fault);
			break;
		default:
			if (!decode_sample_rarity(d, &w, tag, s, l))
				return false;
		}
	}
	return decoder_end(d, &w, tag, &sample);
}

bool decode_sample(struct decoder *d, struct view v, uint8_t *fault)
{
	struct profiles *p = d->p;
	struct sample s = { .attributes.first = p->indices.count };
	struct loose l = { 0 };
	if (!decode_sample_fields(d, wire_of(v), &s, &l))
		return false;
	s.attributes.count = p->indices.count - s.attributes.first;
	s.values = decoder_span(d, l.values);
	s.timestamps = decoder_span(d, l.timestamps);
	if ((l.gather_values && !gather(d, v, 4, &s.values)) ||
	    (l.gather_timestamps && !gather(d, v, 5, &s.timestamps)))
		return false;
	d->evidence |= decode_layout_of_sample(l.seen);
	check_references(d, &s, l.stack, l.link);
	if (s.fault && !*fault)
		*fault = s.fault;
	p->samples.at[p->samples.count++] = s;
	return true;
}
