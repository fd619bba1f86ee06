/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_OTLP_DECODE_OTLP_H
#define PROFILE_OTLP_DECODE_OTLP_H

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

#endif
