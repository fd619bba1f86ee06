/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/encode_json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/quote.h"
#include "profile/wire.h"

/*
 * One table for each message (opentelemetry-proto 1.11), one walker for all. It relies on the sealed
 * bytes being canonical: a repeated field stands in one piece, and numbers that repeat are packed.
 */
enum kind {
	KIND_STRING,
	KIND_BASE64,
	KIND_HEX,
	KIND_NUMBER, /* 32 bits */
	KIND_TEXT_SIGNED, /* 64 bits: a string in JSON */
	KIND_TEXT_UNSIGNED,
	KIND_TEXT_FIXED,
	KIND_BOOL,
	KIND_DOUBLE,
	KIND_MESSAGE
};

struct field {
	uint32_t number;
	const char *name;
	enum kind kind;
	bool repeated;
	const struct field *message;
};

/* Deeper than any value that the decoders let in. */
#define DEPTH_MAX 64

#define ONE(number, name, kind) { number, name, KIND_##kind, false, NULL }
#define MANY(number, name, kind) { number, name, KIND_##kind, true, NULL }
#define SUB(number, name, table) { number, name, KIND_MESSAGE, false, table }
#define SUBS(number, name, table) { number, name, KIND_MESSAGE, true, table }

static const struct field value_fields[];

static const struct field key_value_fields[] = {
	ONE(1, "key", STRING), SUB(2, "value", value_fields), ONE(3, "keyStrindex", NUMBER), { 0 }
};
static const struct field array_fields[] = { SUBS(1, "values", value_fields), { 0 } };
static const struct field kvlist_fields[] = { SUBS(1, "values", key_value_fields), { 0 } };
static const struct field value_fields[] = {
	ONE(1, "stringValue", STRING),
	ONE(2, "boolValue", BOOL),
	ONE(3, "intValue", TEXT_SIGNED),
	ONE(4, "doubleValue", DOUBLE),
	SUB(5, "arrayValue", array_fields),
	SUB(6, "kvlistValue", kvlist_fields),
	ONE(7, "bytesValue", BASE64),
	ONE(8, "stringValueStrindex", NUMBER),
	{ 0 }
};
static const struct field entity_fields[] = {
	ONE(1, "schemaUrl", STRING), ONE(2, "type", STRING), MANY(3, "idKeys", STRING),
	MANY(4, "descriptionKeys", STRING), { 0 }
};
static const struct field resource_fields[] = {
	SUBS(1, "attributes", key_value_fields), ONE(2, "droppedAttributesCount", NUMBER),
	SUBS(3, "entityRefs", entity_fields), { 0 }
};
static const struct field scope_fields[] = {
	ONE(1, "name", STRING), ONE(2, "version", STRING), SUBS(3, "attributes", key_value_fields),
	ONE(4, "droppedAttributesCount", NUMBER), { 0 }
};
static const struct field value_type_fields[] = {
	ONE(1, "typeStrindex", NUMBER), ONE(2, "unitStrindex", NUMBER), { 0 }
};
static const struct field sample_fields[] = {
	ONE(1, "stackIndex", NUMBER), MANY(2, "attributeIndices", NUMBER), ONE(3, "linkIndex", NUMBER),
	MANY(4, "values", TEXT_SIGNED), MANY(5, "timestampsUnixNano", TEXT_FIXED), { 0 }
};
static const struct field profile_fields[] = {
	SUB(1, "sampleType", value_type_fields),
	SUBS(2, "samples", sample_fields),
	ONE(3, "timeUnixNano", TEXT_FIXED),
	ONE(4, "durationNano", TEXT_UNSIGNED),
	SUB(5, "periodType", value_type_fields),
	ONE(6, "period", TEXT_SIGNED),
	ONE(7, "profileId", HEX),
	ONE(8, "droppedAttributesCount", NUMBER),
	MANY(11, "attributeIndices", NUMBER),
	{ 0 }
};
static const struct field scope_profiles_fields[] = {
	SUB(1, "scope", scope_fields), SUBS(2, "profiles", profile_fields), ONE(3, "schemaUrl", STRING), { 0 }
};
static const struct field resource_profiles_fields[] = {
	SUB(1, "resource", resource_fields), SUBS(2, "scopeProfiles", scope_profiles_fields),
	ONE(3, "schemaUrl", STRING), { 0 }
};
static const struct field mapping_fields[] = {
	ONE(1, "memoryStart", TEXT_UNSIGNED), ONE(2, "memoryLimit", TEXT_UNSIGNED),
	ONE(3, "fileOffset", TEXT_UNSIGNED), ONE(4, "filenameStrindex", NUMBER),
	MANY(5, "attributeIndices", NUMBER), { 0 }
};
static const struct field line_fields[] = {
	ONE(1, "functionIndex", NUMBER), ONE(2, "line", TEXT_SIGNED), ONE(3, "column", TEXT_SIGNED), { 0 }
};
static const struct field location_fields[] = {
	ONE(1, "mappingIndex", NUMBER), ONE(2, "address", TEXT_UNSIGNED), SUBS(3, "lines", line_fields),
	MANY(4, "attributeIndices", NUMBER), { 0 }
};
static const struct field function_fields[] = {
	ONE(1, "nameStrindex", NUMBER), ONE(2, "systemNameStrindex", NUMBER),
	ONE(3, "filenameStrindex", NUMBER), ONE(4, "startLine", TEXT_SIGNED), { 0 }
};
static const struct field link_fields[] = { ONE(1, "traceId", HEX), ONE(2, "spanId", HEX), { 0 } };
static const struct field attribute_fields[] = {
	ONE(1, "keyStrindex", NUMBER), SUB(2, "value", value_fields), ONE(3, "unitStrindex", NUMBER), { 0 }
};
static const struct field stack_fields[] = { MANY(1, "locationIndices", NUMBER), { 0 } };
static const struct field dictionary_fields[] = {
	SUBS(1, "mappingTable", mapping_fields),
	SUBS(2, "locationTable", location_fields),
	SUBS(3, "functionTable", function_fields),
	SUBS(4, "linkTable", link_fields),
	MANY(5, "stringTable", STRING),
	SUBS(6, "attributeTable", attribute_fields),
	SUBS(7, "stackTable", stack_fields),
	{ 0 }
};
static const struct field request_fields[] = {
	SUBS(1, "resourceProfiles", resource_profiles_fields), SUB(2, "dictionary", dictionary_fields), { 0 }
};

