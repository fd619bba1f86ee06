/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "processors/go_pattern.h"
#include "processors/redaction_values.h"
#include "tests/processors/go_patterns.h"

#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The string as `redaction` leaves it, with # instead of the mask; freed by the caller. */
static char *replaced(const char *pattern, const char *text)
{
	struct redaction_values values;
	struct redaction_scratch *scratch = calloc(1, sizeof *scratch);
	struct strings blocked = { (char **)&pattern, 1 }, none = { 0 };
	struct error err;
	char *out = calloc(1, strlen(text) + 1000), *mask;
	if (!redaction_values_init(&values,
				   &(struct redaction_values_config){ &blocked, &none, NULL, NULL },
				   &err))
		fail_msg("%s: %s", pattern, err.text);
	struct redaction_verdict v = redaction_values_search(&values, scratch, view_of(text));
	struct view result = v.outcome == REDACTION_CLEAN ? view_of(text) : v.text;
	memcpy(out, result.at, result.len);
	while ((mask = strstr(out, REDACTION_MASK))) {
		*mask = '#';
		memmove(mask + 1, mask + 4, strlen(mask + 4) + 1);
	}
	redaction_values_fini(&values);
	redaction_scratch_fini(scratch);
	free(scratch);
	return out;
}

static void patterns_match_what_they_match_in_go(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(go_samples); i++) {
		const struct go_sample *s = &go_samples[i];
		char *got = replaced(s->pattern, s->text);
		if (strcmp(got, s->replaced) != 0)
			fail_msg("%s in \"%s\": \"%s\" instead of \"%s\"", s->pattern, s->text, got,
				 s->replaced);
		free(got);
	}
}

static void what_go_rejects_is_rejected_with_a_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(not_go); i++) {
		struct error err;
		struct regex *regex = regex_new(not_go[i], REGEX_GO, &err);
		if (regex)
			fail_msg("accepted: %s", not_go[i]);
		assert_int_equal(err.kind, ERROR_CONFIG);
		assert_non_null(strstr(err.text, "invalid regular expression: "));
	}
}

/* Every position of a run, and every position behind it: quadratic without the translation. */
static void a_pattern_that_begins_with_a_run_is_cheap(void **state)
{
	(void)state;
	static const char *const cheap[] = {
		".*token.*",
		".+@mycompany.com",
		"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\\.[a-zA-Z]{2,}",
		"([a-zA-Z0-9._-]+)@example",
		"\\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\\.[A-Z|a-z]{2,}\\b",
		"(?i)(\\w+-secret|\\S+@\\S+)",
		"\\S{3,}!"
	};
	static const char *const dear[] = { "(a+)+b", "x[a-z]*y[a-z]*z", "a.*b.*c.*d" };
	struct error err;
	for (size_t i = 0; i < COUNT(cheap); i++)
		if (!regex_check_cost(cheap[i], REGEX_GO, &err))
			fail_msg("%s: %s", cheap[i], err.text);
	for (size_t i = 0; i < COUNT(dear); i++)
		if (regex_check_cost(dear[i], REGEX_GO, &err))
			fail_msg("cheap: %s", dear[i]);
}

static void a_pattern_has_limits(void **state)
{
	(void)state;
	struct error err;
	char text[GO_PATTERN_MAX + 2];
	memset(text, 'a', sizeof text);
	text[GO_PATTERN_MAX] = '\0';
	struct regex *regex = regex_new(text, REGEX_GO, &err);
	assert_non_null(regex);
	regex_unref(&regex);
	text[GO_PATTERN_MAX] = 'a';
	text[GO_PATTERN_MAX + 1] = '\0';
	assert_null(regex_new(text, REGEX_GO, &err));
	memset(text, '(', 200);
	text[200] = '\0';
	assert_null(regex_new(text, REGEX_GO, &err));
	/* More alternatives that begin with a run than are remembered. */
	size_t len = 0;
	for (int i = 0; i < 100; i++)
		len += (size_t)snprintf(text + len, sizeof text - len, "%sa+%d", i ? "|" : "", i);
	regex = regex_new(text, REGEX_GO, &err);
	assert_non_null(regex);
	regex_unref(&regex);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_match_what_they_match_in_go),
		cmocka_unit_test(what_go_rejects_is_rejected_with_a_reason),
		cmocka_unit_test(a_pattern_that_begins_with_a_run_is_cheap),
		cmocka_unit_test(a_pattern_has_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
