/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/memory.h"

enum { DEPTH_MAX = 20 };

/* The tokens in letters, each with its text; strings and names are decoded. */
struct recorder {
	struct json json;
	struct bytes seen;
};

static void record(struct recorder *r, enum json_token token, struct view text)
{
	static const char letters[] = "?nft#\"k{}[]";
	uint8_t plain[64];
	bytes_add_byte(&r->seen, (uint8_t)letters[token]);
	if ((token == JSON_STRING || token == JSON_KEY) && r->json.escaped)
		text = (struct view){ plain, json_unescape(text, plain) };
	if (token == JSON_STRING || token == JSON_KEY || token == JSON_NUMBER)
		bytes_add(&r->seen, text.at, text.len);
}

static bool read_all(struct recorder *r, struct view document, struct error *err)
{
	enum json_token token = JSON_FAULT;
	struct view text;
	bytes_init(&r->seen, 1 << 20);
	error_clear(err);
	if (json_begin(&r->json, document, DEPTH_MAX, err))
		while ((token = json_next(&r->json, &text)) && token != JSON_DONE)
			record(r, token, text);
	return token == JSON_DONE;
}

static const struct {
	const char *document, *tokens;
} documents[] = {
	{ "{}", "{}" },
	{ " \t\r\n[ ] \n", "[]" },
	{ "[null,true,false]", "[ntf]" },
	{ "{\"a\":1,\"b\":[2,{\"c\":\"d\"}]}", "{ka#1kb[#2{kc\"d}]}" },
	/* numbers stay as they are */
	{ "[18446744073709551616,-0,1.50,1E+2,12e-3]",
	  "[#18446744073709551616#-0#1.50#1E+2#12e-3]" },
	/* escapes */
	{ "[\"a\\n\\u0041\\\\\\\"\\/\"]", "[\"a\nA\\\"/]" },
	{ "{\"\\u006b\":0}", "{kk#0}" },
	{ "[\"\\ud83d\\ude00\"]", "[\"\xf0\x9f\x98\x80]" },
	/* half a pair: never what is not UTF-8 */
	{ "[\"<\\udc00>\\ud7ff\"]", "[\"<\xef\xbf\xbd>\xed\x9f\xbf]" },
	{ "[\"<\\ud800>\"]", "[\"<\xef\xbf\xbd>]" },
	{ "[\"\\ud800\\u0041\\udc00\\ud800\"]", "[\"\xef\xbf\xbd\x41\xef\xbf\xbd\xef\xbf\xbd]" },
	{ "[\"\\udbff\\uDFFF\\ud800\\ud800\\udc00\"]",
	  "[\"\xf4\x8f\xbf\xbf\xef\xbf\xbd\xf0\x90\x80\x80]" },
	{ "[\"\\b\\f\\n\\r\\t\\/\\u007f\\u0080\\u07ff\\u0800\\uffff\"]",
	  "[\"\b\f\n\r\t/\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf]" },
	{ "[\"gr\xc3\xbc\xc3\x9f \xed\x9f\xbf \xf4\x8f\xbf\xbf\"]",
	  "[\"gr\xc3\xbc\xc3\x9f \xed\x9f\xbf \xf4\x8f\xbf\xbf]" },
	{ "{\"a\":1,\"a\":2}", "{ka#1ka#2}" },
};

static void tokens_arrive_in_order_and_as_they_are_written(void **state)
{
	struct recorder r;
	struct error err;
	(void)state;
	for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
		if (!read_all(&r, view_of(documents[i].document), &err))
			fail_msg("%s: %s", documents[i].document, err.text);
		bytes_add_byte(&r.seen, 0);
		assert_string_equal((char *)r.seen.at, documents[i].tokens);
		bytes_fini(&r.seen);
	}
}

