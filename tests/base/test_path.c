/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/path.h"

static void what_says_nothing_is_left_out(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{ "a", "a" },
		{ "/a/b.jsonl", "/a/b.jsonl" },
		{ "a//b/", "a/b" },
		{ "./a/./b", "a/b" },
		{ "x/../a", "a" },
		{ "x/y/../../../a", "../a" },
		{ "../../a", "../../a" },
		{ "/../a", "/a" },
		{ "..a/.b/...", "..a/.b/..." },
		{ "x/..", "." },
		{ "//", "/" },
		{ "", "." },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *normal = path_normal(cases[i][0]);
		assert_string_equal(normal, cases[i][1]);
		memory_free(normal);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(what_says_nothing_is_left_out) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
