/* SPDX-License-Identifier: Apache-2.0 */
#include "net/fields.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct fields_limits limits = { .count = 4, .name = 10, .value = 20, .total = 40 };

/* Adds with `add` and prints the list as "name=value|..."; an error as "!message". */
static const char *shown(bool (*add)(struct fields *, const char *, struct error *),
			 const char *text)
{
	static struct bytes out;
	struct fields f;
	struct error err;
	bytes_fini(&out);
	bytes_init(&out, 1000);
	fields_init(&f, &limits);
	if (!add(&f, text, &err))
		bytes_format(&out, "!%s", err.text);
	else
		for (const struct metadatum *at = fields_list(&f); at->name; at++)
			bytes_format(&out, "%s=%s|", at->name, at->value);
	fields_fini(&f);
	bytes_add_byte(&out, 0);
	return (const char *)out.at;
}

static void query_is_decoded_in_order(void **state)
{
	(void)state;
	assert_string_equal(shown(fields_add_query, "a=1&b=x%20y+z&c&=&d=="),
			    "!query parameter: entry 4: empty name");
	assert_string_equal(shown(fields_add_query, "a=1&b=x%20y+z&c&&d=="), "a=1|b=x y z|c=|d==|");
	assert_string_equal(shown(fields_add_query, ""), "");
	assert_string_equal(shown(fields_add_query, "%C3%A9=%c3%a9"), "é=é|");
}

static void pairs_are_trimmed_and_keep_their_plus(void **state)
{
	(void)state;
	assert_string_equal(shown(fields_add_pairs, " a = 1+1 ,b=x%2Cy,, c"), "a=1+1|b=x,y|c=|");
}

static void bad_escapes_are_errors_with_a_position_and_no_text(void **state)
{
	static const char *const bad[] = { "a=1&b=%", "a=1&b=%4", "a=1&b=%4g", "a=1&%zz=1" };
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_string_equal(shown(fields_add_query, bad[i]), "!query parameter: entry 2: "
								     "invalid percent escape");
}

static void text_must_be_utf8_without_controls(void **state)
{
	static const char *const bad[] = { "a=%ff", "%80=1",       "a=%00", "a=%0a",
					   "a=%7f", "a=%ed%a0%80", "a=\x01" };
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_string_equal(
			shown(fields_add_query, bad[i]),
			"!query parameter: entry 1: not valid UTF-8, or contains control "
			"characters");
}

static void every_limit_is_an_error(void **state)
{
	(void)state;
	assert_string_equal(shown(fields_add_query, "a&b&c&d&e"),
			    "!query parameter: entry 5: more than 4 entries");
	assert_string_equal(shown(fields_add_query, "abcdefghijk"),
			    "!query parameter: entry 1: more than 10 bytes in the name");
	assert_string_equal(shown(fields_add_query, "a=123456789012345678901"),
			    "!query parameter: entry 1: more than 20 bytes in the value");
	assert_string_equal(shown(fields_add_query,
				  "a=12345678901234567890&b=12345678901234567890&c=123456789"),
			    "!query parameter: entry 3: more than 40 bytes in total");
}

static void a_name_twice_is_found(void **state)
{
	struct fields f;
	struct error err;
	(void)state;
	fields_init(&f, &limits);
	assert_true(fields_add_query(&f, "a=1&b=2", &err) && fields_unique(&f, &err));
	assert_true(fields_add_pairs(&f, "a=3", &err));
	assert_false(fields_unique(&f, &err));
	assert_string_equal(err.text, "entry 3: repeats the name of entry 1");
	fields_fini(&f);
}

static void names_are_lower_cased_and_values_are_not(void **state)
{
	struct fields f;
	struct error err;
	(void)state;
	fields_init(&f, &limits);
	assert_true(fields_add(&f, view_of("X-Ab"), view_of("X-Ab"), &err));
	assert_true(fields_add(&f, view_of("Ü@Z["), view_of("Z"), &err));
	fields_lower(&f);
	const struct metadatum *at = fields_list(&f);
	assert_string_equal(at[0].name, "x-ab");
	assert_string_equal(at[0].value, "X-Ab");
	assert_string_equal(at[1].name, "Ü@z[");
	fields_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(query_is_decoded_in_order),
		cmocka_unit_test(pairs_are_trimmed_and_keep_their_plus),
		cmocka_unit_test(bad_escapes_are_errors_with_a_position_and_no_text),
		cmocka_unit_test(text_must_be_utf8_without_controls),
		cmocka_unit_test(every_limit_is_an_error),
		cmocka_unit_test(a_name_twice_is_found),
		cmocka_unit_test(names_are_lower_cased_and_values_are_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