static bool put_message(struct bytes *out, struct view message, const struct field *fields, int depth);

static bool put_hex(struct bytes *out, struct view v)
{
	static const char digits[] = "0123456789abcdef";
	bool ok = bytes_add_byte(out, '"');
	for (size_t i = 0; ok && i < v.len; i++)
		ok = bytes_add_byte(out, (uint8_t)digits[v.at[i] >> 4]) &&
		     bytes_add_byte(out, (uint8_t)digits[v.at[i] & 15]);
	return ok && bytes_add_byte(out, '"');
}

static bool put_base64(struct bytes *out, struct view v)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	bool ok = bytes_add_byte(out, '"');
	for (size_t i = 0; ok && i < v.len; i += 3) {
		size_t left = v.len - i;
		uint32_t bits = (uint32_t)v.at[i] << 16 | (uint32_t)(left > 1 ? v.at[i + 1] : 0) << 8 |
				(left > 2 ? v.at[i + 2] : 0);
		char four[4] = { digits[bits >> 18], digits[bits >> 12 & 63],
				 left > 1 ? digits[bits >> 6 & 63] : '=', left > 2 ? digits[bits & 63] : '=' };
		ok = bytes_add(out, four, 4);
	}
	return ok && bytes_add_byte(out, '"');
}

static bool put_double(struct bytes *out, uint64_t bits)
{
	double number;
	memcpy(&number, &bits, sizeof number);
	if (isnan(number))
		return bytes_add_text(out, "\"NaN\"");
	if (isinf(number))
		return bytes_add_text(out, number > 0 ? "\"Infinity\"" : "\"-Infinity\"");
	return bytes_format(out, "%.17g", number);
}

static bool put_scalar(struct bytes *out, enum kind kind, uint64_t value)
{
	switch (kind) {
	case KIND_NUMBER:
		return bytes_format(out, "%" PRIi32, (int32_t)value);
	case KIND_BOOL:
		return bytes_add_text(out, value ? "true" : "false");
	case KIND_DOUBLE:
		return put_double(out, value);
	case KIND_TEXT_SIGNED:
		return bytes_format(out, "\"%" PRIi64 "\"", (int64_t)value);
	default:
		return bytes_format(out, "\"%" PRIu64 "\"", value);
	}
}

static bool put_view(struct bytes *out, const struct field *field, struct view v, int depth)
{
	switch (field->kind) {
	case KIND_STRING:
		return quote_json(out, v.at, v.len);
	case KIND_BASE64:
		return put_base64(out, v);
	case KIND_HEX:
		return put_hex(out, v);
	default:
		return put_message(out, v, field->message, depth + 1);
	}
}

/* The elements of a packed field. */
static bool put_packed(struct bytes *out, enum kind kind, struct view packed)
{
	struct wire w = wire_of(packed);
	bool ok = true;
	for (bool first = true; ok && wire_more(&w); first = false) {
		uint64_t value = kind == KIND_TEXT_FIXED ? wire_fixed64(&w) : wire_varint(&w);
		ok = (first || bytes_add_byte(out, ',')) && put_scalar(out, kind, value);
	}
	return ok && wire_done(&w);
}

static bool put_field(struct bytes *out, const struct field *field, const struct wire_field *got, int depth)
{
	bool text = field->kind <= KIND_HEX || field->kind == KIND_MESSAGE;
	if (text)
		return got->type == WIRE_LEN && put_view(out, field, got->view, depth);
	if (got->type == WIRE_LEN)
		return field->repeated && put_packed(out, field->kind, got->view);
	return put_scalar(out, field->kind, got->value);
}

static const struct field *find(const struct field *fields, uint32_t number)
{
	while (fields->name && fields->number != number)
		fields++;
	return fields->name ? fields : NULL;
}

static bool put_message(struct bytes *out, struct view message, const struct field *fields, int depth)
{
	struct wire w = wire_of(message);
	struct wire_field got;
	const struct field *open = NULL; /* the repeated field whose array is open */
	bool ok = depth < DEPTH_MAX && bytes_add_byte(out, '{');
	for (bool first = true; ok && wire_next(&w, &got); first = false) {
		const struct field *field = find(fields, got.number);
		if (!field)
			return false;
		if (field != open) {
			ok = (!open || bytes_add_byte(out, ']')) && (first || bytes_add_byte(out, ',')) &&
			     bytes_format(out, "\"%s\":%s", field->name, field->repeated ? "[" : "");
			open = field->repeated ? field : NULL;
		} else {
			ok = bytes_add_byte(out, ',');
		}
		ok = ok && put_field(out, field, &got, depth);
	}
	return ok && wire_done(&w) && (!open || bytes_add_byte(out, ']')) && bytes_add_byte(out, '}');
}

bool encode_json(const struct packet *packet, struct bytes *out, struct error *err)
{
	if (put_message(out, bytes_view(&packet->otlp), request_fields, 0))
		return true;
	return error_set(err, ERROR_INTERNAL, "the packet cannot be written as JSON");
}
