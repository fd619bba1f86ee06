/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/otlp/decode_layout.h"
#include "profile/wire.h"

enum layout {
	LAYOUT_CURRENT,
	LAYOUT_3,
	LAYOUT_4_TO_7,
	LAYOUT_8_OR_9,
	LAYOUT_OLDER,
	LAYOUT_AMBIGUOUS
};

/* The first row all of whose `seen` and none of whose `unseen` bits are there decides. */
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
	{ SEEN_3_LEN, 0, LAYOUT_8_OR_9 },
	{ SEEN_4_LEN, 0, LAYOUT_CURRENT },
	{ SEEN_3_VARINT | SEEN_4_VARINT, 0, LAYOUT_CURRENT },
	{ SEEN_4_TWICE, 0, LAYOUT_CURRENT },
	{ SEEN_2_VARINT | SEEN_4_VARINT, 0, LAYOUT_CURRENT },
	{ SEEN_4_VARINT, 0, LAYOUT_8_OR_9 },
	{ SEEN_2_VARINT | SEEN_3_VARINT, SEEN_5, LAYOUT_4_TO_7 },
	{ SEEN_3_VARINT, 0, LAYOUT_CURRENT },
	{ SEEN_7_TO_13, 0, LAYOUT_3 },
	{ SEEN_2_VARINT | SEEN_ONLY_2, 0, LAYOUT_4_TO_7 },
	{ SEEN_ONLY_2, 0, LAYOUT_OLDER },
	{ SEEN_BEYOND, 0, LAYOUT_AMBIGUOUS },
	{ 0, 0, LAYOUT_CURRENT },
};

static const char *const names[] = {
	[LAYOUT_3] = "OTLP 1.3 (v1experimental)",
	[LAYOUT_4_TO_7] = "OTLP 1.4 to 1.7",
	[LAYOUT_8_OR_9] = "OTLP 1.8 or 1.9",
	[LAYOUT_OLDER] = "OTLP 1.9 or older",
};

static enum layout decide(uint32_t evidence)
{
	size_t i = 0;
	while ((evidence & rows[i].seen) != rows[i].seen || (evidence & rows[i].unseen))
		i++;
	return rows[i].layout;
}

static bool refuse(enum layout layout, struct error *err)
{
	if (layout == LAYOUT_AMBIGUOUS)
		return error_set(err, ERROR_INVALID,
				 "the layout is ambiguous: the samples have only fields 1, 2 "
				 "and 5, and a number in field 2 is out of range for "
				 "attribute_table, so they may be OTLP 1.9 or older; OTLP 1.10 "
				 "or newer is required");
	return error_set(err, ERROR_INVALID,
			 "the samples have the layout of %s, which numbers their fields "
			 "differently; OTLP 1.10 or newer is required",
			 names[layout]);
}

bool decode_layout_accept(uint32_t evidence, struct error *err)
{
	enum layout layout = decide(evidence);
	return layout == LAYOUT_CURRENT || refuse(layout, err);
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
		wire_skip(&w, tag);
	}
	return wire_done(&w) ? decode_layout_of_sample(seen) : 0;
}

/* Request, ResourceProfiles, ScopeProfiles and Profile lie in each other by these fields; what is
 * malformed adds nothing. */
static uint32_t gather(struct view message, unsigned depth)
{
	static const uint32_t next[] = { 1, 2, 2, 2 };
	if (depth == sizeof next / sizeof *next)
		return sample(message);
	struct wire w = wire_of(message);
	struct wire_field field;
	uint32_t seen = 0;
	while (wire_next(&w, &field)) {
		if (field.number != next[depth])
			continue;
		if (field.type == WIRE_LEN)
			seen |= gather(field.view, depth + 1);
		else if (depth == 3 && field.type == WIRE_FIXED64)
			seen |= SEEN_CONTAINER;
	}
	return seen;
}

void decode_layout_explain(struct view request, struct error *err)
{
	enum layout layout = decide(gather(request, 0));
	if (layout != LAYOUT_CURRENT)
		refuse(layout, err);
}
