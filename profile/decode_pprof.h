/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_DECODE_PPROF_H
#define PROFILE_DECODE_PPROF_H

#include "profile/profiles.h"

/*
 * perftools.profiles.Profile (google/pprof profile.proto), already inflated -> open tables: one
 * resource, one scope, one Profile per sample type, by the table in docs/MANUAL.md, "pprof".
 *
 * Accepted or refused whole: false with ERROR_INVALID and the field named, or ERROR_TOO_LARGE.
 * `attributes` (may be NULL; ends with name == NULL) become resource attributes with string values;
 * they pass the policy like everything else.
 */
bool decode_pprof(struct profiles *p, const struct metadatum *attributes, struct error *err);

#endif
