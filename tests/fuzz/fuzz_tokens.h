/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_FUZZ_TOKENS_H
#define TESTS_FUZZ_FUZZ_TOKENS_H

#include "base/json.h"
#include "profile/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <yajl/yajl_parse.h>

/*
 * Our tokens of a document are those of yajl, whatever the bytes are. yajl is more liberal in five
 * things, which are decided here: a document may be a scalar; what follows it may be a string
 * without an end; its strings need not be UTF-8; there is no limit to its depth; vertical tabs and
 * form feeds are white space. It also decodes what is no pair of surrogates as it likes; documents
 * with such strings have equal verdicts only.
 */
enum { TOKENS_DEPTH = 64 };

struct tokens {
	struct bytes seen; /* token, length and bytes of each */
	uint32_t depth, deepest;
	yajl_handle parser;
	size_t end; /* of the object or array that is the document */
};

static inline void tokens_must(bool ok)
{
	if (!ok)
		abort();
}

static inline int tokens_add(struct tokens *t, enum json_token token, struct view text)
{
	uint32_t len = (uint32_t)text.len;
	tokens_must(bytes_add_byte(&t->seen, (uint8_t)token) &&
		    bytes_add(&t->seen, &len, sizeof len) && bytes_add(&t->seen, text.at, len));
	return 1;
}

static inline int tokens_enter(struct tokens *t, enum json_token token)
{
	if (++t->depth > t->deepest)
		t->deepest = t->depth;
	return tokens_add(t, token, (struct view){ 0 });
}

static inline int tokens_leave(struct tokens *t, enum json_token token)
{
	if (!--t->depth)
		t->end = yajl_get_bytes_consumed(t->parser);
	return tokens_add(t, token, (struct view){ 0 });
}

/* ---- yajl */

static inline int yajl_text(void *t, enum json_token token, const uint8_t *at, size_t len)
{
	return tokens_add(t, token, (struct view){ at, len });
}

static inline int yajl_null(void *t)
{
	return tokens_add(t, JSON_NULL, (struct view){ 0 });
}

static inline int yajl_boolean(void *t, int value)
{
	return tokens_add(t, value ? JSON_TRUE : JSON_FALSE, (struct view){ 0 });
}

static inline int yajl_number(void *t, const char *at, size_t len)
{
	return yajl_text(t, JSON_NUMBER, (const uint8_t *)at, len);
}

static inline int yajl_string(void *t, const uint8_t *at, size_t len)
{
	return yajl_text(t, JSON_STRING, at, len);
}

static inline int yajl_map_key(void *t, const uint8_t *at, size_t len)
{
	return yajl_text(t, JSON_KEY, at, len);
}

static inline int yajl_start_map(void *t)
{
	return tokens_enter(t, JSON_OBJECT);
}

static inline int yajl_end_map(void *t)
{
	return tokens_leave(t, JSON_OBJECT_END);
}

static inline int yajl_start_array(void *t)
{
	return tokens_enter(t, JSON_ARRAY);
}

static inline int yajl_end_array(void *t)
{
	return tokens_leave(t, JSON_ARRAY_END);
}

static inline bool tokens_only_space(const uint8_t *at, size_t len)
{
	while (len && memchr(" \t\r\n", at[len - 1], 4))
		len--;
	return !len;
}

/* Does yajl take the document, and may we? */
static inline bool tokens_of_yajl(struct tokens *t, struct view document)
{
	static const yajl_callbacks callbacks = {
		.yajl_null = yajl_null,
		.yajl_boolean = yajl_boolean,
		.yajl_number = yajl_number,
		.yajl_string = yajl_string,
		.yajl_map_key = yajl_map_key,
		.yajl_start_map = yajl_start_map,
		.yajl_end_map = yajl_end_map,
		.yajl_start_array = yajl_start_array,
		.yajl_end_array = yajl_end_array,
	};
	yajl_handle parser = t->parser = yajl_alloc(&callbacks, NULL, t);
	tokens_must(parser && yajl_config(parser, yajl_dont_validate_strings, 1));
	bool ok = yajl_parse(parser, document.at, document.len) == yajl_status_ok &&
		  yajl_complete_parse(parser) == yajl_status_ok;
	yajl_free(parser);
	return ok && t->deepest && t->deepest <= TOKENS_DEPTH &&
	       tokens_only_space(document.at + t->end, document.len - t->end) &&
	       !memchr(document.at, '\v', document.len) &&
	       !memchr(document.at, '\f', document.len) &&
	       wire_utf8_slow(document.at, document.len);
}

/* ---- ours */

/* Has the string, as it is written, an escaped half of a surrogate pair without the other? */
static inline bool tokens_have_half(struct view text)
{
	bool high = false;
	for (size_t i = 0; i < text.len; i++) {
		char digits[5] = "";
		unsigned code = 0;
		if (text.at[i] == '\\' && text.at[i + 1] == 'u') {
			memcpy(digits, text.at + i + 2, 4);
			code = (unsigned)strtoul(digits, NULL, 16);
			i += 4;
		}
		if (high != ((code & 0xfc00) == 0xdc00))
			return true;
		high = (code & 0xfc00) == 0xd800;
		i += text.at[i] == '\\';
	}
	return high;
}

