/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/otlp/decode_layout.h"
#include "profile/wire.h"

#include <stdio.h>

enum layout { LAYOUT_CURRENT, LAYOUT_3, LAYOUT_4_TO_7, LAYOUT_8_OR_9, LAYOUT_AMBIGUOUS };

/* The first row decides for which all `seen` bits are set and no `unseen` bit is. */
static const struct {
	uint32_t seen, unseen;
	enum layout layout;
} rows[] = {
	{ SEEN_CONTAINER, 0, LAYOUT_3 },
	{ SEEN_1_LEN, 0, LAYOUT_3 },
	{ SEEN_3_LEN | SEEN_7_TO_13, SEEN_4_LEN, LAYOUT_3 },
	{ SEEN_5_VARINT, 0, LAYOUT_4_TO_7 },
	{ SEEN_2_VARINT | SEEN_6, 0, LAYOUT_4_TO_7 },
	{ SEEN_2_VARINT | SEEN_3_LEN, 0, LAYOUT_4_TO_7 },
	{ SEEN_3_LEN | SEEN_4_LEN, 0, LAYOUT_4_TO_7 },
	{ SEEN_3_LEN | SEEN_6, SEEN_4_LEN, LAYOUT_4_TO_7 },
	{ SEEN_3_LEN, 0, LAYOUT_8_OR_9 },
	{ SEEN_4_LEN, 0, LAYOUT_CURRENT },
	{ SEEN_3_VARINT | SEEN_4_VARINT, 0, LAYOUT_CURRENT },
	{ SEEN_4_TWICE, 0, LAYOUT_CURRENT },
	{ SEEN_2_VARINT | SEEN_4_VARINT, 0, LAYOUT_CURRENT },
	{ SEEN_ONLY_4, 0, LAYOUT_CURRENT },
	{ SEEN_4_VARINT, 0, LAYOUT_8_OR_9 },
	{ SEEN_2_VARINT | SEEN_3_VARINT, SEEN_5, LAYOUT_4_TO_7 },
	{ SEEN_3_VARINT, 0, LAYOUT_CURRENT },
	{ SEEN_7_TO_13, 0, LAYOUT_3 },
	{ SEEN_2_VARINT | SEEN_ONLY_2, 0, LAYOUT_4_TO_7 },
	{ SEEN_ONLY_2, 0, LAYOUT_8_OR_9 },
	{ SEEN_BEYOND, 0, LAYOUT_AMBIGUOUS },
	{ 0, 0, LAYOUT_CURRENT },
};

const char *const otlp_generation_names[OTLP_GENERATIONS] = {
	[OTLP_UNKNOWN] = "ambiguous", [OTLP_1_3] = "1.3",      [OTLP_1_4] = "1.4",
	[OTLP_1_6] = "1.6",           [OTLP_1_7] = "1.7",      [OTLP_1_8] = "1.8",
	[OTLP_1_9] = "1.9",           [OTLP_CURRENT] = "1.10",
};

/* As an operator knows them. */
static const char *const releases[] = {
	[OTLP_1_3] = "OTLP 1.3 (v1experimental)",
	[OTLP_1_4] = "OTLP 1.4 or 1.5",
	[OTLP_1_6] = "OTLP 1.6",
	[OTLP_1_7] = "OTLP 1.7",
	[OTLP_1_8] = "OTLP 1.8",
	[OTLP_1_9] = "OTLP 1.9",
	[OTLP_CURRENT] = "OTLP 1.10 or newer",
};

#define ONLY(generation) (UINT32_C(1) << (generation))

static uint32_t of_4_to_7(uint32_t seen)
{
	if (seen & SEEN_PROFILE_4)
		return ONLY(OTLP_1_4);
	if (seen & SEEN_TABLES)
		return ONLY(OTLP_1_6);
	if (seen & SEEN_DICTIONARY)
		return ONLY(OTLP_1_7);
	return seen & SEEN_PROFILE_6 ? ONLY(OTLP_1_6) : ONLY(OTLP_1_4) | ONLY(OTLP_1_6);
}

static uint32_t of_8_or_9(uint32_t seen)
{
	if (seen & (SEEN_PROFILE_8 | SEEN_LIKE_8) && !(seen & SEEN_PROFILE_9))
		return ONLY(OTLP_1_8);
	return seen & SEEN_ID && !(seen & SEEN_PROFILE_9) ? ONLY(OTLP_1_8) | ONLY(OTLP_1_9)
							  : ONLY(OTLP_1_9);
}

