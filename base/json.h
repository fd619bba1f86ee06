/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/bytes.h"
#include "base/error.h"

/*
 * Reads a JSON document (RFC 8259) token by token, on yajl. There is no tree: the reader's callback
 * gets the tokens in the order of the document. The document must be one object or array, in UTF-8,
 * with only white space around it. Comments and a byte order mark are errors.
 *
 * Numbers stay as they are written, so that 64-bit integers are exact. Strings and keys are decoded
 * and valid UTF-8: an escaped half of a surrogate pair becomes a replacement character.
 */
enum json_token {
	JSON_NULL,
	JSON_FALSE,
	JSON_TRUE,
	JSON_NUMBER,
	JSON_STRING,
	JSON_KEY, /* of an object; its value follows */
	JSON_OBJECT,
	JSON_OBJECT_END,
	JSON_ARRAY,
	JSON_ARRAY_END
};

/* The first member of the owner's struct. */
struct json_reader {
	/* `text` belongs to NUMBER, STRING and KEY, and is valid during the call; the byte behind
	 * it can be read. False ends the reading; take sets err, or its owner knows the reason. */
	bool (*take)(struct json_reader *reader, enum json_token token, struct view text);
	uint32_t depth_max; /* of objects and arrays within each other */
	/* set by json_read */
	uint32_t depth;
	struct error *err;
};

/* False with ERROR_INVALID: not JSON, or deeper than depth_max. False without setting err: take has
 * returned false. */
bool json_read(struct json_reader *reader, struct view document, struct error *err);

/*
 * The number of bytes that json_read allocates at most for this document, besides 16 KiB, for
 * callers that charge them. It is 0 unless the document has a long string with escapes or without
 * an end, because yajl copies such a string.
 */
size_t json_memory(struct view document);

#endif
