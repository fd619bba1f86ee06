/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_OTLP_BRIDGE_H
#define PROFILE_OTLP_BRIDGE_H

#include "base/bytes.h"
#include "base/error.h"

/*
 * The generations of OTLP profiles, and the translation of older ones into the current layout.
 *
 * The layout changed in place: the package is opentelemetry.proto.profiles.v1development since
 * 1.4, and was v1experimental in 1.3. Releases with the same layout are one generation. Field
 * numbers: opentelemetry-proto v1.3.2, v1.4.0, v1.5.0, v1.6.0, v1.7.0, v1.8.0, v1.9.0, v1.10.0.
 */
enum otlp_generation {
	OTLP_UNKNOWN,
	OTLP_1_3,    /* pprof with more, in a ProfileContainer; tables in each Profile */
	OTLP_1_4,    /* 1.4 and 1.5: tables in each Profile */
	OTLP_1_6,    /* tables in ProfilesData */
	OTLP_1_7,    /* tables in ProfilesDictionary */
	OTLP_1_8,    /* stack_table; Sample has values, attributes, link */
	OTLP_1_9,    /* as 1.8; Profile has no comments, ValueType no temporality */
	OTLP_CURRENT /* 1.10 and newer: Sample has attributes, link, values */
};

enum { OTLP_GENERATIONS = OTLP_CURRENT + 1 };

/* "ambiguous", "1.3", "1.4", ... "1.10": for metrics and messages. A generation has the name of its
 * first release. */
extern const char *const otlp_generation_names[OTLP_GENERATIONS];

/*
 * Appends to `out` the ExportProfilesServiceRequest `request` of that generation (not OTLP_UNKNOWN
 * or OTLP_CURRENT) in the current layout. The request has BYTES_SLACK readable bytes behind its
 * end. `out` may have a meter; everything else that the translation needs is charged to the same
 * meter, or without a meter bounded by out->max.
 *
 * False with ERROR_INVALID: not decodable; the message names the message that is malformed. False
 * with err unchanged: the memory could not grow. Content that is well-formed but invalid (an index
 * out of range, a wrong number of values) is translated into something that decode_otlp finds
 * faulty, so that it rejects the Profile that it belongs to and no other. A request of 1.3 to 1.7
 * whose samples refer to overlapping ranges of locations, together 256 times its size and a MiB
 * more, is not decodable either: it would cost too much.
 *
 * Where the current layout has no field:
 *  - a Profile with several sample types becomes one Profile for each, in the order of the types
 *    but with the default type first; all of them have the same attributes and times;
 *  - tables of Profiles are joined to one dictionary; ranges of locations become stacks;
 *  - attribute_units become the units of the attributes with that key;
 *  - sample_type.aggregation_temporality becomes the Profile attribute
 *    otlp.profile.aggregation_temporality ("delta" or "cumulative"); that of period_type, which
 *    has no meaning, is left out;
 *  - comments, drop_frames and keep_frames, default_sample_type, the flags of mappings and
 *    locations, build IDs, types of frames and labels become attributes with the keys that
 *    profile/pprof uses;
 *  - the IDs of 1.3's tables, stacktrace_id_index, original_payload and unknown fields are left
 *    out;
 *  - up to 1.7 a sample with timestamps has one total: it is divided equally among the timestamps,
 *    and the first one gets the rest.
 */
bool bridge_otlp(enum otlp_generation generation, struct view request, struct bytes *out,
		 struct error *err);

#endif
