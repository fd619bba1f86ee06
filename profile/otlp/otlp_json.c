/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/otlp/otlp_json.h"

#include "profile/otlp/otlp_json_tables.h"

#include <assert.h>

/* Names and numbers of fields: opentelemetry-proto 1.10 and 1.11. */

/* clang-format off */
JSON_WIRE_TABLE(array_value,
	JSON_WIRE_MANY(1, "values", otlp_json_any_value)
);
JSON_WIRE_TABLE(kvlist_value,
	JSON_WIRE_MANY(1, "values", otlp_json_key_value)
);
OTLP_JSON_SHARED(any_value,
	JSON_WIRE_FIELD(1, "stringValue", STRING),
	JSON_WIRE_FIELD(2, "boolValue", BOOL),
	JSON_WIRE_FIELD(3, "intValue", INT64),
	JSON_WIRE_FIELD(4, "doubleValue", DOUBLE),
	JSON_WIRE_ONE(5, "arrayValue", array_value),
	JSON_WIRE_ONE(6, "kvlistValue", kvlist_value),
	JSON_WIRE_FIELD(7, "bytesValue", BASE64),
	JSON_WIRE_FIELD(8, "stringValueStrindex", INT32)
);
OTLP_JSON_SHARED(key_value,
	JSON_WIRE_FIELD(1, "key", STRING),
	JSON_WIRE_ONE(2, "value", otlp_json_any_value),
	JSON_WIRE_FIELD(3, "keyStrindex", INT32)
);
JSON_WIRE_TABLE(entity_ref,
	JSON_WIRE_FIELD(1, "schemaUrl", STRING),
	JSON_WIRE_FIELD(2, "type", STRING),
	JSON_WIRE_LIST(3, "idKeys", STRING),
	JSON_WIRE_LIST(4, "descriptionKeys", STRING)
);
OTLP_JSON_SHARED(resource,
	JSON_WIRE_MANY(1, "attributes", otlp_json_key_value),
	JSON_WIRE_FIELD(2, "droppedAttributesCount", UINT32),
	JSON_WIRE_MANY(3, "entityRefs", entity_ref)
);
OTLP_JSON_SHARED(scope,
	JSON_WIRE_FIELD(1, "name", STRING),
	JSON_WIRE_FIELD(2, "version", STRING),
	JSON_WIRE_MANY(3, "attributes", otlp_json_key_value),
	JSON_WIRE_FIELD(4, "droppedAttributesCount", UINT32)
);

