/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <assert.h>

#include "base/quote.h"

const uint8_t json_tokens[256] = {
	['n'] = JSON_NULL,   ['f'] = JSON_FALSE,  ['t'] = JSON_TRUE,   ['-'] = JSON_NUMBER,
	['0'] = JSON_NUMBER, ['1'] = JSON_NUMBER, ['2'] = JSON_NUMBER, ['3'] = JSON_NUMBER,
	['4'] = JSON_NUMBER, ['5'] = JSON_NUMBER, ['6'] = JSON_NUMBER, ['7'] = JSON_NUMBER,
	['8'] = JSON_NUMBER, ['9'] = JSON_NUMBER, ['"'] = JSON_STRING, ['{'] = JSON_OBJECT,
	['['] = JSON_ARRAY,
};

/* ---- faults */

/* The first one stays. What is next is then the last bracket, so that all else fails too. */
static void stop(struct json *j)
{
	j->fault = true;
	j->at = j->end - 1;
}

bool json_fail(struct json *j, const uint8_t *at, const char *expected)
{
	if (!j->fault)
		error_set(j->err, ERROR_INVALID, "the JSON is malformed at byte %zu: expected %s",
			  (size_t)(at - j->begin) + 1, expected);
	stop(j);
	return false;
}

static bool fail_too_deep(struct json *j)
{
	if (!j->fault)
		error_set(j->err, ERROR_INVALID,
			  "the JSON has more than %u objects and arrays within each other",
			  j->depth_max);
	stop(j);
	return false;
}

static bool fail_truncated(struct json *j)
{
	if (!j->fault)
		error_set(j->err, ERROR_INVALID, "the JSON is truncated");
	stop(j);
	return false;
}

/* ---- structure */

