/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP/JSON of the older generations, in the numbers of each: opentelemetry-proto v1.3.2
 * (profiles/v1experimental), v1.4.0, v1.5.0, v1.6.0, v1.7.0 and v1.8.0 (profiles/v1development).
 */
#include "profile/otlp/otlp_json_tables.h"

static const struct json_wire_enum temporalities[] = { { "AGGREGATION_TEMPORALITY_UNSPECIFIED", 0 },
						       { "AGGREGATION_TEMPORALITY_DELTA", 1 },
						       { "AGGREGATION_TEMPORALITY_CUMULATIVE", 2 },
						       { 0 } };

/* clang-format off */
#define SCOPE_PROFILES(name_, profile_) \
	JSON_WIRE_TABLE(name_, \
		JSON_WIRE_ONE(1, "scope", otlp_json_scope), \
		JSON_WIRE_MANY(2, "profiles", profile_), \
		JSON_WIRE_FIELD(3, "schemaUrl", STRING) \
	)
#define RESOURCE_PROFILES(name_, scope_profiles_) \
	JSON_WIRE_TABLE(name_, \
		JSON_WIRE_ONE(1, "resource", otlp_json_resource), \
		JSON_WIRE_MANY(2, "scopeProfiles", scope_profiles_), \
		JSON_WIRE_FIELD(3, "schemaUrl", STRING) \
	)

/* ---- 1.4 to 1.8 */

JSON_WIRE_TABLE(value_type,
	JSON_WIRE_FIELD(1, "typeStrindex", INT32),
	JSON_WIRE_FIELD(2, "unitStrindex", INT32),
	JSON_WIRE_NAMES(3, "aggregationTemporality", temporalities),
	OTLP_JSON_MARK("type", OTLP_1_3),
	OTLP_JSON_MARK("unit", OTLP_1_3)
);

/* ---- 1.8 */

JSON_WIRE_TABLE(mapping_1_8,
	JSON_WIRE_FIELD(1, "memoryStart", UINT64),
	JSON_WIRE_FIELD(2, "memoryLimit", UINT64),
	JSON_WIRE_FIELD(3, "fileOffset", UINT64),
	JSON_WIRE_FIELD(4, "filenameStrindex", INT32),
	JSON_WIRE_LIST(5, "attributeIndices", INT32),
	OTLP_JSON_MARK("hasFunctions", OTLP_1_7),
	OTLP_JSON_MARK("hasFilenames", OTLP_1_7),
	OTLP_JSON_MARK("hasLineNumbers", OTLP_1_7),
	OTLP_JSON_MARK("hasInlineFrames", OTLP_1_7)
);
JSON_WIRE_TABLE(location_1_8,
	JSON_WIRE_FIELD(1, "mappingIndex", INT32),
	JSON_WIRE_FIELD(2, "address", UINT64),
	JSON_WIRE_MANY(3, "line", otlp_json_line),
	JSON_WIRE_LIST(4, "attributeIndices", INT32),
	OTLP_JSON_MARK("isFolded", OTLP_1_7),
	OTLP_JSON_MARK("lines", OTLP_CURRENT)
);
JSON_WIRE_TABLE(dictionary_1_8,
	JSON_WIRE_MANY(1, "mappingTable", mapping_1_8),
	JSON_WIRE_MANY(2, "locationTable", location_1_8),
	JSON_WIRE_MANY(3, "functionTable", otlp_json_function),
	JSON_WIRE_MANY(4, "linkTable", otlp_json_link),
	JSON_WIRE_LIST(5, "stringTable", STRING),
	JSON_WIRE_MANY(6, "attributeTable", otlp_json_key_value_and_unit),
	JSON_WIRE_MANY(7, "stackTable", otlp_json_stack),
	OTLP_JSON_MARK("attributeUnits", OTLP_1_7)
);
JSON_WIRE_TABLE(sample_1_8,
	JSON_WIRE_FIELD(1, "stackIndex", INT32),
	JSON_WIRE_LIST(2, "values", INT64),
	JSON_WIRE_LIST(3, "attributeIndices", INT32),
	JSON_WIRE_FIELD(4, "linkIndex", INT32),
	JSON_WIRE_LIST(5, "timestampsUnixNano", FIXED64),
	OTLP_JSON_MARK("value", OTLP_1_7),
	OTLP_JSON_MARK("locationsStartIndex", OTLP_1_7),
	OTLP_JSON_MARK("locationsLength", OTLP_1_7)
);
JSON_WIRE_TABLE(profile_1_8,
	JSON_WIRE_ONE_NOT_LIST(1, "sampleType", value_type, OTLP_1_7),
	JSON_WIRE_MANY(2, "sample", sample_1_8),
	JSON_WIRE_FIELD(3, "timeUnixNano", FIXED64),
	JSON_WIRE_FIELD(4, "durationNano", UINT64),
	JSON_WIRE_ONE(5, "periodType", value_type),
	JSON_WIRE_FIELD(6, "period", INT64),
	JSON_WIRE_LIST(7, "commentStrindices", INT32),
	JSON_WIRE_FIELD(8, "profileId", HEX),
	JSON_WIRE_FIELD(9, "droppedAttributesCount", UINT32),
	JSON_WIRE_LIST(12, "attributeIndices", INT32),
	OTLP_JSON_MARK("samples", OTLP_CURRENT),
	OTLP_JSON_MARK("locationIndices", OTLP_1_7),
	OTLP_JSON_MARK("timeNanos", OTLP_1_7),
	OTLP_JSON_MARK("durationNanos", OTLP_1_7),
	OTLP_JSON_MARK("defaultSampleTypeIndex", OTLP_1_7),
	OTLP_JSON_MARK("stringTable", OTLP_1_4),
	OTLP_JSON_MARK("defaultSampleTypeStrindex", OTLP_1_4),
	OTLP_JSON_MARK("attributes", OTLP_1_4),
	OTLP_JSON_MARK("profile", OTLP_1_3),
	OTLP_JSON_MARK("startTimeUnixNano", OTLP_1_3),
	OTLP_JSON_MARK("endTimeUnixNano", OTLP_1_3)
);
SCOPE_PROFILES(scope_profiles_1_8, profile_1_8);
RESOURCE_PROFILES(resource_profiles_1_8, scope_profiles_1_8);
JSON_WIRE_TABLE(request_1_8,
	JSON_WIRE_MANY(1, "resourceProfiles", resource_profiles_1_8),
	JSON_WIRE_ONE(2, "dictionary", dictionary_1_8),
	OTLP_JSON_MARK("stringTable", OTLP_1_6)
);

