/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/pprof_keys.h"

#include <string.h>

const char *const pprof_keys[PPROF_KEY_COUNT] = {
	[PPROF_KEY_HAS_FUNCTIONS] = "pprof.mapping.has_functions",
	[PPROF_KEY_HAS_FILENAMES] = "pprof.mapping.has_filenames",
	[PPROF_KEY_HAS_LINE_NUMBERS] = "pprof.mapping.has_line_numbers",
	[PPROF_KEY_HAS_INLINE_FRAMES] = "pprof.mapping.has_inline_frames",
	[PPROF_KEY_IS_MAIN] = "pprof.mapping.is_main",
	[PPROF_KEY_IS_FOLDED] = "pprof.location.is_folded",
	[PPROF_KEY_COMMENT] = "pprof.profile.comment",
	[PPROF_KEY_DROP_FRAMES] = "pprof.profile.drop_frames",
	[PPROF_KEY_KEEP_FRAMES] = "pprof.profile.keep_frames",
	[PPROF_KEY_DOC_URL] = "pprof.profile.doc_url",
	[PPROF_KEY_DEFAULT_SAMPLE_TYPE] = "pprof.scope.default_sample_type",
	[PPROF_KEY_SAMPLE_TYPE_ORDER] = "pprof.scope.sample_type_order",
	[PPROF_KEY_BUILD_ID_GNU] = "process.executable.build_id.gnu",
	[PPROF_KEY_BUILD_ID_HTLHASH] = "process.executable.build_id.htlhash",
	[PPROF_KEY_BUILD_ID_GO] = "process.executable.build_id.go",
	[PPROF_KEY_FRAME_TYPE] = "profile.frame.type",
	[PPROF_KEY_TEMPORALITY] = "otlp.profile.aggregation_temporality",
};

static bool is_numbered_comment(struct view key)
{
	const char *prefix = pprof_keys[PPROF_KEY_COMMENT];
	size_t len = strlen(prefix);
	return key.len > len + 1 && memcmp(key.at, prefix, len) == 0 && key.at[len] == '.';
}

/* Most keys are not ours, and differ in the first two letters. */
enum pprof_key pprof_key_of(struct view key)
{
	if (key.len < 2 || key.at[0] != 'p' || (key.at[1] != 'p' && key.at[1] != 'r'))
		return PPROF_KEY_COUNT;
	for (enum pprof_key i = 0; i < PPROF_KEY_COUNT; i++)
		if (view_is(key, pprof_keys[i]))
			return i;
	return is_numbered_comment(key) ? PPROF_KEY_COMMENT : PPROF_KEY_COUNT;
}
