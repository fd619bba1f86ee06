/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_JSON_WIRE_H
#define PROFILE_JSON_WIRE_H

#include "base/bytes.h"
#include "base/error.h"

/*
 * Translates JSON into the protobuf wire format, by tables that describe messages. The rules are
 * those of ProtoJSON (protobuf.dev, "ProtoJSON Format") as senders of OTLP use them:
 *
 *  - Names are lowerCamelCase or, as in the .proto file, snake_case. Unknown names are skipped,
 *    whatever their value. null means absent.
 *  - Integers are numbers or strings, for every width. 64-bit integers are exact. Fractions and
 *    exponents are accepted if the value is an integer (1e3, 2.0). Out of range is an error.
 *  - double: a number, or a string with one, or "NaN", "Infinity", "-Infinity".
 *  - bytes: base64 with either alphabet, with or without padding; or hexadecimal, as OTLP requires
 *    for IDs (opentelemetry.io/docs/specs/otlp, "JSON Protobuf Encoding").
 *  - Enums are names or numbers.
 *  - What occurs twice is written twice: the last scalar counts, messages merge, lists are joined.
 *
 * The output is what an encoder of protobuf would write, with packed lists and lengths of minimal
 * size, in the order of the document, with zeros where the document has them. Lengths are written
 * when their message ends: a length that needs more than the one byte that was left for it moves
 * the message. Each byte is moved at most once per level, and JSON_WIRE_DEPTH bounds the levels.
 */
enum { JSON_WIRE_DEPTH = 80 };

enum json_wire_kind {
	JSON_WIRE_STRING,
	JSON_WIRE_BASE64, /* bytes */
	JSON_WIRE_HEX,    /* bytes */
	JSON_WIRE_BOOL,
	JSON_WIRE_INT32,
	JSON_WIRE_INT64,
	JSON_WIRE_UINT32,
	JSON_WIRE_UINT64,
	JSON_WIRE_FIXED64,
	JSON_WIRE_DOUBLE,
	JSON_WIRE_ENUM,
	JSON_WIRE_MESSAGE,
	JSON_WIRE_MARK /* the document is of another kind: number is the mark */
};

struct json_wire_enum {
	const char *name; /* NULL ends the list */
	int32_t number;
};

struct json_wire_field {
	const char *name; /* lowerCamelCase */
	uint8_t len;      /* of the name */
	uint8_t kind;     /* enum json_wire_kind */
	bool repeated;    /* numbers are packed */
	uint8_t list;     /* an array in place of the message: the document is of another kind */
	uint32_t number;
	union {
		const struct json_wire_message *message;
		const struct json_wire_enum *names;
	};
};

/* Constant; up to 255 fields. */
struct json_wire_message {
	uint32_t count;
	const struct json_wire_field *fields;
};

/* clang-format off */
#define JSON_WIRE_FIELD(number_, name_, kind_) \
	{ .name = name_, .len = sizeof name_ - 1, .kind = JSON_WIRE_##kind_, .number = number_ }
#define JSON_WIRE_LIST(number_, name_, kind_) \
	{ .name = name_, .len = sizeof name_ - 1, .kind = JSON_WIRE_##kind_, .number = number_, .repeated = true }
#define JSON_WIRE_ONE(number_, name_, message_) \
	{ .name = name_, .len = sizeof name_ - 1, .kind = JSON_WIRE_MESSAGE, .number = number_, .message = &message_ }
#define JSON_WIRE_MANY(number_, name_, message_) \
	{ .name = name_, .len = sizeof name_ - 1, .kind = JSON_WIRE_MESSAGE, .number = number_, .message = &message_, \
	  .repeated = true }
#define JSON_WIRE_NAMES(number_, name_, names_) \
	{ .name = name_, .len = sizeof name_ - 1, .kind = JSON_WIRE_ENUM, .number = number_, .names = names_ }
#define JSON_WIRE_ONE_NOT_LIST(number_, name_, message_, mark_) \
	{ .name = name_, .len = sizeof name_ - 1, .kind = JSON_WIRE_MESSAGE, .number = number_, .message = &message_, \
	  .list = mark_ }
#define JSON_WIRE_TABLE(name_, ...) \
	static const struct json_wire_field name_##_fields[] = { __VA_ARGS__ }; \
	static const struct json_wire_message name_ = { sizeof name_##_fields / sizeof *name_##_fields, name_##_fields }
/* clang-format on */

/*
 * Appends the message to `out`. A string with escapes is decoded in out's room, which is charged as
 * `out` is.
 *
 * False with ERROR_INVALID: not JSON, or not this message; err names the field
 * ("resourceProfiles[0].scopeProfiles[0].profiles[2].period: is not a number"). False without
 * setting err: `out` is full, or the document has something that belongs to another kind of
 * document; *mark then says which. *mark is 0 otherwise. `mark` may be NULL if there are none.
 */
bool json_wire_translate(const struct json_wire_message *message, struct view document,
			 struct bytes *out, uint32_t *mark, struct error *err);

#endif
