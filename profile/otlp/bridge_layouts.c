/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/otlp/bridge_layouts.h"
#include "profile/otlp/bridge_private.h"

#define V (1 << WIRE_VARINT)
#define Q (1 << WIRE_FIXED64)
#define L (1 << WIRE_LEN)
#define MESSAGE(name, fields) \
	{ \
		name, sizeof fields / sizeof *fields, fields \
	}

static const struct old_field line[] = {
	[1] = { OLD_LINE_FUNCTION, V },
	[2] = { OLD_LINE_LINE, V },
	[3] = { OLD_LINE_COLUMN, V },
};
const struct old_message old_line = MESSAGE("Line", line);

static const struct old_field link[] = { [1] = { 1, L }, [2] = { 2, L } };
const struct old_message old_link = MESSAGE("Link", link);

static const struct old_field value_type[] = {
	[1] = { OLD_TYPE, V },
	[2] = { OLD_UNIT_OF_TYPE, V },
	[3] = { OLD_TEMPORALITY, V },
};
const struct old_message old_value_type = MESSAGE("ValueType", value_type);

static const struct old_field attribute_unit[] = {
	[1] = { OLD_UNIT_KEY, V },
	[2] = { OLD_UNIT_UNIT, V },
};
const struct old_message old_attribute_unit = MESSAGE("AttributeUnit", attribute_unit);

static const struct old_field label[] = {
	[1] = { OLD_LABEL_KEY, V },
	[2] = { OLD_LABEL_STR, V },
	[3] = { OLD_LABEL_NUM, V },
	[4] = { OLD_LABEL_UNIT, V },
};
const struct old_message old_label = MESSAGE("Label", label);

static const struct old_field key_value[] = { [1] = { OLD_KEY, L }, [2] = { OLD_VALUE, L } };
const struct old_message old_key_value = MESSAGE("KeyValue", key_value);

/* 1.3 */
static const struct old_field container[] = {
	[1] = { OLD_ID, L },      [2] = { OLD_START, Q },
	[3] = { OLD_END, Q },     [4] = { OLD_INLINE_ATTRIBUTE, L },
	[5] = { OLD_DROPPED, V }, [8] = { OLD_PROFILE, L },
};
static const struct old_field profile_3[] = {
	[1] = { OLD_SAMPLE_TYPE, L },
	[2] = { OLD_SAMPLE, L },
	[7] = { OLD_DROP_FRAMES, V },
	[8] = { OLD_KEEP_FRAMES, V },
	[9] = { OLD_TIME, V },
	[10] = { OLD_DURATION, V },
	[11] = { OLD_PERIOD_TYPE, L },
	[12] = { OLD_PERIOD, V },
	[13] = { OLD_COMMENT, V | L },
	[14] = { OLD_DEFAULT_STRING, V },
	[15] = { OLD_LOCATION_INDICES, V | L },
};
static const struct old_field tables_3[] = {
	[3] = { BRIDGE_MAPPING, L }, [4] = { BRIDGE_LOCATION, L },   [5] = { BRIDGE_FUNCTION, L },
	[6] = { BRIDGE_STRING, L },  [16] = { BRIDGE_ATTRIBUTE, L }, [17] = { OLD_UNIT, L },
	[18] = { BRIDGE_LINK, L },
};
static const struct old_field sample_3[] = {
	[1] = { OLD_LOCATIONS, V | L }, [2] = { OLD_VALUES, V | L },
	[3] = { OLD_LABEL, L },         [7] = { OLD_RANGE_START, V },
	[8] = { OLD_RANGE_LENGTH, V },  [10] = { OLD_SAMPLE_ATTRIBUTES, V | L },
	[12] = { OLD_SAMPLE_LINK, V },  [13] = { OLD_TIMESTAMPS, V | L },
};
static const struct old_field mapping_3[] = {
	[2] = { OLD_MEMORY_START, V },
	[3] = { OLD_MEMORY_LIMIT, V },
	[4] = { OLD_FILE_OFFSET, V },
	[5] = { OLD_FILENAME, V },
	[6] = { OLD_BUILD_ID, V },
	[7] = { OLD_HAS_FUNCTIONS, V },
	[8] = { OLD_HAS_FILENAMES, V },
	[9] = { OLD_HAS_LINE_NUMBERS, V },
	[10] = { OLD_HAS_INLINE_FRAMES, V },
	[11] = { OLD_BUILD_ID_KIND, V },
	[12] = { OLD_MAPPING_ATTRIBUTES, V | L },
};
static const struct old_field location_3[] = {
	[2] = { OLD_MAPPING, V },    [3] = { OLD_ADDRESS, V },
	[4] = { OLD_LINE, L },       [5] = { OLD_FOLDED, V },
	[6] = { OLD_FRAME_TYPE, V }, [7] = { OLD_LOCATION_ATTRIBUTES, V | L },
};
static const struct old_field function_3[] = {
	[2] = { OLD_NAME, V },
	[3] = { OLD_SYSTEM_NAME, V },
	[4] = { OLD_FUNCTION_FILENAME, V },
	[5] = { OLD_START_LINE, V },
};
const struct old_layout old_layout_1_3 = {
	.container = MESSAGE("ProfileContainer", container),
	.tables = MESSAGE("Profile", tables_3),
	.profile = MESSAGE("Profile", profile_3),
	.sample = MESSAGE("Sample", sample_3),
	.mapping = MESSAGE("Mapping", mapping_3),
	.location = MESSAGE("Location", location_3),
	.function = MESSAGE("Function", function_3),
	.per_profile = true,
	.always_mapping = true,
	.shift = 1,
};

