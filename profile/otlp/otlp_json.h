/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_OTLP_OTLP_JSON_H
#define PROFILE_OTLP_OTLP_JSON_H

#include "profile/otlp/bridge.h"

/*
 * OTLP/JSON -> ExportProfilesServiceRequest in the current layout (or ProfilesData, which is equal
 * on the wire), in `out`, which is empty. What the translation needs besides is charged to out's
 * meter.
 * The rules are those of json_wire.h; IDs are hexadecimal (opentelemetry.io/docs/specs/otlp, "JSON
 * Protobuf Encoding").
 *
 * JSON has names where protobuf has numbers, so the generation is known from the names. 1.9 has
 * those of the current layout. A document with the names of an older generation is written in the
 * numbers of that one, and bridge_otlp translates it. *generation is the one whose names the
 * document has; OTLP_CURRENT if it has none that differ. `original_payload` and its format are
 * skipped, as in protobuf.
 *
 * False with ERROR_INVALID: not JSON, not this message (err names the field), or names of several
 * generations. False without setting err: `out` is full.
 */
bool otlp_json_translate(struct view json, struct bytes *out, enum otlp_generation *generation,
			 struct error *err);

#endif