struct layout_verdict decode_layout_judge(uint32_t seen)
{
	size_t i = 0;
	while ((seen & rows[i].seen) != rows[i].seen || (seen & rows[i].unseen))
		i++;
	struct layout_verdict verdict = { .shown = rows[i].seen != 0 };
	bool only_8 = seen & SEEN_PROFILE_8;
	switch (rows[i].layout) {
	case LAYOUT_3:
		verdict.candidates = ONLY(OTLP_1_3);
		break;
	case LAYOUT_4_TO_7:
		verdict.candidates = of_4_to_7(seen);
		break;
	case LAYOUT_8_OR_9:
		verdict.candidates = of_8_or_9(seen);
		break;
	case LAYOUT_AMBIGUOUS:
		verdict.candidates = of_8_or_9(seen) | (only_8 ? 0 : ONLY(OTLP_CURRENT));
		break;
	case LAYOUT_CURRENT:
		verdict.candidates = ONLY(only_8 && !verdict.shown ? OTLP_1_8 : OTLP_CURRENT);
	}
	return verdict;
}

bool decode_layout_refuse(struct layout_verdict verdict, struct error *err)
{
	char names[160];
	size_t len = 0;
	uint32_t rest = verdict.candidates;
	for (; rest; rest &= rest - 1)
		len += (size_t)snprintf(names + len, sizeof names - len, "%s%s",
					len ? " or of " : "", releases[__builtin_ctz(rest)]);
	if (verdict.candidates & (verdict.candidates - 1))
		return error_set(
			err, ERROR_INVALID,
			"the layout is ambiguous: the request may be of %s; the receiver's "
			"setting `schema` decides",
			names);
	return error_set(err, ERROR_INVALID,
			 "the request has the layout of %s; OTLP 1.10 or newer is required", names);
}

uint32_t decode_layout_bit(uint32_t tag)
{
	static const uint32_t bits[][8] = {
		[1] = { [WIRE_LEN] = SEEN_1_LEN },
		[2] = { [WIRE_LEN] = SEEN_2_LEN, [WIRE_VARINT] = SEEN_2_VARINT },
		[3] = { [WIRE_LEN] = SEEN_3_LEN, [WIRE_VARINT] = SEEN_3_VARINT },
		[4] = { [WIRE_LEN] = SEEN_4_LEN, [WIRE_VARINT] = SEEN_4_VARINT },
		[5] = { [WIRE_LEN] = SEEN_5,
			[WIRE_FIXED64] = SEEN_5,
			[WIRE_VARINT] = SEEN_5_VARINT },
		[6] = { [WIRE_LEN] = SEEN_6, [WIRE_VARINT] = SEEN_6 },
	};
	uint32_t number = tag >> 3;
	if (number < sizeof bits / sizeof *bits)
		return bits[number][tag & 7];
	return number <= 13 ? SEEN_7_TO_13 : 0;
}

static uint32_t sample(struct view message)
{
	struct wire w = wire_of(message);
	uint32_t seen = 0;
	while (wire_more(&w)) {
		uint32_t tag = wire_tag(&w), bit = decode_layout_bit(tag);
		seen |= bit == SEEN_4_VARINT && (seen & bit) ? SEEN_4_TWICE : bit;
		if ((tag & 7) == WIRE_LEN)
			wire_len(&w);
		else if ((tag & 7) == WIRE_VARINT)
			wire_varint(&w);
		else
			wire_skip(&w, tag);
	}
	return wire_done(&w) ? decode_layout_of_sample(seen) : 0;
}

/* The number of strings in the dictionary. */
static uint32_t count_strings(struct view dictionary)
{
	struct wire w = wire_of(dictionary);
	uint32_t count = 0;
	while (wire_more(&w)) {
		uint32_t tag = wire_tag(&w);
		if (tag != WIRE_TAG(5, WIRE_LEN)) {
			wire_skip_run(&w, tag);
			continue;
		}
		do {
			wire_len(&w);
			count++;
		} while (wire_is(&w, tag));
	}
	return count;
}

static bool may_be_strings(struct view packed, uint32_t strings)
{
	struct wire w = wire_of(packed);
	while (wire_more(&w))
		if (wire_varint(&w) >= strings)
			return false;
	return wire_done(&w);
}

static bool has_temporality(struct view value_type)
{
	struct wire w = wire_of(value_type);
	struct wire_field field;
	while (wire_next(&w, &field))
		if (field.number == 3)
			return true;
	return false;
}

/* A field of Profile: which numbers were seen with which wire type, as bits. */
struct seen_fields {
	uint32_t varint, len, fixed64;
};