/* 1.4 to 1.7 */
static const struct old_field sample[] = {
	[1] = { OLD_RANGE_START, V }, [2] = { OLD_RANGE_LENGTH, V },
	[3] = { OLD_VALUES, V | L },  [4] = { OLD_SAMPLE_ATTRIBUTES, V | L },
	[5] = { OLD_SAMPLE_LINK, V }, [6] = { OLD_TIMESTAMPS, V | L },
};
static const struct old_field mapping[] = {
	[1] = { OLD_MEMORY_START, V },
	[2] = { OLD_MEMORY_LIMIT, V },
	[3] = { OLD_FILE_OFFSET, V },
	[4] = { OLD_FILENAME, V },
	[5] = { OLD_MAPPING_ATTRIBUTES, V | L },
	[6] = { OLD_HAS_FUNCTIONS, V },
	[7] = { OLD_HAS_FILENAMES, V },
	[8] = { OLD_HAS_LINE_NUMBERS, V },
	[9] = { OLD_HAS_INLINE_FRAMES, V },
};
static const struct old_field location[] = {
	[1] = { OLD_MAPPING, V },
	[2] = { OLD_ADDRESS, V },
	[3] = { OLD_LINE, L },
	[4] = { OLD_FOLDED, V },
	[5] = { OLD_LOCATION_ATTRIBUTES, V | L },
};
static const struct old_field function[] = {
	[1] = { OLD_NAME, V },
	[2] = { OLD_SYSTEM_NAME, V },
	[3] = { OLD_FUNCTION_FILENAME, V },
	[4] = { OLD_START_LINE, V },
};
/* 18 is of 1.4, 22 of 1.5 */
static const struct old_field profile_4[] = {
	[1] = { OLD_SAMPLE_TYPE, L },
	[2] = { OLD_SAMPLE, L },
	[5] = { OLD_LOCATION_INDICES, V | L },
	[11] = { OLD_TIME, V },
	[12] = { OLD_DURATION, V },
	[13] = { OLD_PERIOD_TYPE, L },
	[14] = { OLD_PERIOD, V },
	[15] = { OLD_COMMENT, V | L },
	[16] = { OLD_DEFAULT_STRING, V },
	[17] = { OLD_ID, L },
	[18] = { OLD_INLINE_ATTRIBUTE, L },
	[19] = { OLD_DROPPED, V },
	[22] = { OLD_ATTRIBUTE_INDICES, V | L },
};
static const struct old_field tables_4[] = {
	[3] = { BRIDGE_MAPPING, L },   [4] = { BRIDGE_LOCATION, L }, [6] = { BRIDGE_FUNCTION, L },
	[7] = { BRIDGE_ATTRIBUTE, L }, [8] = { OLD_UNIT, L },        [9] = { BRIDGE_LINK, L },
	[10] = { BRIDGE_STRING, L },
};
static const struct old_field profile_6[] = {
	[1] = { OLD_SAMPLE_TYPE, L },
	[2] = { OLD_SAMPLE, L },
	[3] = { OLD_LOCATION_INDICES, V | L },
	[4] = { OLD_TIME, V },
	[5] = { OLD_DURATION, V },
	[6] = { OLD_PERIOD_TYPE, L },
	[7] = { OLD_PERIOD, V },
	[8] = { OLD_COMMENT, V | L },
	[9] = { OLD_DEFAULT_INDEX, V },
	[10] = { OLD_ID, L },
	[11] = { OLD_DROPPED, V },
	[14] = { OLD_ATTRIBUTE_INDICES, V | L },
};
static const struct old_field tables_6[] = {
	[2] = { BRIDGE_MAPPING, L }, [3] = { BRIDGE_LOCATION, L }, [4] = { BRIDGE_FUNCTION, L },
	[5] = { BRIDGE_LINK, L },    [6] = { BRIDGE_STRING, L },   [7] = { BRIDGE_ATTRIBUTE, L },
	[8] = { OLD_UNIT, L },
};
static const struct old_field tables_7[] = {
	[1] = { BRIDGE_MAPPING, L }, [2] = { BRIDGE_LOCATION, L }, [3] = { BRIDGE_FUNCTION, L },
	[4] = { BRIDGE_LINK, L },    [5] = { BRIDGE_STRING, L },   [6] = { BRIDGE_ATTRIBUTE, L },
	[7] = { OLD_UNIT, L },
};

#define ENTRIES \
	.sample = MESSAGE("Sample", sample), .mapping = MESSAGE("Mapping", mapping), \
	.location = MESSAGE("Location", location), .function = MESSAGE("Function", function)

const struct old_layout old_layout_1_4 = {
	.tables = MESSAGE("Profile", tables_4),
	.profile = MESSAGE("Profile", profile_4),
	ENTRIES,
	.per_profile = true,
};
const struct old_layout old_layout_1_6 = {
	.tables = MESSAGE("ProfilesData", tables_6),
	.profile = MESSAGE("Profile", profile_6),
	ENTRIES,
};
const struct old_layout old_layout_1_7 = {
	.tables = MESSAGE("ProfilesDictionary", tables_7),
	.profile = MESSAGE("Profile", profile_6),
	ENTRIES,
	.dictionary = true,
};
