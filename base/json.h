/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/bytes.h"
#include "base/error.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/*
 * Reads a JSON document (RFC 8259) where it lies. There is no tree, and nothing is allocated. The
 * document must be one object or array, in UTF-8, with only white space around it; comments and a
 * byte order mark are errors. It must stay as it is until all has been read. No byte behind it is
 * read. One thread.
 *
 * Numbers and strings are views of the document, as they are written: 64-bit integers are exact,
 * and a string may have escapes, which json_unescape decodes. Both are checked: numbers have the
 * grammar of JSON, strings are valid UTF-8 and have valid escapes.
 *
 * There are two ways to read, which can be mixed. json_next returns token after token, for a reader
 * that takes what comes. The other is for a reader that knows what it wants:
 *
 *	if (json_begin(&j, document, depth_max, err) && json_enter(&j))
 *		while (json_key(&j, &name))
 *			if (!view_is(name, "values"))
 *				json_skip(&j);
 *			else if (json_enter(&j))
 *				while (json_element(&j))
 *					json_number(&j, &text);
 *	return !j.fault;
 *
 * json_key and json_element return false at the end of their object or array, and after a fault.
 * After a fault nothing more is read; err has the reason and the byte, with ERROR_INVALID.
 */
enum json_token {
	JSON_FAULT,
	JSON_NULL,
	JSON_FALSE,
	JSON_TRUE,
	JSON_NUMBER,
	JSON_STRING,
	JSON_KEY, /* of an object; its value follows */
	JSON_OBJECT,
	JSON_OBJECT_END,
	JSON_ARRAY,
	JSON_ARRAY_END,
	JSON_DONE /* nothing follows */
};

enum { JSON_DEPTH_MAX = 256 };

/*
 * json_begin has seen that the last byte in front of `end` is a closing bracket. It is read last,
 * and never passed. So *at is always a byte of the document, and what cannot contain a bracket
 * (white space, a number, a word) ends in front of `end`. Only strings must look for it.
 */
struct json {
	const uint8_t *at, *end, *begin;
	struct error *err;
	uint32_t depth, depth_max; /* of open objects and arrays */
	bool escaped;              /* the string, or name, that was read last has escapes */
	bool fault;
	bool fresh;                     /* the innermost object or array has just been entered */
	bool named;                     /* json_next has returned a name: its value is next */
	uint8_t opened[JSON_DEPTH_MAX]; /* with which bracket: an object or an array */
};

/* False: the document is not JSON, and nothing can be read. depth_max: up to JSON_DEPTH_MAX. */
bool json_begin(struct json *j, struct view document, uint32_t depth_max, struct error *err);

/* `text` is that of NUMBER, STRING and KEY. j->depth is that in the object or array of OBJECT and
 * ARRAY, and that around it of OBJECT_END and ARRAY_END. */
enum json_token json_next(struct json *j, struct view *text);

/* The value of the name, or the element. OBJECT and ARRAY have been entered. */
enum json_token json_value(struct json *j, struct view *text);
bool json_number(struct json *j, struct view *text);
bool json_skip(struct json *j);

/* The next elements of the array, in place of json_element, as long as they are numbers of one to
 * seven digits with nothing between them but commas. Returns how many, up to max. */
size_t json_small_numbers(struct json *j, uint32_t *values, size_t max);

/* Decodes a string that has been read. Returns its length, which is not more than it was. A
 * surrogate without its other half becomes U+FFFD. */
size_t json_unescape(struct view text, uint8_t *out);

/* ---- inlined, for readers of large documents */

#define JSON_HOT static inline __attribute__((always_inline))

/* What is rarely needed: */
bool json_fail(struct json *j, const uint8_t *at, const char *expected);
bool json_rest_of_string(struct json *j, const uint8_t *at, struct view *text);
bool json_not_entered(struct json *j);
void json_leave_last(struct json *j, const uint8_t *at);
const uint8_t *json_rest_of_space(const uint8_t *at);

extern const uint8_t json_tokens[256];

/* The token of the value, by its first byte. */
JSON_HOT enum json_token json_peek(const struct json *j)
{
	return (enum json_token)json_tokens[*j->at];
}

JSON_HOT const uint8_t *json_space(const uint8_t *at)
{
	return __builtin_expect(*at <= ' ', 0) ? json_rest_of_space(at) : at;
}

/* The first byte that is a quote, a backslash, a control character or not ASCII; else the end. */
JSON_HOT const uint8_t *json_plain(const uint8_t *at, const uint8_t *end)
{
#ifdef __SSE2__
	while (end - at >= 16) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
		__m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
		__m128i escape = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
		__m128i other = _mm_cmplt_epi8(bytes, _mm_set1_epi8(' ')); /* signed */
		int found = _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, escape), other));
		if (found)
			return at + __builtin_ctz((unsigned)found);
		at += 16;
	}
#endif
	const uint64_t ones = 0x0101010101010101;
	for (uint64_t word; end - at >= 8; at += 8) {
		memcpy(&word, at, sizeof word);
		uint64_t quote = (word ^ '"' * ones) - ones, escape = (word ^ '\\' * ones) - ones;
		if ((quote | escape | (word - ' ' * ones) | word) & 0x80 * ones)
			break;
	}
	while (at < end && *at >= ' ' && *at < 0x80 && *at != '"' && *at != '\\')
		at++;
	return at;
}

