/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_PPROF_PPROF_H
#define PROFILE_PPROF_PPROF_H

#include "base/bytes.h"

/*
 * What the pprof decoder and encoder share. Field numbers: google/pprof, proto/profile.proto; keys:
 * OpenTelemetry semantic conventions, registries "pprof", "profile" and "process".
 */
enum pprof_profile {
	PPROF_SAMPLE_TYPE = 1,
	PPROF_SAMPLE,
	PPROF_MAPPING,
	PPROF_LOCATION,
	PPROF_FUNCTION,
	PPROF_STRING,
	PPROF_DROP_FRAMES,
	PPROF_KEEP_FRAMES,
	PPROF_TIME,
	PPROF_DURATION,
	PPROF_PERIOD_TYPE,
	PPROF_PERIOD,
	PPROF_COMMENT,
	PPROF_DEFAULT_SAMPLE_TYPE,
	PPROF_DOC_URL,
	PPROF_PROFILE_FIELDS
};

enum pprof_value_type { PPROF_TYPE_TYPE = 1, PPROF_TYPE_UNIT, PPROF_TYPE_FIELDS };

enum pprof_sample { PPROF_SAMPLE_LOCATIONS = 1, PPROF_SAMPLE_VALUES, PPROF_SAMPLE_LABEL };

enum pprof_label_field {
	PPROF_LABEL_KEY = 1,
	PPROF_LABEL_STR,
	PPROF_LABEL_NUM,
	PPROF_LABEL_UNIT,
	PPROF_LABEL_FIELDS
};

enum pprof_mapping {
	PPROF_MAPPING_ID = 1,
	PPROF_MAPPING_START,
	PPROF_MAPPING_LIMIT,
	PPROF_MAPPING_OFFSET,
	PPROF_MAPPING_FILENAME,
	PPROF_MAPPING_BUILD_ID,
	PPROF_MAPPING_HAS_FUNCTIONS, /* the four flags in the order of PPROF_KEY_HAS_FUNCTIONS ...
				      */
	PPROF_MAPPING_FIELDS = PPROF_MAPPING_HAS_FUNCTIONS + 4
};

enum pprof_location {
	PPROF_LOCATION_ID = 1,
	PPROF_LOCATION_MAPPING,
	PPROF_LOCATION_ADDRESS,
	PPROF_LOCATION_LINE,
	PPROF_LOCATION_FOLDED,
	PPROF_LOCATION_FIELDS
};

enum pprof_line { PPROF_LINE_FUNCTION = 1, PPROF_LINE_LINE, PPROF_LINE_COLUMN, PPROF_LINE_FIELDS };

enum pprof_function {
	PPROF_FUNCTION_ID = 1,
	PPROF_FUNCTION_NAME,
	PPROF_FUNCTION_SYSTEM_NAME,
	PPROF_FUNCTION_FILENAME,
	PPROF_FUNCTION_START_LINE,
	PPROF_FUNCTION_FIELDS
};

/* Attributes that carry what OTLP has no field for. */
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
	PPROF_KEY_COUNT
};

enum {
	PPROF_FLAG_COUNT = 4, /* of a mapping */
	PPROF_TYPES_MAX = 256 /* sample types of one pprof */
};

extern const char *const pprof_keys[PPROF_KEY_COUNT];

/* PPROF_KEY_COUNT: none of them. The convention has one list of comments; some translators write a
 * numbered attribute for each, and PPROF_KEY_COMMENT is what they are, too. */
enum pprof_key pprof_key_of(struct view key);

#endif