/* ---- 1.4 to 1.7 */

JSON_WIRE_TABLE(attribute_unit,
	JSON_WIRE_FIELD(1, "attributeKeyStrindex", INT32),
	JSON_WIRE_FIELD(2, "unitStrindex", INT32)
);
JSON_WIRE_TABLE(attribute,
	JSON_WIRE_FIELD(1, "key", STRING),
	JSON_WIRE_ONE(2, "value", otlp_json_any_value),
	OTLP_JSON_MARK("keyStrindex", OTLP_1_8)
);
JSON_WIRE_TABLE(mapping,
	JSON_WIRE_FIELD(1, "memoryStart", UINT64),
	JSON_WIRE_FIELD(2, "memoryLimit", UINT64),
	JSON_WIRE_FIELD(3, "fileOffset", UINT64),
	JSON_WIRE_FIELD(4, "filenameStrindex", INT32),
	JSON_WIRE_LIST(5, "attributeIndices", INT32),
	JSON_WIRE_FIELD(6, "hasFunctions", BOOL),
	JSON_WIRE_FIELD(7, "hasFilenames", BOOL),
	JSON_WIRE_FIELD(8, "hasLineNumbers", BOOL),
	JSON_WIRE_FIELD(9, "hasInlineFrames", BOOL)
);
JSON_WIRE_TABLE(location,
	JSON_WIRE_FIELD(1, "mappingIndex", INT32),
	JSON_WIRE_FIELD(2, "address", UINT64),
	JSON_WIRE_MANY(3, "line", otlp_json_line),
	JSON_WIRE_FIELD(4, "isFolded", BOOL),
	JSON_WIRE_LIST(5, "attributeIndices", INT32),
	OTLP_JSON_MARK("lines", OTLP_CURRENT)
);
JSON_WIRE_TABLE(sample,
	JSON_WIRE_FIELD(1, "locationsStartIndex", INT32),
	JSON_WIRE_FIELD(2, "locationsLength", INT32),
	JSON_WIRE_LIST(3, "value", INT64),
	JSON_WIRE_LIST(4, "attributeIndices", INT32),
	JSON_WIRE_FIELD(5, "linkIndex", INT32),
	JSON_WIRE_LIST(6, "timestampsUnixNano", UINT64),
	OTLP_JSON_MARK("stackIndex", OTLP_1_8),
	OTLP_JSON_MARK("values", OTLP_1_8)
);