static const struct {
	const char *document, *error;
} invalid[] = {
	{ "", "is not an object or an array" },
	{ " 1 ", "is not an object or an array" },
	{ "\xef\xbb\xbf{}", "is not an object or an array" },
	{ "{", "is truncated, or something follows it" },
	{ "[1", "is truncated, or something follows it" },
	{ "{} x", "is truncated, or something follows it" },
	{ "[[1]", "is truncated" },
	{ "{\"a\":[1]", "is truncated" },
	{ "[\"a]", "is truncated" },
	{ "[\"\xc3\xbc]", "is truncated" },
	{ "{\"secret\": secret}", "is malformed at byte 12: expected a value" },
	{ "[1,]", "is malformed at byte 4: expected a value" },
	{ "[,1]", "is malformed at byte 2: expected a value" },
	{ "[ nul]", "is malformed at byte 3: expected a value" },
	{ "[truee]",
	  "is malformed at byte 6: expected a comma, or the end of the object or array" },
	{ "[1 2]", "is malformed at byte 4: expected a comma, or the end of the object or array" },
	{ "[}", "is malformed at byte 2: expected a value" },
	{ "[1}", "is malformed at byte 3: expected a comma, or the end of the object or array" },
	{ "{\"a\":1,}", "is malformed at byte 8: expected a string" },
	{ "{1:1}", "is malformed at byte 2: expected a string" },
	{ "{\"a\"}", "is malformed at byte 5: expected a colon" },
	{ "{\"a\" 1}", "is malformed at byte 6: expected a colon" },
	{ "[-]", "is malformed at byte 3: expected a digit" },
	{ "[1.]", "is malformed at byte 4: expected a digit" },
	{ "[1e+]", "is malformed at byte 5: expected a digit" },
	{ "[01]", "is malformed at byte 3: expected a comma, or the end of the object or array" },
	{ "[\"a\\x\"]", "is malformed at byte 4: expected an escape of JSON" },
	{ "[\"\\u12g4\"]", "is malformed at byte 3: expected an escape of JSON" },
	{ "[\"a\n\"]", "is malformed at byte 4: expected an escape, not a control character" },
	{ "[\"a\xed\xa0\x80\"]", "is malformed at byte 4: expected UTF-8" },
	{ "{} {}", "is malformed at byte 3: expected the end" },
	{ "{}]", "is malformed at byte 3: expected the end" },
};

static void errors_name_the_byte_and_what_was_expected(void **state)
{
	struct recorder r;
	struct error err;
	(void)state;
	for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
		if (read_all(&r, view_of(invalid[i].document), &err))
			fail_msg("%s was read", invalid[i].document);
		assert_int_equal(err.kind, ERROR_INVALID);
		assert_memory_equal(err.text, "the JSON ", 9);
		assert_string_equal(err.text + 9, invalid[i].error);
		bytes_fini(&r.seen);
	}
}

static void depth_has_a_limit(void **state)
{
	struct recorder r;
	struct error err;
	(void)state;
	assert_true(read_all(&r, view_of("[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]"), &err));
	bytes_fini(&r.seen);
	assert_false(
		read_all(&r, view_of("[[[[[[[[[[[[[[[[[[[{\"a\":[]}]]]]]]]]]]]]]]]]]]]"), &err));
	assert_string_equal(err.text,
			    "the JSON has more than 20 objects and arrays within each other");
	bytes_fini(&r.seen);
}

/* The sum of all numbers in the arrays "n" of an object, by the functions for such readers. */
static uint64_t sum_of(const char *document, struct json *j, struct error *err)
{
	struct view name;
	uint64_t value, sum = 0;
	error_clear(err);
	if (json_begin(j, view_of(document), DEPTH_MAX, err) && json_enter(j))
		while (json_key(j, &name)) {
			if (!view_is(name, "n"))
				json_skip(j);
			else if (json_enter(j))
				while (json_element(j))
					sum += json_digits(j, &value) ? value : !json_skip(j);
		}
	return sum;
}

static void a_reader_takes_what_it_wants_and_skips_the_rest(void **state)
{
	struct json j;
	struct error err;
	(void)state;
	assert_int_equal(sum_of("{\"x\":[1,{\"n\":[5]}],\"n\":[1, 20 ,\"300\"],\"y\":-1,"
				"\"n\":[4000,1e3,-7,null,{}]    }",
				&j, &err),
			 4321);
	assert_false(j.fault);
	assert_int_equal(j.depth, 0);
	assert_int_equal(sum_of("{\"x\":[1,{\"n\":[5,]}],\"n\":[7]}", &j, &err), 0);
	assert_true(j.fault);
	assert_string_equal(err.text, "the JSON is malformed at byte 17: expected a value");
}

static void after_a_fault_nothing_is_read(void **state)
{
	struct json j;
	struct error err;
	struct view text;
	uint32_t values[4];
	uint64_t value;
	(void)state;
	assert_true(json_begin(&j, view_of("[x,1,2,[3],{\"a\":4}]"), DEPTH_MAX, &err));
	assert_true(json_enter(&j) && json_element(&j));
	assert_false(json_number(&j, &text));
	struct error first = err;
	for (int i = 0; i < 3; i++) {
		assert_false(json_element(&j) || json_key(&j, &text) || json_string(&j, &text));
		assert_false(json_digits(&j, &value) || json_enter(&j) || json_number(&j, &text));
		assert_int_equal(json_small_numbers(&j, values, 4), 0);
		assert_int_equal(json_value(&j, &text), JSON_FAULT);
		assert_int_equal(json_next(&j, &text), JSON_FAULT);
		assert_false(json_skip(&j));
	}
	assert_true(j.fault);
	assert_string_equal(err.text, first.text);
}

