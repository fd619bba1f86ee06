/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_OTLP_DECODE_LAYOUT_H
#define PROFILE_OTLP_DECODE_LAYOUT_H

#include "base/bytes.h"
#include "base/error.h"
#include "profile/otlp/bridge.h"

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
 * rest. The layout is therefore recognised by the wire types of all samples together, before
 * anything else is done with the request.
 *
 * Repeated numbers may also be unpacked, so a VARINT in field 4 alone does not decide. It is the
 * link of 1.9, unless something else shows that the writer does not pack (VARINT in field 2,
 * several in field 4 of one sample), that field 3 is the link (VARINT there), or that it must be a
 * value, because the sample has neither values nor timestamps otherwise (only the fields 1 and 4:
 * async-profiler). Samples with only the fields 1, 2 and 5, which the eBPF profiler sends today, do
 * not decide either: they are 1.10 or newer if every number in field 2 is an index of the attribute
 * table, and ambiguous otherwise.
 *
 * The decoder collects the evidence of the samples as it reads them, so a request in the current
 * layout costs nothing more. Only if they show another layout, or the request does not decode, is
 * it read again, together with the fields of Profile that distinguish successive releases:
 *
 *  OTLP      4         5         7         8         9         12
 *  1.4, 1.5  LEN       LEN       LEN       LEN       LEN       VARINT    (and 15 to 22)
 *  1.6, 1.7  VARINT    VARINT    VARINT    LEN       VARINT    LEN
 *  1.8       VARINT    LEN       LEN       LEN id    VARINT    LEN
 *  1.9 -     VARINT    LEN       LEN id    VARINT    LEN       -
 *
 * The ID has 16 bytes. 1.6 and 1.7 differ in where their tables are: in the fields 2 to 8 of
 * ProfilesData, or in its dictionary, field 2. Where 1.8 and 1.9 cannot be distinguished because
 * neither's own fields are there, they have the same meaning.
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
		/* not in a sample: the ProfileContainer of 1.3 in place of a Profile, */
		SEEN_CONTAINER = 1 << 14,
		/* fields that only a Profile of 1.4 and 1.5, of 1.6 and 1.7, of 1.8, of 1.9 has */
		SEEN_PROFILE_4 = 1 << 15,
		SEEN_PROFILE_6 = 1 << 16,
		SEEN_PROFILE_8 = 1 << 17,
		SEEN_PROFILE_9 = 1 << 18,
		/* fields that only 1.8 has so far, and a later release may have again */
		SEEN_LIKE_8 = 1 << 19,
		/* 16 bytes that may be the ID of 1.9 or comments of 1.8 */
		SEEN_ID = 1 << 20,
		/* a dictionary; more tables than that in the request */
		SEEN_DICTIONARY = 1 << 21,
		SEEN_TABLES = 1 << 22,
		SEEN_ONLY_4 = 1 << 23, /* a sample with only the fields 1 and 4, one VARINT */
		/* known fields of the current layout with a wire type that it does not have */
		SEEN_OTHER_TYPE = SEEN_1_LEN | SEEN_3_LEN | SEEN_5_VARINT
};

/* The evidence of a sample with these fields: marks samples with only one field beside field 1. */
static inline uint32_t decode_layout_of_sample(uint32_t seen)
{
	if (seen == SEEN_4_VARINT)
		return seen | SEEN_ONLY_4;
	return seen == SEEN_2_LEN || seen == SEEN_2_VARINT ? seen | SEEN_ONLY_2 : seen;
}

/* The bit for a field of Sample; 0 for fields that are no evidence. */
uint32_t decode_layout_bit(uint32_t tag);

/* What the evidence shows. */
struct layout_verdict {
	uint32_t candidates; /* 1 << enum otlp_generation; several: ambiguous */
	/* The samples cannot be of another generation. Otherwise nothing contradicts the only
	 * candidate. */
	bool shown;
};

struct layout_verdict decode_layout_judge(uint32_t evidence);

static inline bool decode_layout_is(struct layout_verdict v, enum otlp_generation generation)
{
	return v.candidates == UINT32_C(1) << generation;
}

/* The evidence of the whole request, in one pass over its tags; malformed parts add nothing. */
uint32_t decode_layout_gather(struct view request);

/* Describes a verdict other than the current layout in err; returns false. */
bool decode_layout_refuse(struct layout_verdict verdict, struct error *err);

#endif
