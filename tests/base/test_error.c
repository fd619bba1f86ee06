/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/error.h"

static void set_fills_and_says_false(void **state)
{
	(void)state;
	struct error err;
	assert_false(error_set(&err, ERROR_INVALID, "field %d", 3));
	assert_int_equal(err.kind, ERROR_INVALID);
	assert_int_equal(err.retry_after_ms, 0);
	assert_string_equal(err.text, "field 3");
	assert_false(error_set(NULL, ERROR_INVALID, "nobody listens"));
	error_clear(&err);
	assert_int_equal(err.kind, ERROR_NONE);
	assert_string_equal(err.text, "");
}

static void prefixes_go_before_and_keep_the_kind(void **state)
{
	(void)state;
	struct error err;
	error_set(&err, ERROR_BUSY, "full");
	assert_false(error_prefix(&err, "queue %s", "a"));
	assert_string_equal(err.text, "queue a: full");
	assert_int_equal(err.kind, ERROR_BUSY);
	assert_false(error_prefix(NULL, "nobody"));
}

static void long_texts_are_cut(void **state)
{
	(void)state;
	struct error err;
	char text[1000];
	memset(text, 'x', sizeof text);
	text[sizeof text - 1] = '\0';
	error_set(&err, ERROR_CONFIG, "%s", text);
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
	error_prefix(&err, "path");
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
	assert_memory_equal(err.text, "path: xxx", 9);
	error_prefix(&err, "%s", text);
	assert_memory_equal(err.text, "path: xxx", 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_fills_and_says_false),
		cmocka_unit_test(prefixes_go_before_and_keep_the_kind),
		cmocka_unit_test(long_texts_are_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
