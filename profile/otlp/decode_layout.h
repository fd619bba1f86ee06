/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_OTLP_DECODE_LAYOUT_H
#define PROFILE_OTLP_DECODE_LAYOUT_H

#include "base/bytes.h"
#include "base/error.h"

/*
 * Recognises older layouts of OTLP profiles. The package kept its name while the fields of Sample
 * were renumbered:
 *
 *  OTLP        1             2               3               4               5            6
 *  1.3         LEN location  LEN value       LEN label       -               -            (7 to 13)
 *  1.4 - 1.7   start         VARINT length   LEN values      LEN attributes  VARINT link  LEN times
 *  1.8, 1.9    stack         LEN values      LEN attributes  VARINT link     timestamps   -
 *  1.10, 1.11  stack         LEN attributes  VARINT link     LEN values      timestamps   -
 *
 * A reader of one layout takes the values of another one for attributes, and silently loses the
 * rest. Older layouts are therefore recognised by the wire types of all samples together, and
 * rejected.
 *
 * Repeated numbers may also be unpacked, so a VARINT in field 4 alone does not decide. It is the
 * link of 1.9, unless something else shows that the writer does not pack (VARINT in field 2,
 * several in field 4 of one sample) or that field 3 is the link (VARINT there). Samples with only
 * the fields 1, 2 and 5, which the eBPF profiler sends today, do not decide either: they are 1.10
 * or newer if every number in field 2 is an index of the attribute table, and ambiguous otherwise.
 */
enum evidence { /* seen in any of the samples */
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
		SEEN_ONLY_2 = 1 << 12, /* a sample with only the fields 1 and 2 */
		/* a number in field 2 is out of range for the attribute table */
		SEEN_BEYOND = 1 << 13,
		/* not in a sample: the ProfileContainer of 1.3 in place of a Profile */
		SEEN_CONTAINER = 1 << 14
};

/* The evidence of a sample with these fields: marks samples with only the fields 1 and 2. */
static inline uint32_t decode_layout_of_sample(uint32_t seen)
{
	return seen == SEEN_2_LEN || seen == SEEN_2_VARINT ? seen | SEEN_ONLY_2 : seen;
}

/* The bit for a field of Sample; 0 for fields that are no evidence. */
uint32_t decode_layout_bit(uint32_t tag);

/* False if the layout is not 1.10 or newer; err names the layout. */
bool decode_layout_accept(uint32_t evidence, struct error *err);

/* Explains why a request did not decode: if it has an older layout, err says so; otherwise err
 * stays as it is. */
void decode_layout_explain(struct view request, struct error *err);

#endif
