/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/memory.h"

/* Writes the tokens down, one character each, and what they carry. */
struct recorder {
	struct json_reader reader;
	struct bytes seen;
	uint32_t stop_after; /* tokens; 0: never */
	uint32_t taken;
};

static bool record(struct json_reader *reader, enum json_token token, struct view text)
{
	struct recorder *r = (struct recorder *)reader;
	static const char marks[] = "nft#\"k{}[]";
	bytes_add_byte(&r->seen, (uint8_t)marks[token]);
	bytes_add(&r->seen, text.at, text.len);
	return ++r->taken != r->stop_after;
}

static bool read_all(struct recorder *r, struct view document, struct error *err)
{
	*r = (struct recorder){ .reader = { .take = record, .depth_max = 20 },
				.stop_after = r->stop_after };
	bytes_init(&r->seen, 1 << 20);
	error_clear(err);
	return json_read(&r->reader, document, err);
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
	{ "[\"<\\ud800>\"]", "[\"<?>]" },
	{ "[\"gr\xc3\xbc\xc3\x9f \xed\x9f\xbf \xf4\x8f\xbf\xbf\"]",
	  "[\"gr\xc3\xbc\xc3\x9f \xed\x9f\xbf \xf4\x8f\xbf\xbf]" },
	{ "{\"a\":1,\"a\":2}", "{ka#1ka#2}" },
};

static void tokens_arrive_in_order_and_as_they_are_written(void **state)
{
	struct recorder r = { 0 };
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

static const char *const invalid[] = {
	"",
	" ",
	"1",
	"\"a\"",
	"null",
	"{",
	"[1",
	"[1,]",
	"{\"a\":1,}",
	"{\"a\"}",
	"{\"a\" 1}",
	"{a:1}",
	"{'a':1}",
	"{1:1}",
	"[01]",
	"[+1]",
	"[1.]",
	"[.5]",
	"[1e]",
	"[-]",
	"[0x10]",
	"[NaN]",
	"[Infinity]",
	"[tru]",
	"[truee]",
	"[\"\\x41\"]",
	"[\"\\u12g4\"]",
	"[\"\n\"]",
	"[\"a]",
	"[\"a\\\"]",
	"[\"\x80\"]",
	"[\"\xc0\xaf\"]",
	"[\"\xed\xa0\x80\"]",
	"[\"\xf5\x80\x80\x80\"]",
	"[\"\xc3\"]",
	"\xef\xbb\xbf{}",
	"{} {}",
	"{}]",
	"{}}",
	"[}",
	"{]",
	"{} x",
	"[1] // no",
	"/* no */ [1]",
	"[1 /* no */]",
	"[1 2]",
	"[,1]",
};

static void what_is_not_json_is_an_error(void **state)
{
	struct recorder r = { 0 };
	struct error err;
	(void)state;
	for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
		if (read_all(&r, view_of(invalid[i]), &err))
			fail_msg("%s was read", invalid[i]);
		assert_int_equal(err.kind, ERROR_INVALID);
		assert_non_null(strstr(err.text, "the JSON "));
		bytes_fini(&r.seen);
	}
	assert_false(read_all(&r, (struct view){ (const uint8_t *)"[\"\0\"]", 5 }, &err));
	bytes_fini(&r.seen);
	assert_false(read_all(&r, (struct view){ (const uint8_t *)"{}\0", 3 }, &err));
	bytes_fini(&r.seen);
}

static void an_error_names_the_byte_and_none_of_its_neighbours(void **state)
{
	struct recorder r = { 0 };
	struct error err;
	(void)state;
	assert_false(read_all(&r, view_of("{\"secret\": secret}"), &err));
	assert_string_equal(err.text, "the JSON is malformed at byte 12");
	bytes_fini(&r.seen);
}

static void depth_has_a_limit(void **state)
{
	struct recorder r = { 0 };
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

static void the_reader_can_end_the_reading(void **state)
{
	struct recorder r = { .stop_after = 2 };
	struct error err;
	(void)state;
	assert_false(read_all(&r, view_of("[1,2,3]"), &err));
	assert_int_equal(err.kind, ERROR_NONE);
	assert_int_equal(r.taken, 2);
	bytes_fini(&r.seen);
}

static size_t memory_of(const char *begin, const char *middle, size_t count, const char *end)
{
	struct bytes b;
	bytes_init(&b, 1 << 20);
	bytes_add_text(&b, begin);
	for (size_t i = 0; i < count; i++)
		bytes_add_text(&b, middle);
	bytes_add_text(&b, end);
	size_t memory = json_memory(bytes_view(&b));
	bytes_fini(&b);
	return memory;
}

static void memory_is_needed_for_long_strings_that_are_copied(void **state)
{
	(void)state;
	assert_int_equal(memory_of("", "", 0, ""), 0);
	assert_int_equal(memory_of("[\"", "a", 100000, "\"]"), 0);
	assert_int_equal(memory_of("[\"\\n\",\"", "a", 100000, "\"]"), 0);
	assert_int_equal(memory_of("[\"\\n", "a", 100000, "\"]"), 3 * 100002);
	assert_int_equal(memory_of("[\"\\\"", "a", 100000, "\\\\\"]"), 3 * 100004);
	assert_int_equal(memory_of("[\"", "a", 100000, "]"), 3 * 100001);
	assert_int_equal(memory_of("[\"", "a", 100000, "\\"), 3 * 100001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_arrive_in_order_and_as_they_are_written),
		cmocka_unit_test(what_is_not_json_is_an_error),
		cmocka_unit_test(an_error_names_the_byte_and_none_of_its_neighbours),
		cmocka_unit_test(depth_has_a_limit),
		cmocka_unit_test(the_reader_can_end_the_reading),
		cmocka_unit_test(memory_is_needed_for_long_strings_that_are_copied),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
