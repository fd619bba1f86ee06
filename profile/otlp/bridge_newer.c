/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 1.8 and 1.9. The samples have the fields of the current layout with other numbers, so a sample
 * keeps its length. A request of 1.9 is otherwise the same as a current one. In 1.8 Profile and
 * ValueType have a field more.
 */
#include "profile/otlp/bridge_private.h"
#include "profile/otlp/each_profile.h"

static inline uint8_t *copy(uint8_t *to, const uint8_t *from, const uint8_t *end)
{
	return bridge_copy(to, from, (size_t)(end - from));
}

static inline uint8_t *copy_as(uint8_t tag, uint8_t *to, const uint8_t *from, const uint8_t *end)
{
	uint8_t *next = copy(to, from, end);
	if (end > from)
		*to = tag;
	return next;
}

/* Any sample: each field stays where it is. A tag below 16 may have been written in more bytes than
 * one; the number is in the first of them. What is malformed is left to the decoder. */
static void renumber_in_place(struct view sample, uint8_t *to)
{
	static const uint8_t numbers[] = { 0, 1, 4, 2, 3 };
	struct wire w = wire_of(sample);
	memcpy(to, sample.at, sample.len);
	while (wire_more(&w)) {
		size_t at = (size_t)(w.at - sample.at);
		uint32_t tag = wire_tag(&w), number = tag >> 3;
		wire_skip(&w, tag);
		if (number < sizeof numbers && w.at <= w.end)
			to[at] = (uint8_t)((to[at] & 0x87) | numbers[number] << 3);
	}
}

/* What writers send: each field at most once, packed, in order. Writes sample.len bytes, and
 * perhaps others behind them. */
static void renumber(struct view sample, uint8_t *to)
{
	struct wire w = wire_of(sample);
	const uint8_t *stack, *values, *attributes, *link;
	if (wire_is(&w, WIRE_TAG(1, WIRE_VARINT)))
		wire_varint(&w);
	stack = w.at;
	if (wire_is(&w, WIRE_TAG(2, WIRE_LEN)))
		wire_len(&w);
	values = w.at;
	if (wire_is(&w, WIRE_TAG(3, WIRE_LEN)))
		wire_len(&w);
	attributes = w.at;
	if (wire_is(&w, WIRE_TAG(4, WIRE_VARINT)))
		wire_varint(&w);
	link = w.at;
	if (wire_is(&w, WIRE_TAG(5, WIRE_LEN)))
		wire_len(&w);
	if (!wire_at_end(&w)) {
		renumber_in_place(sample, to);
		return;
	}
	to = copy(to, sample.at, stack);
	to = copy_as(WIRE_TAG(2, WIRE_LEN), to, values, attributes);
	to = copy_as(WIRE_TAG(3, WIRE_VARINT), to, attributes, link);
	to = copy_as(WIRE_TAG(4, WIRE_LEN), to, stack, values);
	copy(to, link, w.end);
}

/* 1.9: what was copied so far. */
struct copying {
	const uint8_t *from;
	uint8_t *to;
};

static void samples(void *context, struct view profile)
{
	struct copying *c = context;
	struct wire w = wire_of(profile);
	while (wire_more(&w)) {
		uint32_t tag = wire_tag(&w);
		if (tag != WIRE_TAG(2, WIRE_LEN)) {
			wire_skip(&w, tag);
			continue;
		}
		struct view sample = wire_len(&w);
		if (!sample.len)
			continue;
		c->to = copy(c->to, c->from, sample.at);
		renumber(sample, c->to);
		c->to += sample.len;
		c->from = sample.at + sample.len;
	}
}

bool bridge_1_9(struct bridge *b, struct view request)
{
	if (!bytes_reserve(b->out, request.len + 1))
		return false;
	struct copying c = { request.at, b->out->at + b->out->len };
	each_profile(request, samples, &c);
	memcpy(c.to, c.from, (size_t)(request.at + request.len - c.from));
	b->out->len += request.len;
	return true;
}

/* 1.8: ValueType without its third field. */
static bool value_type(struct bridge *b, uint32_t number, struct view message,
		       uint64_t *temporality)
{
	struct wire w = wire_of(message);
	struct wire_field field;
	size_t start;
	if (!bridge_open(b->out, number, &start))
		return false;
	while (wire_next(&w, &field)) {
		if (field.number <= 3 && field.type != WIRE_VARINT)
			wire_fail(&w, WIRE_MISMATCH);
		else if (field.number == 3)
			*temporality = field.value;
		else if (field.number < 3 && !wire_add_varint(b->out, field.number, field.value))
			return false;
	}
	bridge_close(b->out, start);
	return wire_done(&w) || bridge_malformed(b, "ValueType", wire_fault_text(w.fault));
}