static inline void tokens_add_string(struct tokens *t, const struct json *j, enum json_token token,
				     struct view text)
{
	tokens_must(j->escaped == (memchr(text.at, '\\', text.len) != NULL));
	if (!j->escaped) {
		tokens_add(t, token, text);
		return;
	}
	uint8_t *plain = malloc(text.len); /* no more than it was */
	size_t len = json_unescape(text, plain);
	tokens_must(wire_utf8_slow(plain, len));
	tokens_add(t, token, (struct view){ plain, len });
	free(plain);
}

static inline bool tokens_of_ours(struct tokens *t, struct view document, bool *halves)
{
	struct json j;
	struct view text;
	struct error err = { 0 };
	enum json_token token = JSON_FAULT;
	*halves = false;
	if (json_begin(&j, document, TOKENS_DEPTH, &err))
		while ((token = json_next(&j, &text)) != JSON_FAULT && token != JSON_DONE) {
			bool string = token == JSON_STRING || token == JSON_KEY;
			if (string)
				*halves |= tokens_have_half(text);
			if (string)
				tokens_add_string(t, &j, token, text);
			else
				tokens_add(t, token,
					   token == JSON_NUMBER ? text : (struct view){ 0 });
		}
	tokens_must((token == JSON_DONE) != (err.kind == ERROR_INVALID && err.text[0]));
	return token == JSON_DONE;
}

/* ---- ours, by the functions for readers that know what they want */

static inline void tokens_walk_value(struct tokens *t, struct json *j);

static inline void tokens_walk_numbers(struct tokens *t, struct json *j)
{
	uint32_t values[3];
	size_t count;
	while ((count = json_small_numbers(j, values, 3)))
		for (size_t i = 0; i < count; i++) {
			char text[12];
			snprintf(text, sizeof text, "%u", values[i]);
			tokens_add(t, JSON_NUMBER, view_of(text));
		}
}

static inline void tokens_walk_array(struct tokens *t, struct json *j)
{
	do
		tokens_walk_numbers(t, j);
	while (json_element(j) && (tokens_walk_value(t, j), !j->fault));
	tokens_add(t, JSON_ARRAY_END, (struct view){ 0 });
}

static inline void tokens_walk_object(struct tokens *t, struct json *j)
{
	struct view name;
	while (json_key(j, &name)) {
		tokens_add_string(t, j, JSON_KEY, name);
		tokens_walk_value(t, j);
	}
	tokens_add(t, JSON_OBJECT_END, (struct view){ 0 });
}

static inline bool tokens_walk_digits(struct tokens *t, struct json *j)
{
	const uint8_t *from = j->at;
	bool quoted = *from == '"';
	char *end;
	uint64_t value;
	if (!json_digits(j, &value)) {
		tokens_must(j->at == from);
		return false;
	}
	from += quoted;
	struct view text = { from, (size_t)(j->at - from) - quoted };
	tokens_must(strtoull((const char *)from, &end, 10) == value &&
		    (const uint8_t *)end == from + text.len);
	tokens_add(t, quoted ? JSON_STRING : JSON_NUMBER, text);
	return true;
}

static inline void tokens_walk_value(struct tokens *t, struct json *j)
{
	enum json_token token = json_peek(j);
	struct view text = { 0 };
	if (tokens_walk_digits(t, j))
		return;
	if (json_value(j, &text) != token || !token)
		return;
	if (token == JSON_STRING) {
		tokens_add_string(t, j, token, text);
		return;
	}
	tokens_add(t, token, token == JSON_NUMBER ? text : (struct view){ 0 });
	if (token == JSON_OBJECT)
		tokens_walk_object(t, j);
	else if (token == JSON_ARRAY)
		tokens_walk_array(t, j);
}

static inline bool tokens_of_walk(struct tokens *t, struct view document)
{
	struct json j;
	if (!json_begin(&j, document, TOKENS_DEPTH, NULL))
		return false;
	tokens_walk_value(t, &j);
	tokens_must(j.fault || !j.depth);
	return !j.fault;
}

static inline bool tokens_can_skip(struct view document)
{
	struct json j;
	return json_begin(&j, document, TOKENS_DEPTH, NULL) && json_skip(&j) && !j.depth;
}

/* Is it JSON? The document is copied, so that sanitizers find a read behind it. */
static inline bool tokens_check(const void *data, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	struct view document = { copy, len };
	struct tokens theirs = { 0 }, ours = { 0 }, walked = { 0 };
	struct tokens *all[] = { &theirs, &ours, &walked };
	bool halves;
	memcpy(copy, data, len);
	for (int i = 0; i < 3; i++)
		bytes_init(&all[i]->seen, (size_t)1 << 30);
	bool ok = tokens_of_ours(&ours, document, &halves);
	tokens_must(ok == tokens_of_yajl(&theirs, document));
	tokens_must(ok == tokens_of_walk(&walked, document) && ok == tokens_can_skip(document));
	if (ok)
		tokens_must(
			view_equal(bytes_view(&ours.seen), bytes_view(&walked.seen)) &&
			(halves || view_equal(bytes_view(&ours.seen), bytes_view(&theirs.seen))));
	for (int i = 0; i < 3; i++)
		bytes_fini(&all[i]->seen);
	free(copy);
	return ok;
}

#endif