/* ---- 1.6 and 1.7 */

JSON_WIRE_TABLE(profile,
	JSON_WIRE_MANY(1, "sampleType", value_type),
	JSON_WIRE_MANY(2, "sample", sample),
	JSON_WIRE_LIST(3, "locationIndices", INT32),
	JSON_WIRE_FIELD(4, "timeNanos", INT64),
	JSON_WIRE_FIELD(5, "durationNanos", INT64),
	JSON_WIRE_ONE(6, "periodType", value_type),
	JSON_WIRE_FIELD(7, "period", INT64),
	JSON_WIRE_LIST(8, "commentStrindices", INT32),
	JSON_WIRE_FIELD(9, "defaultSampleTypeIndex", INT32),
	JSON_WIRE_FIELD(10, "profileId", HEX),
	JSON_WIRE_FIELD(11, "droppedAttributesCount", UINT32),
	JSON_WIRE_LIST(14, "attributeIndices", INT32),
	OTLP_JSON_MARK("samples", OTLP_CURRENT),
	OTLP_JSON_MARK("timeUnixNano", OTLP_1_8),
	OTLP_JSON_MARK("durationNano", OTLP_1_8),
	OTLP_JSON_MARK("stringTable", OTLP_1_4),
	OTLP_JSON_MARK("defaultSampleTypeStrindex", OTLP_1_4),
	OTLP_JSON_MARK("attributes", OTLP_1_4),
	OTLP_JSON_MARK("profile", OTLP_1_3),
	OTLP_JSON_MARK("startTimeUnixNano", OTLP_1_3),
	OTLP_JSON_MARK("endTimeUnixNano", OTLP_1_3)
);
SCOPE_PROFILES(scope_profiles, profile);
RESOURCE_PROFILES(resource_profiles, scope_profiles);
JSON_WIRE_TABLE(dictionary_1_7,
	JSON_WIRE_MANY(1, "mappingTable", mapping),
	JSON_WIRE_MANY(2, "locationTable", location),
	JSON_WIRE_MANY(3, "functionTable", otlp_json_function),
	JSON_WIRE_MANY(4, "linkTable", otlp_json_link),
	JSON_WIRE_LIST(5, "stringTable", STRING),
	JSON_WIRE_MANY(6, "attributeTable", attribute),
	JSON_WIRE_MANY(7, "attributeUnits", attribute_unit),
	OTLP_JSON_MARK("stackTable", OTLP_1_8)
);
JSON_WIRE_TABLE(request_1_7,
	JSON_WIRE_MANY(1, "resourceProfiles", resource_profiles),
	JSON_WIRE_ONE(2, "dictionary", dictionary_1_7),
	OTLP_JSON_MARK("stringTable", OTLP_1_6)
);
JSON_WIRE_TABLE(request_1_6,
	JSON_WIRE_MANY(1, "resourceProfiles", resource_profiles),
	JSON_WIRE_MANY(2, "mappingTable", mapping),
	JSON_WIRE_MANY(3, "locationTable", location),
	JSON_WIRE_MANY(4, "functionTable", otlp_json_function),
	JSON_WIRE_MANY(5, "linkTable", otlp_json_link),
	JSON_WIRE_LIST(6, "stringTable", STRING),
	JSON_WIRE_MANY(7, "attributeTable", attribute),
	JSON_WIRE_MANY(8, "attributeUnits", attribute_unit),
	OTLP_JSON_MARK("dictionary", OTLP_1_7)
);

/* ---- 1.4 and 1.5; attributes are of 1.4, attributeIndices of 1.5 */