static bool is_space(uint8_t c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

const uint8_t *json_rest_of_space(const uint8_t *at)
{
	while (is_space(*at))
		at++;
	return at;
}

bool json_begin(struct json *j, struct view document, uint32_t depth_max, struct error *err)
{
	const uint8_t *at = document.at, *end = document.len ? at + document.len : at;
	assert(depth_max <= JSON_DEPTH_MAX);
	while (at < end && is_space(*at))
		at++;
	while (at < end && is_space(end[-1]))
		end--;
	*j = (struct json){ at, end, document.at, err, .depth_max = depth_max };
	if (at == end || (*at != '{' && *at != '['))
		return error_set(err, ERROR_INVALID, "the JSON is not an object or an array");
	return end[-1] == '}' || end[-1] == ']' ||
	       error_set(err, ERROR_INVALID, "the JSON is truncated, or something follows it");
}

bool json_not_entered(struct json *j)
{
	return *j->at == '{' || *j->at == '[' ? fail_too_deep(j)
					      : json_fail(j, j->at, "an object or an array");
}

/* The bracket is that of the document, or its last byte, or both. */
void json_leave_last(struct json *j, const uint8_t *at)
{
	if (j->depth > 1)
		fail_truncated(j);
	else if (at + 1 < j->end)
		json_fail(j, at + 1, "the end");
	else if (!j->fault)
		j->depth = 0;
	j->at = j->end - 1;
}

/* ---- strings */

static bool is_hex(uint8_t c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* What is behind the backslash; NULL if it is no escape. */
static const uint8_t *rest_of_escape(const uint8_t *at)
{
	switch (*at) {
	case '"':
	case '\\':
	case '/':
	case 'b':
	case 'f':
	case 'n':
	case 'r':
	case 't':
		return at + 1;
	case 'u':
		for (int i = 1; i <= 4; i++)
			if (!is_hex(at[i])) /* a bracket is none */
				return NULL;
		return at + 5;
	default:
		return NULL;
	}
}

/* Goes over the bytes at which json_plain stops. NULL: a fault. */
static const uint8_t *go_over(struct json *j, const uint8_t *at)
{
	uint32_t code;
	if (*at == '\\') {
		const uint8_t *next = rest_of_escape(at + 1);
		j->escaped = true;
		if (!next)
			json_fail(j, at, "an escape of JSON");
		return next;
	}
	if (*at < ' ') {
		json_fail(j, at, "an escape, not a control character");
		return NULL;
	}
	while (*at >= 0x80) {
		size_t len = quote_utf8(at, (size_t)(j->end - at), &code);
		if (!len) {
			json_fail(j, at, "UTF-8");
			return NULL;
		}
		at += len;
	}
	return at;
}

/* The string at j->at, from `at` on, where it is not plain. */
bool json_rest_of_string(struct json *j, const uint8_t *at, struct view *text)
{
	j->escaped = false;
	while (at < j->end && *at != '"') {
		at = go_over(j, at);
		if (!at)
			return false;
		at = json_plain(at, j->end);
	}
	if (at == j->end)
		return fail_truncated(j);
	*text = (struct view){ j->at + 1, (size_t)(at - j->at - 1) };
	j->at = at + 1;
	return true;
}

static uint32_t hex_value(const uint8_t *at)
{
	uint32_t value = 0;
	for (int i = 0; i < 4; i++)
		value = value << 4 | (at[i] <= '9' ? at[i] - '0' : (at[i] | 0x20) - 'a' + 10);
	return value;
}

static bool is_low_half(const uint8_t *at, const uint8_t *end)
{
	return end - at >= 6 && at[0] == '\\' && at[1] == 'u' &&
	       (hex_value(at + 2) & 0xfc00) == 0xdc00;
}

static uint8_t *put_utf8(uint8_t *out, uint32_t code)
{
	static const uint8_t leads[] = { 0, 0xc0, 0xe0, 0xf0 };
	unsigned more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
	*out++ = (uint8_t)(leads[more] | code >> 6 * more);
	while (more--)
		*out++ = (uint8_t)(0x80 | (code >> 6 * more & 0x3f));
	return out;
}

/* \uXXXX, or two of them; *at is behind the backslash. */
static uint8_t *put_unicode(uint8_t *out, const uint8_t **at, const uint8_t *end)
{
	uint32_t code = hex_value(*at + 1);
	*at += 5;
	if ((code & 0xfc00) == 0xd800 && is_low_half(*at, end)) {
		code = 0x10000 + ((code & 0x3ff) << 10) + (hex_value(*at + 2) & 0x3ff);
		*at += 6;
	} else if ((code & 0xf800) == 0xd800) {
		code = 0xfffd;
	}
	return put_utf8(out, code);
}

size_t json_unescape(struct view text, uint8_t *out)
{
	static const uint8_t letters[128] = {
		['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r',
		['t'] = '\t', ['"'] = '"',  ['/'] = '/',  ['\\'] = '\\'
	};
	const uint8_t *at = text.at, *end = at + text.len, *next;
	uint8_t *begin = out;
	while ((next = memchr(at, '\\', (size_t)(end - at)))) {
		memmove(out, at, (size_t)(next - at));
		out += next - at;
		at = next + 1;
		if (*at == 'u')
			out = put_unicode(out, &at, end);
		else
			*out++ = letters[*at++];
	}
	memmove(out, at, (size_t)(end - at));
	return (size_t)(out - begin) + (size_t)(end - at);
}

/* ---- values */

static const uint8_t *go_over_digits(const uint8_t *at)
{
	while (*at >= '0' && *at <= '9')
		at++;
	return at;
}

/* At least one digit, or NULL. */
static const uint8_t *digits(const uint8_t *at)
{
	return *at >= '0' && *at <= '9' ? go_over_digits(at + 1) : NULL;
}

/* The end of the number, or NULL with *fault at the byte that is wrong. */
static const uint8_t *number_end(const uint8_t *at, const uint8_t **fault)
{
	at += *at == '-';
	*fault = at;
	at = *at == '0' ? at + 1 : digits(at);
	if (at && *at == '.') {
		*fault = at + 1;
		at = digits(at + 1);
	}
	if (at && (*at | 0x20) == 'e') {
		at++;
		at += *at == '+' || *at == '-';
		*fault = at;
		at = digits(at);
	}
	return at;
}

bool json_number(struct json *j, struct view *text)
{
	const uint8_t *fault, *end = number_end(j->at, &fault);
	if (!end)
		return json_fail(j, fault, fault == j->at ? "a number" : "a digit");
	*text = (struct view){ j->at, (size_t)(end - j->at) };
	j->at = end;
	return true;
}

size_t json_small_numbers(struct json *j, uint32_t *values, size_t max)
{
	const uint8_t *at = j->at;
	size_t read = 0;
	if (j->fresh)
		at--; /* the bracket stands where a comma would */
	else if (*at != ',')
		return 0;
	while (read < max) {
		uint32_t value = (uint32_t)at[1] - '0', digit;
		const uint8_t *next = at + 2;
		if (value > 9)
			break;
		while ((digit = (uint32_t)*next - '0') <= 9 && next < at + 8 && value) {
			value = value * 10 + digit;
			next++;
		}
		if (*next != ',' && *next != ']')
			break;
		values[read++] = value;
		at = next;
		if (*next == ']')
			break;
	}
	if (read) {
		j->at = at;
		j->fresh = false;
	}
	return read;
}

static enum json_token word(struct json *j, const char *word, enum json_token token)
{
	const uint8_t *at = j->at;
	for (; *word; word++, at++) /* a bracket is in no word */
		if (*at != *word)
			return json_fail(j, j->at, "a value");
	j->at = at;
	return token;
}

enum json_token json_value(struct json *j, struct view *text)
{
	enum json_token token = json_peek(j);
	switch (token) {
	case JSON_NULL:
		return word(j, "null", token);
	case JSON_FALSE:
		return word(j, "false", token);
	case JSON_TRUE:
		return word(j, "true", token);
	case JSON_NUMBER:
		return json_number(j, text) ? token : JSON_FAULT;
	case JSON_STRING:
		return json_string(j, text) ? token : JSON_FAULT;
	case JSON_OBJECT:
	case JSON_ARRAY:
		return json_enter(j) ? token : JSON_FAULT;
	default:
		return json_fail(j, j->at, "a value");
	}
}

static enum json_token end_of(const struct json *j, enum json_token end)
{
	return j->fault ? JSON_FAULT : end;
}

enum json_token json_next(struct json *j, struct view *text)
{
	bool named = j->named, begun = *j->at == '{' || *j->at == '[';
	j->named = false;
	if (!j->depth && !begun)
		return end_of(j, JSON_DONE);
	if (j->depth && !named && j->opened[j->depth - 1] == '{') {
		j->named = json_key(j, text);
		return j->named ? JSON_KEY : end_of(j, JSON_OBJECT_END);
	}
	if (j->depth && !named && !json_element(j))
		return end_of(j, JSON_ARRAY_END);
	return json_value(j, text);
}

bool json_skip(struct json *j)
{
	uint32_t depth = j->depth;
	struct view text;
	enum json_token token = json_value(j, &text);
	while (token != JSON_FAULT && j->depth > depth)
		token = json_next(j, &text);
	return token != JSON_FAULT;
}