JSON_WIRE_TABLE(mapping,
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
OTLP_JSON_SHARED(line,
	JSON_WIRE_FIELD(1, "functionIndex", INT32),
	JSON_WIRE_FIELD(2, "line", INT64),
	JSON_WIRE_FIELD(3, "column", INT64)
);
JSON_WIRE_TABLE(location,
	JSON_WIRE_FIELD(1, "mappingIndex", INT32),
	JSON_WIRE_FIELD(2, "address", UINT64),
	JSON_WIRE_MANY(3, "lines", otlp_json_line),
	JSON_WIRE_LIST(4, "attributeIndices", INT32),
	OTLP_JSON_MARK("line", OTLP_1_8),
	OTLP_JSON_MARK("isFolded", OTLP_1_7)
);
OTLP_JSON_SHARED(function,
	JSON_WIRE_FIELD(1, "nameStrindex", INT32),
	JSON_WIRE_FIELD(2, "systemNameStrindex", INT32),
	JSON_WIRE_FIELD(3, "filenameStrindex", INT32),
	JSON_WIRE_FIELD(4, "startLine", INT64)
);
OTLP_JSON_SHARED(link,
	JSON_WIRE_FIELD(1, "traceId", HEX),
	JSON_WIRE_FIELD(2, "spanId", HEX)
);
OTLP_JSON_SHARED(key_value_and_unit,
	JSON_WIRE_FIELD(1, "keyStrindex", INT32),
	JSON_WIRE_ONE(2, "value", otlp_json_any_value),
	JSON_WIRE_FIELD(3, "unitStrindex", INT32),
	OTLP_JSON_MARK("key", OTLP_1_7)
);
OTLP_JSON_SHARED(stack,
	JSON_WIRE_LIST(1, "locationIndices", INT32)
);
JSON_WIRE_TABLE(dictionary,
	JSON_WIRE_MANY(1, "mappingTable", mapping),
	JSON_WIRE_MANY(2, "locationTable", location),
	JSON_WIRE_MANY(3, "functionTable", otlp_json_function),
	JSON_WIRE_MANY(4, "linkTable", otlp_json_link),
	JSON_WIRE_LIST(5, "stringTable", STRING),
	JSON_WIRE_MANY(6, "attributeTable", otlp_json_key_value_and_unit),
	JSON_WIRE_MANY(7, "stackTable", otlp_json_stack),
	OTLP_JSON_MARK("attributeUnits", OTLP_1_7)
);

OTLP_JSON_SHARED(value_type,
	JSON_WIRE_FIELD(1, "typeStrindex", INT32),
	JSON_WIRE_FIELD(2, "unitStrindex", INT32),
	OTLP_JSON_MARK("aggregationTemporality", OTLP_1_8),
	OTLP_JSON_MARK("type", OTLP_1_3),
	OTLP_JSON_MARK("unit", OTLP_1_3)
);
JSON_WIRE_TABLE(sample,
	JSON_WIRE_FIELD(1, "stackIndex", INT32),
	JSON_WIRE_LIST(4, "values", INT64),
	JSON_WIRE_LIST(2, "attributeIndices", INT32),
	JSON_WIRE_FIELD(3, "linkIndex", INT32),
	JSON_WIRE_LIST(5, "timestampsUnixNano", FIXED64),
	OTLP_JSON_MARK("value", OTLP_1_7),
	OTLP_JSON_MARK("locationsStartIndex", OTLP_1_7),
	OTLP_JSON_MARK("locationsLength", OTLP_1_7)
);
JSON_WIRE_TABLE(profile,
	JSON_WIRE_ONE_NOT_LIST(1, "sampleType", otlp_json_value_type, OTLP_1_7),
	JSON_WIRE_MANY(2, "samples", sample),
	JSON_WIRE_FIELD(3, "timeUnixNano", FIXED64),
	JSON_WIRE_FIELD(4, "durationNano", UINT64),
	JSON_WIRE_ONE(5, "periodType", otlp_json_value_type),
	JSON_WIRE_FIELD(6, "period", INT64),
	JSON_WIRE_FIELD(7, "profileId", HEX),
	JSON_WIRE_FIELD(8, "droppedAttributesCount", UINT32),
	JSON_WIRE_LIST(11, "attributeIndices", INT32),
	OTLP_JSON_MARK("sample", OTLP_1_8),
	OTLP_JSON_MARK("commentStrindices", OTLP_1_8),
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
JSON_WIRE_TABLE(scope_profiles,
	JSON_WIRE_ONE(1, "scope", otlp_json_scope),
	JSON_WIRE_MANY(2, "profiles", profile),
	JSON_WIRE_FIELD(3, "schemaUrl", STRING)
);
JSON_WIRE_TABLE(resource_profiles,
	JSON_WIRE_ONE(1, "resource", otlp_json_resource),
	JSON_WIRE_MANY(2, "scopeProfiles", scope_profiles),
	JSON_WIRE_FIELD(3, "schemaUrl", STRING)
);
JSON_WIRE_TABLE(request,
	JSON_WIRE_MANY(1, "resourceProfiles", resource_profiles),
	JSON_WIRE_ONE(2, "dictionary", dictionary),
	OTLP_JSON_MARK("stringTable", OTLP_1_6)
);
/* clang-format on */

static bool refuse_mixture(enum otlp_generation one, enum otlp_generation other, struct error *err)
{
	return error_set(err, ERROR_INVALID,
			 "the JSON has names of the layouts of OTLP %s and of OTLP %s",
			 otlp_generation_names[one], otlp_generation_names[other]);
}

/* Each further attempt is for an older generation. */
bool otlp_json_own(struct view json, struct bytes *out, enum otlp_generation *generation,
		   struct error *err)
{
	uint32_t mark;
	*generation = OTLP_CURRENT;
	for (;;) {
		const struct json_wire_message *message =
			*generation == OTLP_CURRENT ? &request : otlp_json_old[*generation];
		if (json_wire_translate(message, json, out, &mark, err))
			return true;
		if (!mark)
			return false;
		if (mark > *generation)
			return refuse_mixture(*generation, mark, err);
		*generation = mark;
		out->len = 0;
	}
}

/* `out` has the JSON in the numbers of its generation: moves that aside, and fills `out` anew. */
static bool modernise(enum otlp_generation generation, struct bytes *out, struct error *err)
{
	struct bytes old = *out;
	struct bytes_share share;
	*out = (struct bytes){ .max = old.max, .meter = old.meter };
	bool ok = bytes_share(&share, out, old.room);
	if (ok) {
		ok = bridge_otlp(generation, bytes_view(&old), out, err);
		bytes_unshare(&share, out);
	}
	bytes_fini(&old);
	return ok;
}

bool otlp_json_translate(struct view json, struct bytes *out, enum otlp_generation *generation,
			 struct error *err)
{
	assert(!out->len);
	return otlp_json_own(json, out, generation, err) &&
	       (*generation == OTLP_CURRENT || modernise(*generation, out, err));
}