JSON_WIRE_TABLE(profile_1_4,
	JSON_WIRE_MANY(1, "sampleType", value_type),
	JSON_WIRE_MANY(2, "sample", sample),
	JSON_WIRE_MANY(3, "mappingTable", mapping),
	JSON_WIRE_MANY(4, "locationTable", location),
	JSON_WIRE_LIST(5, "locationIndices", INT32),
	JSON_WIRE_MANY(6, "functionTable", otlp_json_function),
	JSON_WIRE_MANY(7, "attributeTable", attribute),
	JSON_WIRE_MANY(8, "attributeUnits", attribute_unit),
	JSON_WIRE_MANY(9, "linkTable", otlp_json_link),
	JSON_WIRE_LIST(10, "stringTable", STRING),
	JSON_WIRE_FIELD(11, "timeNanos", INT64),
	JSON_WIRE_FIELD(12, "durationNanos", INT64),
	JSON_WIRE_ONE(13, "periodType", value_type),
	JSON_WIRE_FIELD(14, "period", INT64),
	JSON_WIRE_LIST(15, "commentStrindices", INT32),
	JSON_WIRE_FIELD(16, "defaultSampleTypeStrindex", INT32),
	JSON_WIRE_FIELD(17, "profileId", HEX),
	JSON_WIRE_MANY(18, "attributes", attribute),
	JSON_WIRE_FIELD(19, "droppedAttributesCount", UINT32),
	JSON_WIRE_LIST(22, "attributeIndices", INT32),
	OTLP_JSON_MARK("samples", OTLP_CURRENT),
	OTLP_JSON_MARK("timeUnixNano", OTLP_1_8),
	OTLP_JSON_MARK("durationNano", OTLP_1_8),
	OTLP_JSON_MARK("defaultSampleTypeIndex", OTLP_1_6),
	OTLP_JSON_MARK("profile", OTLP_1_3),
	OTLP_JSON_MARK("startTimeUnixNano", OTLP_1_3),
	OTLP_JSON_MARK("endTimeUnixNano", OTLP_1_3)
);
SCOPE_PROFILES(scope_profiles_1_4, profile_1_4);
RESOURCE_PROFILES(resource_profiles_1_4, scope_profiles_1_4);
JSON_WIRE_TABLE(request_1_4,
	JSON_WIRE_MANY(1, "resourceProfiles", resource_profiles_1_4),
	OTLP_JSON_MARK("dictionary", OTLP_1_7),
	OTLP_JSON_MARK("stringTable", OTLP_1_6)
);

/* ---- 1.3 */

