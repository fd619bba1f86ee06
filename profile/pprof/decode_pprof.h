/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_PPROF_DECODE_PPROF_H
#define PROFILE_PPROF_DECODE_PPROF_H

#include "profile/profiles.h"

/*
 * perftools.profiles.Profile (google/pprof profile.proto), already inflated -> open tables: one
 * resource, one scope, one Profile per sample type, by the table in profile/pprof/pprof_manual.h.
 *
 * The default sample type, when it is named, comes first, as OTLP wants it; the scope attributes
 * pprof.scope.default_sample_type and pprof.scope.sample_type_order tell encode_pprof the way back,
 * so that pprof -> OTLP -> pprof changes nothing but ids, the order of tables and what nobody
 * refers to. Samples keep their values where they are (spans of the input). Labels trace_id and
 * span_id in lower-case hex of 16 and 8 bytes, both present once, become a Link.
 *
 * The document is p->input or lies within it. What the tables hold already stays, and the document
 * is appended: its entries follow those of others and refer to each other only. All documents
 * together stay within the cap.
 *
 * Accepted or rejected whole: false with ERROR_INVALID and the field named, or ERROR_TOO_LARGE; the
 * tables are then as they were before.
 * `attributes` (may be NULL; ends with name == NULL) become resource attributes with string values;
 * they pass the policy like everything else. Of several with one name the first counts.
 */
bool decode_pprof(struct profiles *p, struct view document, const struct metadatum *attributes,
		  struct error *err);

#endif