JSON_HOT bool json_string(struct json *j, struct view *text)
{
	if (*j->at != '"')
		return json_fail(j, j->at, "a string");
	const uint8_t *stop = json_plain(j->at + 1, j->end);
	if (__builtin_expect(stop == j->end || *stop != '"', 0))
		return json_rest_of_string(j, stop, text);
	*text = (struct view){ j->at + 1, (size_t)(stop - j->at - 1) };
	j->escaped = false;
	j->at = stop + 1;
	return true;
}

/* Reads the opening bracket of an object or array. */
JSON_HOT bool json_enter(struct json *j)
{
	uint8_t bracket = *j->at;
	if ((bracket != '{' && bracket != '[') || j->depth == j->depth_max)
		return json_not_entered(j);
	j->opened[j->depth++] = bracket;
	j->fresh = true;
	j->at++;
	return true;
}

/* Reads the closing bracket. */
JSON_HOT void json_leave(struct json *j, const uint8_t *at)
{
	j->fresh = false;
	if (__builtin_expect(j->depth > 1 && at + 1 < j->end, 1)) {
		j->depth--;
		j->at = at + 1;
	} else {
		json_leave_last(j, at);
	}
}

/* To the next element or name. False: a fault, or the closing bracket has been read. */
JSON_HOT bool json_more(struct json *j, uint8_t close)
{
	const uint8_t *at = json_space(j->at);
	if (*at == ',' && !j->fresh) {
		j->at = json_space(at + 1);
		return true;
	}
	if (*at == close) {
		json_leave(j, at);
		return false;
	}
	if (!j->fresh)
		return json_fail(j, at, "a comma, or the end of the object or array");
	j->fresh = false;
	j->at = at;
	return true;
}

JSON_HOT bool json_element(struct json *j)
{
	return json_more(j, ']');
}

JSON_HOT bool json_key(struct json *j, struct view *name)
{
	if (!json_more(j, '}') || !json_string(j, name))
		return false;
	const uint8_t *at = json_space(j->at);
	if (*at != ':')
		return json_fail(j, at, "a colon");
	j->at = json_space(at + 1);
	return true;
}

/* Compares in words that overlap; most names are of 8 to 16 bytes. */
JSON_HOT bool json_same(const void *a, const void *b, size_t len)
{
	uint64_t words[4];
	if (len < 8 || len > 16)
		return memcmp(a, b, len) == 0;
	memcpy(&words[0], a, 8);
	memcpy(&words[1], b, 8);
	memcpy(&words[2], (const uint8_t *)a + len - 8, 8);
	memcpy(&words[3], (const uint8_t *)b + len - 8, 8);
	return words[0] == words[1] && words[2] == words[3];
}

/* The same for a name that is expected. False, and nothing has been read: something else comes, or
 * the name is written with white space or escapes. */
JSON_HOT bool json_key_is(struct json *j, const char *name, size_t len)
{
	const uint8_t *at = j->at + !j->fresh;
	if ((!j->fresh && *j->at != ',') || (size_t)(j->end - at) < len + 4)
		return false;
	if (at[0] != '"' || at[len + 1] != '"' || at[len + 2] != ':' ||
	    !json_same(at + 1, name, len))
		return false;
	j->fresh = j->escaped = false;
	j->at = json_space(at + len + 3);
	return true;
}

/* The eight bytes, the first one as the lowest. */
JSON_HOT uint64_t json_word(const uint8_t *at)
{
	uint64_t word;
	memcpy(&word, at, sizeof word);
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap64(word) : word;
}

/* How many of the eight bytes, from the first one on, are digits. */
JSON_HOT unsigned json_digit_count(uint64_t word)
{
	uint64_t digits = word ^ 0x3030303030303030;
	uint64_t others = (((digits & 0x7f7f7f7f7f7f7f7f) + 0x7676767676767676) | digits) &
			  0x8080808080808080;
	return others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
}

/* The number of the first `count` digits, 1 to 8: pairs, then fours, then all. */
JSON_HOT uint64_t json_digit_value(uint64_t word, unsigned count)
{
	word = (word ^ 0x3030303030303030) << (64 - 8 * count);
	word = (word & 0x0f0f0f0f0f0f0f0f) * (10 * 256 + 1) >> 8;
	word = (word & 0x00ff00ff00ff00ff) * (100 * 65536 + 1) >> 16;
	return (word & 0x0000ffff0000ffff) * (10000 * 4294967296 + 1) >> 32;
}

/* A number, or a string, that is nothing but 1 to 19 digits. False, and nothing has been read: it
 * is something else, or too near the end of the document. */
JSON_HOT bool json_digits(struct json *j, uint64_t *value)
{
	static const uint32_t powers[] = { 1,      10,      100,      1000,     10000,
					   100000, 1000000, 10000000, 100000000 };
	bool quoted = *j->at == '"';
	const uint8_t *first = j->at + quoted, *at = first;
	uint64_t sum = 0;
	unsigned count;
	do {
		if (j->end - at < 8 || at - first > 16)
			return false;
		uint64_t word = json_word(at);
		count = json_digit_count(word);
		if (!count)
			break;
		sum = sum * powers[count] + json_digit_value(word, count);
		at += count;
	} while (count == 8);
	if (at == first || at - first > 19)
		return false;
	if (quoted ? *at != '"'
		   : *at == '.' || (*at | 0x20) == 'e' || (*first == '0' && at - first > 1))
		return false;
	*value = sum;
	j->at = at + quoted;
	return true;
}

#endif