static const struct json_wire_enum build_id_kinds[] = {
	{ "BUILD_ID_LINKER", 0 },
	{ "BUILD_ID_BINARY_HASH", 1 },
	{ 0 }
};
JSON_WIRE_TABLE(value_type_1_3,
	JSON_WIRE_FIELD(1, "type", INT64),
	JSON_WIRE_FIELD(2, "unit", INT64),
	JSON_WIRE_NAMES(3, "aggregationTemporality", temporalities)
);
JSON_WIRE_TABLE(label_1_3,
	JSON_WIRE_FIELD(1, "key", INT64),
	JSON_WIRE_FIELD(2, "str", INT64),
	JSON_WIRE_FIELD(3, "num", INT64),
	JSON_WIRE_FIELD(4, "numUnit", INT64)
);
JSON_WIRE_TABLE(sample_1_3,
	JSON_WIRE_LIST(1, "locationIndex", UINT64),
	JSON_WIRE_FIELD(7, "locationsStartIndex", UINT64),
	JSON_WIRE_FIELD(8, "locationsLength", UINT64),
	JSON_WIRE_FIELD(9, "stacktraceIdIndex", UINT32),
	JSON_WIRE_LIST(2, "value", INT64),
	JSON_WIRE_MANY(3, "label", label_1_3),
	JSON_WIRE_LIST(10, "attributes", UINT64),
	JSON_WIRE_FIELD(12, "link", UINT64),
	JSON_WIRE_LIST(13, "timestampsUnixNano", UINT64)
);
JSON_WIRE_TABLE(mapping_1_3,
	JSON_WIRE_FIELD(1, "id", UINT64),
	JSON_WIRE_FIELD(2, "memoryStart", UINT64),
	JSON_WIRE_FIELD(3, "memoryLimit", UINT64),
	JSON_WIRE_FIELD(4, "fileOffset", UINT64),
	JSON_WIRE_FIELD(5, "filename", INT64),
	JSON_WIRE_FIELD(6, "buildId", INT64),
	JSON_WIRE_NAMES(11, "buildIdKind", build_id_kinds),
	JSON_WIRE_LIST(12, "attributes", UINT64),
	JSON_WIRE_FIELD(7, "hasFunctions", BOOL),
	JSON_WIRE_FIELD(8, "hasFilenames", BOOL),
	JSON_WIRE_FIELD(9, "hasLineNumbers", BOOL),
	JSON_WIRE_FIELD(10, "hasInlineFrames", BOOL)
);
JSON_WIRE_TABLE(line_1_3,
	JSON_WIRE_FIELD(1, "functionIndex", UINT64),
	JSON_WIRE_FIELD(2, "line", INT64),
	JSON_WIRE_FIELD(3, "column", INT64)
);
JSON_WIRE_TABLE(location_1_3,
	JSON_WIRE_FIELD(1, "id", UINT64),
	JSON_WIRE_FIELD(2, "mappingIndex", UINT64),
	JSON_WIRE_FIELD(3, "address", UINT64),
	JSON_WIRE_MANY(4, "line", line_1_3),
	JSON_WIRE_FIELD(5, "isFolded", BOOL),
	JSON_WIRE_FIELD(6, "typeIndex", UINT32),
	JSON_WIRE_LIST(7, "attributes", UINT64)
);
JSON_WIRE_TABLE(function_1_3,
	JSON_WIRE_FIELD(1, "id", UINT64),
	JSON_WIRE_FIELD(2, "name", INT64),
	JSON_WIRE_FIELD(3, "systemName", INT64),
	JSON_WIRE_FIELD(4, "filename", INT64),
	JSON_WIRE_FIELD(5, "startLine", INT64)
);
JSON_WIRE_TABLE(attribute_unit_1_3,
	JSON_WIRE_FIELD(1, "attributeKey", INT64),
	JSON_WIRE_FIELD(2, "unit", INT64)
);
JSON_WIRE_TABLE(profile_1_3,
	JSON_WIRE_MANY(1, "sampleType", value_type_1_3),
	JSON_WIRE_MANY(2, "sample", sample_1_3),
	JSON_WIRE_MANY(3, "mapping", mapping_1_3),
	JSON_WIRE_MANY(4, "location", location_1_3),
	JSON_WIRE_LIST(15, "locationIndices", INT64),
	JSON_WIRE_MANY(5, "function", function_1_3),
	JSON_WIRE_MANY(16, "attributeTable", otlp_json_key_value),
	JSON_WIRE_MANY(17, "attributeUnits", attribute_unit_1_3),
	JSON_WIRE_MANY(18, "linkTable", otlp_json_link),
	JSON_WIRE_LIST(6, "stringTable", STRING),
	JSON_WIRE_FIELD(7, "dropFrames", INT64),
	JSON_WIRE_FIELD(8, "keepFrames", INT64),
	JSON_WIRE_FIELD(9, "timeNanos", INT64),
	JSON_WIRE_FIELD(10, "durationNanos", INT64),
	JSON_WIRE_ONE(11, "periodType", value_type_1_3),
	JSON_WIRE_FIELD(12, "period", INT64),
	JSON_WIRE_LIST(13, "comment", INT64),
	JSON_WIRE_FIELD(14, "defaultSampleType", INT64)
);
JSON_WIRE_TABLE(container_1_3,
	JSON_WIRE_FIELD(1, "profileId", HEX),
	JSON_WIRE_FIELD(2, "startTimeUnixNano", FIXED64),
	JSON_WIRE_FIELD(3, "endTimeUnixNano", FIXED64),
	JSON_WIRE_MANY(4, "attributes", otlp_json_key_value),
	JSON_WIRE_FIELD(5, "droppedAttributesCount", UINT32),
	JSON_WIRE_ONE(8, "profile", profile_1_3),
	OTLP_JSON_MARK("sampleType", OTLP_1_4)
);
SCOPE_PROFILES(scope_profiles_1_3, container_1_3);
RESOURCE_PROFILES(resource_profiles_1_3, scope_profiles_1_3);
JSON_WIRE_TABLE(request_1_3,
	JSON_WIRE_MANY(1, "resourceProfiles", resource_profiles_1_3),
	OTLP_JSON_MARK("dictionary", OTLP_1_7),
	OTLP_JSON_MARK("stringTable", OTLP_1_6)
);
/* clang-format on */

const struct json_wire_message *const otlp_json_old[OTLP_CURRENT] = {
	[OTLP_1_3] = &request_1_3, [OTLP_1_4] = &request_1_4, [OTLP_1_6] = &request_1_6,
	[OTLP_1_7] = &request_1_7, [OTLP_1_8] = &request_1_8,
};
