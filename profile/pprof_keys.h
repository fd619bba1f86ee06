/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_PPROF_KEYS_H
#define PROFILE_PPROF_KEYS_H

#include "base/bytes.h"

/*
 * The keys of attributes that carry what OTLP has no field for, and pprof and older generations of
 * OTLP have: OpenTelemetry semantic conventions, registries "pprof", "profile" and "process".
 * otlp.profile.aggregation_temporality is ours.
 */
enum pprof_key {
	PPROF_KEY_HAS_FUNCTIONS,
	PPROF_KEY_HAS_FILENAMES,
	PPROF_KEY_HAS_LINE_NUMBERS,
	PPROF_KEY_HAS_INLINE_FRAMES,
	PPROF_KEY_IS_MAIN,
	PPROF_KEY_IS_FOLDED,
	PPROF_KEY_COMMENT,
	PPROF_KEY_DROP_FRAMES,
	PPROF_KEY_KEEP_FRAMES,
	PPROF_KEY_DOC_URL,
	PPROF_KEY_DEFAULT_SAMPLE_TYPE,
	PPROF_KEY_SAMPLE_TYPE_ORDER,
	PPROF_KEY_BUILD_ID_GNU,
	PPROF_KEY_BUILD_ID_HTLHASH,
	PPROF_KEY_BUILD_ID_GO,
	PPROF_KEY_FRAME_TYPE,
	PPROF_KEY_TEMPORALITY,
	PPROF_KEY_COUNT
};

extern const char *const pprof_keys[PPROF_KEY_COUNT];

/* PPROF_KEY_COUNT: none of them. The convention has one list of comments; some translators write a
 * numbered attribute for each, and PPROF_KEY_COMMENT is what they are, too. */
enum pprof_key pprof_key_of(struct view key);

#endif
