/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/memory.h"
#include "processors/regex.h"

static enum regex_result find(const char *pattern, unsigned flags, const char *text)
{
	struct error err;
	struct regex *regex = regex_new(pattern, flags, &err);
	struct regex_memory *memory = regex_memory_new();
	assert_non_null(regex);
	enum regex_result result = regex_find(regex, memory, view_of(text), 0);
	regex_memory_unref(&memory);
	regex_unref(&regex);
	return result;
}

static void whole_means_every_byte(void **state)
{
	(void)state;
	assert_int_equal(find("a|ab", REGEX_WHOLE, "ab"), REGEX_YES);
	assert_int_equal(find("^a$", REGEX_WHOLE, "a\n"), REGEX_NO);
	assert_int_equal(find("a", REGEX_WHOLE, "xa"), REGEX_NO);
	assert_int_equal(find("a", REGEX_WHOLE, "ax"), REGEX_NO);
	assert_int_equal(find("a", 0, "xax"), REGEX_YES);
}

static void a_limit_is_an_error_and_no_answer(void **state)
{
	(void)state;
	char text[REGEX_TEXT_MAX + 2];
	memset(text, 'a', sizeof text);
	text[sizeof text - 1] = '\0';
	assert_int_equal(find("a", 0, text), REGEX_ERROR);
	memcpy(text + 200, "!@", 3); /* the character that the pattern requires is present */
	assert_int_equal(find("(?:a+)*\\d@", 0, text), REGEX_ERROR);
}

static void groups_have_names_and_places(void **state)
{
	(void)state;
	struct error err;
	struct regex *regex = regex_new("(?P<one>a+)(?<two>x)?(b)", 0, &err);
	struct regex_memory *memory = regex_memory_new();
	assert_int_equal(regex_groups(regex), 3);
	assert_string_equal(regex_group_name(regex, 1), "one");
	assert_string_equal(regex_group_name(regex, 2), "two");
	assert_null(regex_group_name(regex, 3));
	assert_int_equal(regex_find(regex, memory, view_of("--aab"), 0), REGEX_YES);
	assert_int_equal(regex_group(memory, 1).start, 2);
	assert_int_equal(regex_group(memory, 1).end, 4);
	assert_false(regex_group(memory, 2).set);
	assert_int_equal(regex_find(regex, memory, view_of("--aab"), 3), REGEX_YES);
	assert_int_equal(regex_group(memory, 0).start, 3);
	regex_memory_unref(&memory);
	regex_unref(&regex);
}

static void a_broken_pattern_is_refused(void **state)
{
	(void)state;
	struct error err = { 0 };
	assert_null(regex_new("a(", 0, &err));
	assert_int_equal(err.kind, ERROR_CONFIG);
	assert_null(regex_new("(((((((((((((((((((((((((((((((("
			      "a))))))))))))))))))))))))))))))))",
			      0, &err));
}

static void costly_patterns_are_refused_by_counting(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"\\w+[.-]?\\w+@", "(?:[a-z]+)*\\d@", "(x+x+)+y",  "a*",       "(?:a|a)*b",
		"[0-9]+Q",        "\\s+$",           ".*a.*b.*c", "(z|zz)+!", "\\w(?=.*;)"
	};
	static const char *const good[] = { "EMP-[0-9]{6}", "\\bacct_[a-z0-9]{8,16}\\b",
					    "[A-Z]{2}\\d{2}(?: ?\\d{4}){4}", "secret=\\S{1,64}" };
	struct error err;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (regex_check_cost(bad[i], REGEX_NOT_EMPTY, &err))
			fail_msg("accepted: %s", bad[i]);
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		if (!regex_check_cost(good[i], REGEX_NOT_EMPTY, &err))
			fail_msg("%s: %s", good[i], err.text);
}

static void costly_patterns_of_a_whole_text_are_refused(void **state)
{
	(void)state;
	static const char *const bad[] = { "^([a-z]+\\.?)+$", "(?:[a-z]+)*[0-9]", "(a|aa)+",
					   "(.*,)*x" };
	static const char *const good[] = { ".*",
					    "[a-z]*",
					    "k8s\\..*",
					    "([a-z]+\\.)+[a-z]+",
					    "(?:[a-z_]|\\.)+",
					    "^open\\..{1,24}$" };
	struct error err;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (regex_check_cost(bad[i], REGEX_WHOLE, &err))
			fail_msg("accepted: %s", bad[i]);
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		if (!regex_check_cost(good[i], REGEX_WHOLE, &err))
			fail_msg("%s: %s", good[i], err.text);
}

/* Patterns that pass the check may still be expensive for some strings. The length of the string
 * bounds each search. */
static void what_a_search_may_cost_grows_with_its_text(void **state)
{
	(void)state;
	assert_int_equal(find("(?:a+)*\\d@", 0, "aaa!@"), REGEX_NO);
	assert_int_equal(find("(?:a+)*\\d@", 0, "aaaaaaaaaaaaa!@"), REGEX_ERROR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_means_every_byte),
		cmocka_unit_test(a_limit_is_an_error_and_no_answer),
		cmocka_unit_test(groups_have_names_and_places),
		cmocka_unit_test(a_broken_pattern_is_refused),
		cmocka_unit_test(costly_patterns_are_refused_by_counting),
		cmocka_unit_test(costly_patterns_of_a_whole_text_are_refused),
		cmocka_unit_test(what_a_search_may_cost_grows_with_its_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