static bool add_sample(struct bridge *b, struct view sample)
{
	struct bytes *out = b->out;
	if (!bytes_reserve(out, sample.len + 11))
		return false;
	uint8_t *at = wire_put_tag(out->at + out->len, 2, WIRE_LEN);
	at = wire_put_varint(at, sample.len);
	renumber(sample, at);
	out->len = (size_t)(at - out->at) + sample.len;
	return true;
}

/* What a Profile has besides the fields that stay. */
struct more {
	struct bytes comments; /* packed */
	uint64_t temporality, period_temporality;
};

static bool renumber_field(struct bridge *b, const struct wire_field *field)
{
	static const uint8_t numbers[13] = { 0, 1, 2, 3, 4, 5, 6, 0, 7, 8, 0, 0, 11 };
	uint32_t number = numbers[field->number];
	if (field->type == WIRE_LEN)
		return wire_add_len(b->out, number, field->view);
	if (field->type == WIRE_FIXED64)
		return wire_add_fixed64(b->out, number, field->value);
	return wire_add_varint(b->out, number, field->value);
}

static bool profile_field(struct bridge *b, const struct wire_field *field, struct more *more)
{
	switch (field->number) {
	case 1:
		return value_type(b, 1, field->view, &more->temporality);
	case 2:
		return add_sample(b, field->view);
	case 5:
		return value_type(b, 5, field->view, &more->period_temporality);
	case 7:
		if (field->type == WIRE_LEN)
			return bytes_add(&more->comments, field->view.at, field->view.len);
		if (!bytes_reserve(&more->comments, 10))
			return false;
		more->comments.len =
			(size_t)(wire_put_varint(more->comments.at + more->comments.len,
						 field->value) -
				 more->comments.at);
		return true;
	case 10:
	case 11:
		return true;
	default:
		return renumber_field(b, field);
	}
}

static bool add_more(struct bridge *b, const struct more *more)
{
	struct view comments = bytes_view(&more->comments);
	uint32_t index, count;
	if (comments.len && !wire_packed_ok(comments, &count))
		return bridge_malformed(b, "list of comments", wire_fault_text(WIRE_LONG));
	if (comments.len && (!bridge_texts_attribute(b, PPROF_KEY_COMMENT, comments, &index) ||
			     !wire_add_varint(b->out, 11, index)))
		return false;
	return bridge_temporality(b, more->temporality, &index) &&
	       (!index || wire_add_varint(b->out, 11, index));
}

static bool profile_fields(struct bridge *b, struct view message, struct more *more)
{
	/* 1 << the wire types that a field may have */
	static const uint8_t types[13] = { 0, 4, 4, 2, 1, 4, 1, 5, 4, 1, 4, 4, 5 };
	struct wire w = wire_of(message);
	struct wire_field field;
	while (wire_next(&w, &field)) {
		if (field.number >= sizeof types)
			continue;
		if (!(types[field.number] >> field.type & 1))
			wire_fail(&w, WIRE_MISMATCH);
		else if (!profile_field(b, &field, more))
			return false;
	}
	return (wire_done(&w) || bridge_malformed(b, "Profile", wire_fault_text(w.fault))) &&
	       add_more(b, more);
}

static bool profile(struct bridge *b, struct view message)
{
	struct more more = { .temporality = 0 };
	size_t start;
	bridge_buffer(b, &more.comments);
	bool ok = bridge_scope(b) && bridge_open(b->out, 2, &start) &&
		  profile_fields(b, message, &more);
	if (ok)
		bridge_close(b->out, start);
	bytes_fini(&more.comments);
	return ok;
}

/* The entries that the request brings. New ones come behind them; index 0 means "none", so there
 * must be an entry 0. */
static bool count_entries(struct bridge *b, struct view request)
{
	struct wire w = wire_of(request);
	struct wire_field field;
	while (wire_next(&w, &field)) {
		if (field.number != 2 || field.type != WIRE_LEN)
			continue;
		struct wire d = wire_of(field.view);
		while (wire_more(&d)) {
			uint32_t tag = wire_tag(&d), table = tag >> 3;
			if (table && table < BRIDGE_TABLES)
				b->count[table]++;
			wire_skip(&d, tag);
		}
		if (!wire_done(&d))
			return bridge_malformed(b, "ProfilesDictionary", wire_fault_text(d.fault));
	}
	for (int i = 1; i < BRIDGE_TABLES; i++) {
		struct bytes *to = &b->table[i];
		if (!b->count[i] && !wire_add_len(to, (uint32_t)i, (struct view){ NULL, 0 }))
			return false;
		b->count[i] += !b->count[i];
	}
	return true;
}

bool bridge_1_8(struct bridge *b, struct view request)
{
	return count_entries(b, request) && bridge_resources(b, request, profile);
}
