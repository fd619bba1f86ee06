/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <yajl/yajl_parse.h>

#include "base/memory.h"
#include "base/quote.h"

struct reading {
	struct json_reader *reader;
	struct view document;
};

static int give(void *reading, enum json_token token, const void *at, size_t len)
{
	struct json_reader *r = ((struct reading *)reading)->reader;
	return r->take(r, token, (struct view){ at, len });
}

static int on_null(void *reading)
{
	return give(reading, JSON_NULL, NULL, 0);
}

static int on_boolean(void *reading, int value)
{
	return give(reading, value ? JSON_TRUE : JSON_FALSE, NULL, 0);
}

static int on_number(void *reading, const char *at, size_t len)
{
	return give(reading, JSON_NUMBER, at, len);
}

/* yajl encodes an escaped low half that stands alone as if it were a character: 3 bytes, as many as
 * U+FFFD has. Strings with escapes are in yajl's buffer; the others are in the document, which is
 * valid. */
static int give_text(void *reading, enum json_token token, const unsigned char *at, size_t len)
{
	const struct view *document = &((struct reading *)reading)->document;
	if ((uintptr_t)at - (uintptr_t)document->at >= document->len)
		for (const unsigned char *half = at, *end = at + len;
		     (half = memchr(half, 0xed, (size_t)(end - half))); half++)
			if (half[1] >= 0xa0)
				memcpy((unsigned char *)(uintptr_t)half, "\xef\xbf\xbd", 3);
	return give(reading, token, at, len);
}

static int on_string(void *reading, const unsigned char *at, size_t len)
{
	return give_text(reading, JSON_STRING, at, len);
}

static int on_key(void *reading, const unsigned char *at, size_t len)
{
	return give_text(reading, JSON_KEY, at, len);
}

static int begin(void *reading, enum json_token token)
{
	struct json_reader *r = ((struct reading *)reading)->reader;
	if (r->depth++ == r->depth_max)
		return error_set(r->err, ERROR_INVALID,
				 "the JSON has more than %u objects and arrays within each other",
				 r->depth_max);
	return give(reading, token, NULL, 0);
}

static int end(void *reading, enum json_token token)
{
	((struct reading *)reading)->reader->depth--;
	return give(reading, token, NULL, 0);
}

static int on_object(void *reading)
{
	return begin(reading, JSON_OBJECT);
}

static int on_object_end(void *reading)
{
	return end(reading, JSON_OBJECT_END);
}

static int on_array(void *reading)
{
	return begin(reading, JSON_ARRAY);
}

static int on_array_end(void *reading)
{
	return end(reading, JSON_ARRAY_END);
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_boolean,
	.yajl_number = on_number,
	.yajl_string = on_string,
	.yajl_map_key = on_key,
	.yajl_start_map = on_object,
	.yajl_end_map = on_object_end,
	.yajl_start_array = on_array,
	.yajl_end_array = on_array_end,
};

static void *allocate(void *context, size_t size)
{
	(void)context;
	return memory_resize(NULL, size);
}

static void *reallocate(void *context, void *old, size_t size)
{
	(void)context;
	return memory_resize(old, size);
}

static void release(void *context, void *old)
{
	(void)context;
	memory_free(old);
}

static bool is_utf8(struct view document)
{
	const uint8_t *at = document.at, *end = at + document.len;
	while (at < end) {
		uint64_t word;
		uint32_t code;
		if (end - at >= 8 && (memcpy(&word, at, 8), !(word & 0x8080808080808080))) {
			at += 8;
			continue;
		}
		size_t len = quote_utf8(at, (size_t)(end - at), &code);
		if (!len)
			return false;
		at += len;
	}
	return true;
}

static bool is_space(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* yajl copies what an unfinished document ends in. With a bracket as the last byte, that can only
 * be a string, which json_memory finds. */
static bool has_brackets(struct view document, struct error *err)
{
	const uint8_t *at = document.at, *last = document.len ? at + document.len : at;
	while (at < last && is_space(*at))
		at++;
	while (at < last && is_space(last[-1]))
		last--;
	if (at == last || (*at != '{' && *at != '['))
		return error_set(err, ERROR_INVALID, "the JSON is not an object or an array");
	return last[-1] == '}' || last[-1] == ']' ||
	       error_set(err, ERROR_INVALID, "the JSON is truncated, or something follows it");
}

static bool parse(yajl_handle parser, struct view document, struct error *err)
{
	yajl_status status = yajl_parse(parser, document.at, document.len);
	if (status == yajl_status_client_canceled)
		return false;
	if (status != yajl_status_ok)
		return error_set(err, ERROR_INVALID, "the JSON is malformed at byte %zu",
				 yajl_get_bytes_consumed(parser));
	return yajl_complete_parse(parser) == yajl_status_ok ||
	       error_set(err, ERROR_INVALID, "the JSON is truncated");
}

bool json_read(struct json_reader *reader, struct view document, struct error *err)
{
	yajl_alloc_funcs memory = { allocate, reallocate, release, NULL };
	struct reading reading = { reader, document };
	reader->depth = 0;
	reader->err = err;
	if (!has_brackets(document, err))
		return false;
	if (!is_utf8(document))
		return error_set(err, ERROR_INVALID, "the JSON is not UTF-8");
	yajl_handle parser = yajl_alloc(&callbacks, &memory, &reading);
	yajl_config(parser, yajl_dont_validate_strings, 1);
	bool ok = parse(parser, document, err);
	yajl_free(parser);
	return ok;
}

static bool has_odd_quotes(const uint8_t *at, size_t len)
{
	uint64_t odd = 0;
	for (; len >= 8; at += 8, len -= 8) {
		uint64_t word;
		memcpy(&word, at, 8);
		word ^= 0x2222222222222222; /* zero in place of each quote */
		odd ^= ((word & 0x7f7f7f7f7f7f7f7f) + 0x7f7f7f7f7f7f7f7f) | word;
	}
	bool result = __builtin_parityll(odd & 0x8080808080808080);
	for (; len; len--)
		result ^= *at++ == '"';
	return result;
}

/* The longest string with escapes, or without an end. Strings begin and end for yajl as they do
 * here, up to the byte where it finds that the document is not JSON. */
static size_t longest_buffered(const uint8_t *at, const uint8_t *end)
{
	size_t longest = 0;
	while ((at = memchr(at, '"', (size_t)(end - at)))) {
		const uint8_t *begin = ++at;
		bool escaped = false;
		for (; at < end && *at != '"'; at++)
			if (*at == '\\') {
				escaped = true;
				at++;
			}
		at = at > end ? end : at;
		if ((escaped || at == end) && (size_t)(at - begin) > longest)
			longest = (size_t)(at - begin);
		at += at < end;
	}
	return longest;
}

/* yajl doubles its buffers from 2 KiB on; while one is moved, the old one stands beside it. */
size_t json_memory(struct view document)
{
	size_t longest = 0;
	if (document.len &&
	    (memchr(document.at, '\\', document.len) || has_odd_quotes(document.at, document.len)))
		longest = longest_buffered(document.at, document.at + document.len);
	return longest > 2048 ? 3 * longest : 0;
}
