/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/explain_verdicts.h"

/* So many keys that a search through all of them would not end. */
enum { KEYS = 200000 };

static const char *key_of(int number)
{
	static char text[16];
	snprintf(text, sizeof text, "key.%d", number);
	return text;
}

static void each_field_is_found_among_many(void **state)
{
	struct explain_verdicts v = { 0 };
	(void)state;
	assert_null(explain_verdicts_find(&v, SITE_RESOURCE, "key.0"));
	for (int i = 0; i < KEYS; i++)
		explain_verdicts_add(&v, i % 2 ? SITE_RESOURCE : SITE_SAMPLE, key_of(i), "denied");
	for (int i = 0; i < KEYS; i++) {
		enum site site = i % 2 ? SITE_RESOURCE : SITE_SAMPLE;
		enum site other = i % 2 ? SITE_SAMPLE : SITE_RESOURCE;
		struct explain_verdict *found = explain_verdicts_find(&v, site, key_of(i));
		assert_ptr_equal(found, &v.at[i]);
		assert_null(explain_verdicts_earlier(&v, found));
		assert_null(explain_verdicts_find(&v, other, key_of(i)));
	}
	explain_verdicts_fini(&v);
}

static void the_last_one_about_a_field_comes_first(void **state)
{
	static const char *const what[] = { "set", "hashed", "denied" };
	struct explain_verdicts v = { 0 };
	(void)state;
	for (int i = 0; i < 3; i++) {
		explain_verdicts_add(&v, SITE_RESOURCE, "a", what[i])->count = 1;
		for (int k = 0; k < 100; k++) /* between them, the table grows */
			explain_verdicts_add(&v, SITE_RESOURCE, key_of(100 * i + k), "denied");
	}
	const struct explain_verdict *found = explain_verdicts_find(&v, SITE_RESOURCE, "a");
	for (int i = 2; i >= 0; i--) {
		assert_string_equal(found->what, what[i]);
		assert_int_equal(found->count, 1);
		found = explain_verdicts_earlier(&v, found);
	}
	assert_null(found);
	explain_verdicts_fini(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_is_found_among_many),
		cmocka_unit_test(the_last_one_about_a_field_comes_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