static void digits_are_read_at_once_if_they_are_all_there_is(void **state)
{
	static const struct {
		const char *value;
		uint64_t is; /* UINT64_MAX: it is read otherwise */
	} values[] = {
		{ "0", 0 },
		{ "7", 7 },
		{ "12345678", 12345678 },
		{ "123456789", 123456789 },
		{ "1234567890123456", 1234567890123456 },
		{ "9999999999999999999", 9999999999999999999u },
		{ "\"0\"", 0 },
		{ "\"007\"", 7 },
		{ "\"1763042743739785632\"", 1763042743739785632 },
		{ "10000000000000000000", UINT64_MAX },
		{ "\"10000000000000000000\"", UINT64_MAX },
		{ "100000000000000000000000000000000", UINT64_MAX },
		{ "07", UINT64_MAX },
		{ "-7", UINT64_MAX },
		{ "7.0", UINT64_MAX },
		{ "7e0", UINT64_MAX },
		{ "7E0", UINT64_MAX },
		{ "\"\"", UINT64_MAX },
		{ "\"7", UINT64_MAX },
		{ "\"7 \"", UINT64_MAX },
		{ "\"/\"", UINT64_MAX },
		{ "\":\"", UINT64_MAX },
		{ "true", UINT64_MAX },
	};
	(void)state;
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		char document[80];
		struct json j;
		uint64_t value;
		snprintf(document, sizeof document, "[%s,          0]", values[i].value);
		assert_true(json_begin(&j, view_of(document), DEPTH_MAX, NULL));
		assert_true(json_enter(&j) && json_element(&j));
		bool read = json_digits(&j, &value);
		assert_int_equal(read, values[i].is != UINT64_MAX);
		assert_int_equal(j.at - j.begin, read ? 1 + strlen(values[i].value) : 1);
		if (read)
			assert_true(value == values[i].is);
	}
}

static void small_numbers_are_read_together(void **state)
{
	struct json j;
	uint32_t values[4];
	struct view text;
	(void)state;
	assert_true(json_begin(&j, view_of("[0,1,22,333,4444,9999999,10000000,5,6 ,7,08]"),
			       DEPTH_MAX, NULL));
	assert_true(json_enter(&j));
	assert_int_equal(json_small_numbers(&j, values, 4), 4);
	assert_memory_equal(values, ((uint32_t[]){ 0, 1, 22, 333 }), sizeof values);
	assert_int_equal(json_small_numbers(&j, values, 4), 2);
	assert_int_equal(values[1], 9999999);
	assert_int_equal(json_small_numbers(&j, values, 4), 0);
	assert_true(json_element(&j) && json_number(&j, &text) && view_is(text, "10000000"));
	assert_int_equal(json_small_numbers(&j, values, 4), 1); /* a blank is behind the next */
	assert_true(json_element(&j) && json_number(&j, &text) && view_is(text, "6"));
	assert_int_equal(json_small_numbers(&j, values, 4), 0);
	assert_true(json_element(&j) && json_number(&j, &text) && view_is(text, "7"));
	assert_int_equal(json_small_numbers(&j, values, 4), 0);
	assert_true(json_element(&j) && json_number(&j, &text) && view_is(text, "0"));
	assert_false(json_element(&j));
	assert_true(j.fault);
}

/* Every byte at every place of strings of every length: the vectors end as the bytes do. */
static void strings_end_where_they_end(void **state)
{
	static const char specials[] = "\"\\\n\x1f\x80\xff";
	(void)state;
	for (size_t len = 0; len < 70; len++)
		for (size_t at = 0; at <= len; at++) {
			uint8_t *copy = memory_resize(NULL, len + 1);
			memset(copy, 'a' + (int)(at % 20), len + 1);
			for (const char *s = specials; *s; s++) {
				copy[at] = (uint8_t)*s;
				assert_ptr_equal(json_plain(copy, copy + len), copy + at);
			}
			copy[at] = 0x7f;
			assert_ptr_equal(json_plain(copy, copy + len), copy + len);
			memory_free(copy);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_arrive_in_order_and_as_they_are_written),
		cmocka_unit_test(errors_name_the_byte_and_what_was_expected),
		cmocka_unit_test(depth_has_a_limit),
		cmocka_unit_test(a_reader_takes_what_it_wants_and_skips_the_rest),
		cmocka_unit_test(after_a_fault_nothing_is_read),
		cmocka_unit_test(digits_are_read_at_once_if_they_are_all_there_is),
		cmocka_unit_test(small_numbers_are_read_together),
		cmocka_unit_test(strings_end_where_they_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