#define BIT(number) (UINT32_C(1) << (number))

/* Most entries of a table in a Profile of 1.3 to 1.5: of them it counts that there are some. */
#define TABLES_4 (BIT(3) | BIT(4) | BIT(6) | BIT(9) | BIT(10))

static uint32_t of_profile(struct seen_fields f)
{
	uint32_t seen = 0;
	if (f.fixed64 & BIT(2))
		seen |= SEEN_CONTAINER;
	if (f.len & (BIT(4) | BIT(5) | BIT(7) | BIT(9)) || f.varint & BIT(12) ||
	    (f.len | f.varint) >> 15)
		seen |= SEEN_PROFILE_4;
	if (f.varint & (BIT(4) | BIT(7) | BIT(9)) || f.len & BIT(12))
		seen |= SEEN_PROFILE_6;
	if (f.len & BIT(8) || f.varint & (BIT(7) | BIT(9)))
		seen |= SEEN_PROFILE_8;
	if (f.varint & BIT(8) || f.len & BIT(9))
		seen |= SEEN_PROFILE_9;
	if ((f.len | f.varint) & BIT(12))
		seen |= SEEN_LIKE_8;
	return seen;
}

/* A field of type LEN; earlier: the fields of that type up to it. */
static uint32_t of_field(uint32_t number, struct view view, uint32_t earlier, uint32_t strings)
{
	if (number == 1 || number == 5)
		return has_temporality(view) ? SEEN_LIKE_8 : 0;
	if (number == 7 && view.len == 16)
		return may_be_strings(view, strings) ? SEEN_ID : SEEN_PROFILE_9;
	if (number == 7 && view.len)
		return SEEN_PROFILE_8;
	return number == 8 && view.len > 16 && !(earlier & BIT(2)) ? SEEN_CONTAINER : 0;
}

static uint32_t profile(struct view message, uint32_t strings)
{
	struct wire w = wire_of(message);
	struct seen_fields fields = { 0 };
	uint32_t seen = 0;
	while (wire_more(&w)) {
		uint32_t tag = wire_tag(&w), number = tag >> 3, type = tag & 7;
		uint32_t bit = number < 32 ? BIT(number) : 0;
		if (tag == WIRE_TAG(2, WIRE_LEN)) {
			do
				seen |= sample(wire_len(&w));
			while (wire_is(&w, tag));
		} else if (type != WIRE_LEN || bit & TABLES_4) {
			wire_skip_run(&w, tag);
		} else {
			seen |= of_field(number, wire_len(&w), fields.len, strings);
		}
		fields.varint |= type == WIRE_VARINT ? bit : 0;
		fields.fixed64 |= type == WIRE_FIXED64 ? bit : 0;
		fields.len |= type == WIRE_LEN ? bit : 0;
	}
	return seen | of_profile(fields);
}

/* ResourceProfiles and ScopeProfiles: what is in their field 2. */
static uint32_t nested(struct view message, unsigned depth, uint32_t strings)
{
	struct wire w = wire_of(message);
	struct wire_field field;
	uint32_t seen = 0;
	while (wire_next(&w, &field)) {
		if (field.number != 2 || field.type != WIRE_LEN)
			continue;
		seen |= depth ? profile(field.view, strings)
			      : nested(field.view, depth + 1, strings);
	}
	return seen;
}

/* Are there tables, in a dictionary or in the request? */
static uint32_t tables(struct view request, uint32_t *strings)
{
	struct wire w = wire_of(request);
	uint32_t seen = 0;
	while (wire_more(&w)) {
		uint32_t tag = wire_tag(&w), number = tag >> 3;
		if (tag == WIRE_TAG(2, WIRE_LEN)) {
			struct view dictionary = wire_len(&w);
			seen |= w.at <= w.end ? SEEN_DICTIONARY : 0;
			*strings += count_strings(dictionary);
			continue;
		}
		wire_skip_run(&w, tag);
		if (number > 2 && number <= 8 && (tag & 7) == WIRE_LEN && w.at <= w.end)
			seen |= SEEN_TABLES;
	}
	return seen;
}

uint32_t decode_layout_gather(struct view request)
{
	struct wire w = wire_of(request);
	uint32_t strings = 0, seen = tables(request, &strings);
	while (wire_more(&w)) {
		uint32_t tag = wire_tag(&w);
		if (tag == WIRE_TAG(1, WIRE_LEN))
			seen |= nested(wire_len(&w), 0, strings);
		else
			wire_skip_run(&w, tag);
	}
	return seen;
}
