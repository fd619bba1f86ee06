/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_OTLP_DECODE_OTLP_H
#define PROFILE_OTLP_DECODE_OTLP_H

#include "profile/profiles.h"

/*
 * ExportProfilesServiceRequest (opentelemetry-proto 1.10/1.11, equal on the wire) -> open tables.
 *
 * False with ERROR_INVALID: not decodable (the field is named), a layout of OTLP 1.9 or older (the
 * message names the layout), ambiguous layout, or every Profile is bad. False with ERROR_TOO_LARGE:
 * over the table cap. Otherwise true; bad Profiles have `fault` set and are counted in
 * rejected_profiles, with the first reason in rejection.
 *
 * Occurrences of the dictionary append to each other, wherever they stand. A sample with neither
 * values nor timestamps is a fault, as the protocol says. A known field with a wrong wire type, and
 * groups, are not decodable.
 *
 * Unknown fields, original_payload and original_payload_format are skipped unread and so never
 * leave. p must have been reset with the input.
 */
bool decode_otlp(struct profiles *p, struct error *err);

#endif
