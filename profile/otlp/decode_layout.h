/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_OTLP_DECODE_LAYOUT_H
#define PROFILE_OTLP_DECODE_LAYOUT_H

#include "base/bytes.h"
#include "base/error.h"

/*
 * Which generation of OTLP profiles is it? The package kept its name while Sample was renumbered:
 *
 *   OTLP        1            2                     3                     4                5
 *   6 1.3         LEN location LEN value             LEN label             -                -
 *   - (7 to 13) 1.4 - 1.7   start        VARINT length         LEN values            LEN attributes
 *   VARINT link LEN timestamps 1.8, 1.9    stack        LEN values            LEN attributes
 *   VARINT link      timestamps - 1.10, 1.11  stack        LEN attributes        VARINT link
 *   LEN values       timestamps -
 *
 * A reader of one takes values of another for attributes and loses the rest without a word, so
 * older layouts are recognised by the wire types of all samples together, and refused.
 *
 * Repeated numbers may also come unpacked, so a VARINT in field 4 alone does not decide: it is the
 * link of 1.9, unless something else says that the writer does not pack (VARINT in field 2, several
 * in field 4 of one sample) or that field 3 is the link (VARINT there). Nothing decides about
 * samples of 1, 2 and 5 only, which the eBPF profiler sends today: they are 1.10 or newer if every
 * number in field 2 is an index of the attribute table, else ambiguous.
 */
enum evidence { /* of all samples together */
		SEEN_1_LEN = 1 << 0,
		SEEN_2_LEN = 1 << 1,
		SEEN_2_VARINT = 1 << 2,
		SEEN_3_LEN = 1 << 3,
		SEEN_3_VARINT = 1 << 4,
		SEEN_4_LEN = 1 << 5,
		SEEN_4_VARINT = 1 << 6,
		SEEN_4_TWICE = 1 << 7, /* more than one VARINT in one sample */
		SEEN_5 = 1 << 8,       /* FIXED64 or LEN */
		SEEN_5_VARINT = 1 << 9,
		SEEN_6 = 1 << 10,
		SEEN_7_TO_13 = 1 << 11,
		SEEN_ONLY_2 = 1 << 12, /* a sample of nothing but 1 and 2 */
		SEEN_BEYOND = 1 << 13, /* a number in field 2 is no index of the attribute table */
		/* not of a sample: the ProfileContainer of 1.3 in place of a Profile */
		SEEN_CONTAINER = 1 << 14
};

/* What a sample adds when its fields are known: notes those with nothing but 1 and 2. */
static inline uint32_t decode_layout_of_sample(uint32_t seen)
{
	return seen == SEEN_2_LEN || seen == SEEN_2_VARINT ? seen | SEEN_ONLY_2 : seen;
}

/* The bit of a field of Sample; 0 for those that say nothing. */
uint32_t decode_layout_bit(uint32_t tag);

/* False with the layout named when it is not 1.10 or newer. */
bool decode_layout_accept(uint32_t evidence, struct error *err);

/*
 * A request did not decode: if it is of an older layout, that is the reason, and err says so.
 * Otherwise err stays.
 */
void decode_layout_explain(struct view request, struct error *err);

#endif
