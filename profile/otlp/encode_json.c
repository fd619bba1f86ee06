/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/otlp/encode_json.h"
#include "base/base64.h"
#include "profile/value_text.h"
#include "profile/wire.h"

#include <math.h>

/* One pass over the sealed bytes, driven by tables of the fields of each message. In sealed bytes
 * the elements of a repeated field are adjacent: an array opens at its first element and closes at
 * the next field. Fields that are in no table (original_payload) are skipped. */
enum json_kind {
	JSON_NONE,
	JSON_TEXT,
	JSON_HEX,     /* bytes: IDs of traces, spans and profiles */
	JSON_BASE64,  /* bytes: all others */
	JSON_INTEGER, /* up to 32 bits: a number */
	JSON_INT64,   /* 64 bits: a decimal string */
	JSON_UINT64,
	JSON_FIXED64,
	JSON_BOOL,
	JSON_DOUBLE,
	JSON_MESSAGE
};

struct json_field {
	const char *name;
	enum json_kind kind;
	bool repeated;
	const struct json_message *message;
};

/* Fields by number. */
struct json_message {
	const struct json_field *fields;
	uint32_t count;
};

#define MESSAGE(name, ...) \
	static const struct json_field name##_fields[] = { { 0 }, __VA_ARGS__ }; \
	static const struct json_message name = { name##_fields, \
						  sizeof name##_fields / sizeof *name##_fields }
#define ONE(name, kind) \
	{ \
		name, kind, false, NULL \
	}
#define MANY(name, kind) \
	{ \
		name, kind, true, NULL \
	}
#define SUB(name, message) \
	{ \
		name, JSON_MESSAGE, false, &message \
	}
#define SUBS(name, message) \
	{ \
		name, JSON_MESSAGE, true, &message \
	}

/* Names and numbers: opentelemetry-proto 1.11. AnyValue is recursive. */
static const struct json_message any_value;
MESSAGE(key_value, ONE("key", JSON_TEXT), SUB("value", any_value),
	ONE("keyStrindex", JSON_INTEGER));
MESSAGE(array_value, SUBS("values", any_value));
MESSAGE(kvlist_value, SUBS("values", key_value));
MESSAGE(any_value, ONE("stringValue", JSON_TEXT), ONE("boolValue", JSON_BOOL),
	ONE("intValue", JSON_INT64), ONE("doubleValue", JSON_DOUBLE),
	SUB("arrayValue", array_value), SUB("kvlistValue", kvlist_value),
	ONE("bytesValue", JSON_BASE64), ONE("stringValueStrindex", JSON_INTEGER));
MESSAGE(entity_ref, ONE("schemaUrl", JSON_TEXT), ONE("type", JSON_TEXT), MANY("idKeys", JSON_TEXT),
	MANY("descriptionKeys", JSON_TEXT));
MESSAGE(resource, SUBS("attributes", key_value), ONE("droppedAttributesCount", JSON_INTEGER),
	SUBS("entityRefs", entity_ref));
MESSAGE(scope, ONE("name", JSON_TEXT), ONE("version", JSON_TEXT), SUBS("attributes", key_value),
	ONE("droppedAttributesCount", JSON_INTEGER));
MESSAGE(value_type, ONE("typeStrindex", JSON_INTEGER), ONE("unitStrindex", JSON_INTEGER));
MESSAGE(sample, ONE("stackIndex", JSON_INTEGER), MANY("attributeIndices", JSON_INTEGER),
	ONE("linkIndex", JSON_INTEGER), MANY("values", JSON_INT64),
	MANY("timestampsUnixNano", JSON_FIXED64));
MESSAGE(profile, SUB("sampleType", value_type), SUBS("samples", sample),
	ONE("timeUnixNano", JSON_FIXED64), ONE("durationNano", JSON_UINT64),
	SUB("periodType", value_type), ONE("period", JSON_INT64), ONE("profileId", JSON_HEX),
	ONE("droppedAttributesCount", JSON_INTEGER), { 0 }, { 0 },
	MANY("attributeIndices", JSON_INTEGER));
MESSAGE(scope_profiles, SUB("scope", scope), SUBS("profiles", profile),
	ONE("schemaUrl", JSON_TEXT));
MESSAGE(resource_profiles, SUB("resource", resource), SUBS("scopeProfiles", scope_profiles),
	ONE("schemaUrl", JSON_TEXT));
MESSAGE(mapping, ONE("memoryStart", JSON_UINT64), ONE("memoryLimit", JSON_UINT64),
	ONE("fileOffset", JSON_UINT64), ONE("filenameStrindex", JSON_INTEGER),
	MANY("attributeIndices", JSON_INTEGER));
MESSAGE(line, ONE("functionIndex", JSON_INTEGER), ONE("line", JSON_INT64),
	ONE("column", JSON_INT64));
MESSAGE(location, ONE("mappingIndex", JSON_INTEGER), ONE("address", JSON_UINT64),
	SUBS("lines", line), MANY("attributeIndices", JSON_INTEGER));
MESSAGE(function, ONE("nameStrindex", JSON_INTEGER), ONE("systemNameStrindex", JSON_INTEGER),
	ONE("filenameStrindex", JSON_INTEGER), ONE("startLine", JSON_INT64));
MESSAGE(link, ONE("traceId", JSON_HEX), ONE("spanId", JSON_HEX));
MESSAGE(table_attribute, ONE("keyStrindex", JSON_INTEGER), SUB("value", any_value),
	ONE("unitStrindex", JSON_INTEGER));
MESSAGE(stack, MANY("locationIndices", JSON_INTEGER));
MESSAGE(dictionary, SUBS("mappingTable", mapping), SUBS("locationTable", location),
	SUBS("functionTable", function), SUBS("linkTable", link), MANY("stringTable", JSON_TEXT),
	SUBS("attributeTable", table_attribute), SUBS("stackTable", stack));
MESSAGE(request, SUBS("resourceProfiles", resource_profiles), SUB("dictionary", dictionary));

/* Names of opentelemetry-proto 1.8, with the numbers of the sealed bytes. */
MESSAGE(profile_1_8, SUB("sampleType", value_type), SUBS("sample", sample),
	ONE("timeUnixNano", JSON_FIXED64), ONE("durationNano", JSON_UINT64),
	SUB("periodType", value_type), ONE("period", JSON_INT64), ONE("profileId", JSON_HEX),
	ONE("droppedAttributesCount", JSON_INTEGER), { 0 }, { 0 },
	MANY("attributeIndices", JSON_INTEGER));
MESSAGE(scope_profiles_1_8, SUB("scope", scope), SUBS("profiles", profile_1_8),
	ONE("schemaUrl", JSON_TEXT));
MESSAGE(resource_profiles_1_8, SUB("resource", resource), SUBS("scopeProfiles", scope_profiles_1_8),
	ONE("schemaUrl", JSON_TEXT));
MESSAGE(location_1_8, ONE("mappingIndex", JSON_INTEGER), ONE("address", JSON_UINT64),
	SUBS("line", line), MANY("attributeIndices", JSON_INTEGER));
MESSAGE(dictionary_1_8, SUBS("mappingTable", mapping), SUBS("locationTable", location_1_8),
	SUBS("functionTable", function), SUBS("linkTable", link), MANY("stringTable", JSON_TEXT),
	SUBS("attributeTable", table_attribute), SUBS("stackTable", stack));
MESSAGE(request_1_8, SUBS("resourceProfiles", resource_profiles_1_8),
	SUB("dictionary", dictionary_1_8));

/* The writers return nothing. A full buffer stays full, and encode_json checks it at the end. */
struct json {
	struct bytes *out;
	bool full;
	bool disordered; /* the elements of a repeated field are not adjacent */
};

static void put(struct json *j, const void *data, size_t len)
{
	if (!bytes_add(j->out, data, len))
		j->full = true;
}

static void put_byte(struct json *j, char byte)
{
	put(j, &byte, 1);
}

static void put_name(struct json *j, const char *name)
{
	put_byte(j, '"');
	put(j, name, strlen(name));
	put(j, "\":", 2);
}

static void put_text(struct json *j, struct view text)
{
	if (!value_text_quote(j->out, text))
		j->full = true;
}

static void put_hex(struct json *j, struct view bytes)
{
	static const char digits[] = "0123456789abcdef";
	put_byte(j, '"');
	for (size_t i = 0; i < bytes.len; i++)
		put(j, (char[]){ digits[bytes.at[i] >> 4], digits[bytes.at[i] & 15] }, 2);
	put_byte(j, '"');
}

static void put_base64(struct json *j, struct view bytes)
{
	put_byte(j, '"');
	if (!base64_add(j->out, bytes, true))
		j->full = true;
	put_byte(j, '"');
}

static void put_number(struct json *j, uint64_t value, bool negative)
{
	char text[21], *at = text + sizeof text;
	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	if (negative)
		*--at = '-';
	put(j, at, (size_t)(text + sizeof text - at));
}

static void put_signed(struct json *j, int64_t value)
{
	put_number(j, value < 0 ? -(uint64_t)value : (uint64_t)value, value < 0);
}

static void put_double(struct json *j, uint64_t bits)
{
	double value;
	char room[VALUE_TEXT_ROOM];
	memcpy(&value, &bits, sizeof value);
	struct view text = value_text_double(value, room);
	if (value == 0 && signbit(value))
		text = view_of(
			"-0.0"); /* many readers parse "-0" as an integer, which has no sign */
	if (!isfinite(value))
		put_byte(j, '"');
	put(j, text.at, text.len);
	if (!isfinite(value))
		put_byte(j, '"');
}

static void put_scalar(struct json *j, enum json_kind kind, uint64_t value)
{
	bool quoted = kind == JSON_INT64 || kind == JSON_UINT64 || kind == JSON_FIXED64;
	if (quoted)
		put_byte(j, '"');
	if (kind == JSON_BOOL)
		put(j, value ? "true" : "false", value ? 4 : 5);
	else if (kind == JSON_DOUBLE)
		put_double(j, value);
	else if (kind == JSON_UINT64 || kind == JSON_FIXED64)
		put_number(j, value, false);
	else
		put_signed(j, (int64_t)value);
	if (quoted)
		put_byte(j, '"');
}

static void put_packed(struct json *j, enum json_kind kind, struct wire w)
{
	for (bool first = true; wire_more(&w); first = false) {
		if (!first)
			put_byte(j, ',');
		put_scalar(j, kind, kind == JSON_FIXED64 ? wire_fixed64(&w) : wire_varint(&w));
	}
}

static void put_message(struct json *j, struct view v, const struct json_message *message);

static void put_value(struct json *j, const struct json_field *field,
		      const struct wire_field *value)
{
	if (field->kind == JSON_MESSAGE)
		put_message(j, value->view, field->message);
	else if (field->kind == JSON_TEXT)
		put_text(j, value->view);
	else if (field->kind == JSON_HEX)
		put_hex(j, value->view);
	else if (field->kind == JSON_BASE64)
		put_base64(j, value->view);
	else if (value->type == WIRE_LEN)
		put_packed(j, field->kind, wire_of(value->view));
	else
		put_scalar(j, field->kind, value->value);
}

static void put_message(struct json *j, struct view v, const struct json_message *message)
{
	struct wire w = wire_of(v);
	struct wire_field value;
	uint32_t last = 0, seen = 0;
	put_byte(j, '{');
	while (wire_next(&w, &value)) {
		if (value.number >= message->count || !message->fields[value.number].name)
			continue;
		const struct json_field *field = &message->fields[value.number];
		bool goes_on = value.number == last && field->repeated;
		if (last && !goes_on && message->fields[last].repeated)
			put_byte(j, ']');
		if (last)
			put_byte(j, ',');
		if (!goes_on) {
			j->disordered |= seen >> value.number & 1;
			put_name(j, field->name);
			if (field->repeated)
				put_byte(j, '[');
		}
		put_value(j, field, &value);
		last = value.number;
		seen |= 1u << last;
	}
	if (last && message->fields[last].repeated)
		put_byte(j, ']');
	put_byte(j, '}');
	j->disordered |= !wire_done(&w);
}

static bool encode(const struct packet *packet, const struct json_message *names, struct bytes *out,
		   struct error *err)
{
	struct json j = { .out = out };
	put_message(&j, bytes_view(&packet->otlp), names);
	if (j.full)
		return error_set(err, ERROR_TOO_LARGE, "the JSON exceeds %zu bytes", out->max);
	if (j.disordered)
		return error_set(err, ERROR_INTERNAL, "the packet is malformed");
	return true;
}

bool encode_json(const struct packet *packet, struct bytes *out, struct error *err)
{
	return encode(packet, &request, out, err);
}

bool encode_json_1_8(const struct packet *packet, struct bytes *out, struct error *err)
{
	return encode(packet, &request_1_8, out, err);
}
