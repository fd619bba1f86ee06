/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_OTLP_DECODE_OTLP_H
#define PROFILE_OTLP_DECODE_OTLP_H

#include "profile/otlp/bridge.h"
#include "profile/profiles.h"

/*
 * ExportProfilesServiceRequest (opentelemetry-proto 1.10/1.11, equal on the wire) -> open tables.
 *
 * False with ERROR_INVALID: not decodable (the message names the field), a layout of OTLP 1.9 or
 * older (the message names it), an ambiguous layout, or every Profile is faulty. False with
 * ERROR_TOO_LARGE: over the table cap. Otherwise true. Faulty Profiles have `fault` set and are
 * counted in rejected_profiles; the first reason is in `rejection`.
 *
 * Several dictionaries in one request are concatenated, regardless of their position. A sample with
 * neither values nor timestamps is a fault, as the protocol requires. A known field with a wrong
 * wire type is not decodable; neither are groups.
 *
 * Unknown fields, original_payload and original_payload_format are skipped without being read, so
 * they never leave the program. p must have been reset with the input.
 */
bool decode_otlp(struct profiles *p, struct error *err);

/* The generation of a request. */
struct otlp_layout {
	/* In: OTLP_CURRENT if it is known; OTLP_UNKNOWN: it is judged by the content. */
	enum otlp_generation known;
	/* Out, if it was judged: 1 << enum otlp_generation for each that the request may be of. */
	uint32_t candidates;
	/* Out: it is certainly OTLP_CURRENT. Otherwise nothing contradicts it. */
	bool shown;
};

/*
 * The same for a request of any generation. Only the current layout is decoded: if the candidates
 * include another generation, the result is false with err unchanged, the tables are useless, and
 * the caller decides which one it is, and has it translated (bridge_otlp).
 */
bool decode_otlp_any(struct profiles *p, struct otlp_layout *layout, struct error *err);

/* The error for a request that may be of these generations, and is not to be translated; returns
 * false. */
bool decode_otlp_refuse(uint32_t candidates, struct error *err);

#endif
