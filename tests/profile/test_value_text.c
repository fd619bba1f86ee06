/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "profile/value_text.h"
#include "tests/support/open.h"

/* The expected strings are those that pcommon.Value.AsString of pdata 1.67 returns, unless
 * noted. */

static struct request request;
static struct profiles p;

static int set_up(void **state)
{
	(void)state;
	open_begin(&p, &request);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	profiles_fini(&p);
	return 0;
}

static struct attribute number_of(double number)
{
	struct attribute a = { .type = VALUE_DOUBLE };
	attribute_set_number(&a, number);
	return a;
}

static struct attribute integer_of(int64_t integer)
{
	struct attribute a = { .type = VALUE_INT };
	attribute_set_integer(&a, integer);
	return a;
}

static struct attribute bytes_of(const char *data, size_t len)
{
	return (struct attribute){ .type = VALUE_BYTES,
				   .bytes = profiles_bytes_new(&p, data, len) };
}

static struct attribute string_of(const char *text)
{
	return (struct attribute){ .type = VALUE_STRING, .string = open_text(&p, text) };
}

/* An array, or a map if the children have keys. */
static struct attribute nest(const struct attribute *children, uint32_t count)
{
	struct list list = { p.attributes.count, count };
	for (uint32_t i = 0; i < count; i++)
		profiles_attribute_new(&p, children[i]);
	bool keyed = count && children[0].key;
	return (struct attribute){ .type = keyed ? VALUE_KVLIST : VALUE_ARRAY, .children = list };
}

#define NEST(...) \
	nest((const struct attribute[]){ __VA_ARGS__ }, \
	     sizeof((const struct attribute[]){ __VA_ARGS__ }) / sizeof(struct attribute))

static struct attribute keyed(const char *key, struct attribute value)
{
	value.key = open_text(&p, key);
	return value;
}

static void becomes(struct attribute a, const char *text)
{
	struct bytes out;
	bytes_init(&out, 1000);
	assert_true(value_text_add(&p, &a, &out));
	assert_true(bytes_add_byte(&out, 0));
	assert_string_equal((const char *)out.at, text);
	bytes_fini(&out);
}

static void doubles_are_plain_up_to_1e21_and_shortest(void **state)
{
	(void)state;
	static const struct {
		double number;
		const char *text;
	} rows[] = {
		{ 0, "0" },
		{ -0.0, "-0" },
		{ 3, "3" },
		{ -2.25, "-2.25" },
		{ 0.1, "0.1" },
		{ 0.1 + 0.2, "0.30000000000000004" },
		{ 1e15, "1000000000000000" },
		{ 0x1p63, "9223372036854776000" },
		{ 136298015041561842401.0, "136298015041561840000" },
		{ 999999999999999900000.0, "999999999999999900000" },
		{ 1e21, "1e+21" },
		{ -1.5e300, "-1.5e+300" },
		{ 1e-6, "0.000001" },
		{ 0x1.0c6f7a0b5ed8cp-20, "9.999999999999997e-7" },
		{ 1e-7, "1e-7" },
		{ 1.5e-10, "1.5e-10" },
		{ 0x1p-1074, "5e-324" },
		{ 1.7976931348623157e308, "1.7976931348623157e+308" },
		{ NAN, "NaN" },
		{ -NAN, "NaN" },
		{ INFINITY, "Infinity" },
		{ -INFINITY, "-Infinity" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		becomes(number_of(rows[i].number), rows[i].text);
}

static void other_plain_values_are_as_they_are(void **state)
{
	(void)state;
	becomes(string_of("a \"b\"\n"), "a \"b\"\n");
	becomes((struct attribute){ .type = VALUE_BOOL, .boolean = 1 }, "true");
	becomes((struct attribute){ .type = VALUE_BOOL }, "false");
	becomes(integer_of(INT64_MIN), "-9223372036854775808");
	becomes(integer_of(INT64_MAX), "9223372036854775807");
	becomes((struct attribute){ .type = VALUE_EMPTY }, "");
}

static void bytes_are_base64(void **state)
{
	(void)state;
	becomes(bytes_of("", 0), "");
	becomes(bytes_of("\0", 1), "AA==");
	becomes(bytes_of("\0\xff", 2), "AP8=");
	becomes(bytes_of("\xfb\xff\xfe", 3), "+//+");
}

static void lists_are_json(void **state)
{
	(void)state;
	becomes(NEST(number_of(1e15), number_of(1e-7), number_of(-0.0), bytes_of("\0\xff\x10", 3),
		     (struct attribute){ .type = VALUE_EMPTY },
		     (struct attribute){ .type = VALUE_BOOL, .boolean = 1 }, integer_of(INT64_MIN)),
		"[1000000000000000,1e-7,-0,\"AP8Q\",null,true,-9223372036854775808]");
	becomes(nest(NULL, 0), "[]");
	becomes((struct attribute){ .type = VALUE_KVLIST }, "{}");
	becomes(NEST(keyed("k\"<\n\x7f\x01\b", string_of("v\xc3\xa9")),
		     keyed("l", NEST(integer_of(1), NEST(string_of("x\\"))))),
		"{\"k\\\"<\\n\x7f\\u0001\\b\":\"v\xc3\xa9\",\"l\":[1,[\"x\\\\\"]]}");
}

/* AsString returns an empty string for the whole list. */
static void numbers_that_json_does_not_have_are_strings_there(void **state)
{
	(void)state;
	becomes(NEST(number_of(NAN), number_of(INFINITY), number_of(-INFINITY), integer_of(1)),
		"[\"NaN\",\"Infinity\",\"-Infinity\",1]");
}

static void only_plain_values_have_a_view(void **state)
{
	(void)state;
	char room[VALUE_TEXT_ROOM];
	struct view text;
	struct attribute a = string_of("shop");
	assert_true(value_text_scalar(&p, &a, room, &text));
	assert_ptr_equal(text.at, string_view(&p, a.string).at);
	assert_int_equal(text.len, 4);
	a = number_of(2.5);
	assert_true(value_text_scalar(&p, &a, room, &text));
	assert_true(view_is(text, "2.5"));
	static const uint8_t others[] = { VALUE_EMPTY, VALUE_BYTES, VALUE_ARRAY, VALUE_KVLIST };
	for (size_t i = 0; i < sizeof others; i++)
		assert_false(value_text_scalar(&p, &(struct attribute){ .type = others[i] }, room,
					       &text));
}

static void a_full_buffer_is_an_error(void **state)
{
	(void)state;
	struct attribute values[] = { string_of("text"), number_of(12345), bytes_of("abc", 3),
				      NEST(integer_of(1), string_of("\n")),
				      NEST(keyed("a", number_of(NAN))) };
	static const size_t lengths[] = { 4, 5, 4, 8, 11 };
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
		for (size_t max = 0; max <= lengths[i]; max++) {
			struct bytes out;
			bytes_init(&out, max);
			assert_int_equal(value_text_add(&p, &values[i], &out), max == lengths[i]);
			bytes_fini(&out);
		}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(doubles_are_plain_up_to_1e21_and_shortest),
		TEST(other_plain_values_are_as_they_are),
		TEST(bytes_are_base64),
		TEST(lists_are_json),
		TEST(numbers_that_json_does_not_have_are_strings_there),
		TEST(only_plain_values_have_a_view),
		TEST(a_full_buffer_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
