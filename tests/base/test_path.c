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

static void devices_and_open_files_are_known_by_name(void **state)
{
	(void)state;
	static const char *const devices[] = { "/dev/stdout",         "//dev/./full",
					       "/dev/fd/3",           "/dev/pts/0",
					       "/proc/self/fd/1",     "/proc/1/fd/2",
					       "/x/../proc/self/fd/1" };
	static const char *const files[] = { "dev/stdout",
					     "/dev",
					     "/dev/shm/a",
					     "/dev/../a",
					     "/device",
					     "/proc/self/fd",
					     "a",
					     "/proc/self/cwd/fd/1",
					     "/proc/self/fd/1/a",
					     "/proc/self/cwd/a",
					     "/a/proc/self/fd/1" };
	for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
		assert_true(path_is_device(devices[i]));
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (path_is_device(files[i]))
			fail_msg("%s", files[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_says_nothing_is_left_out),
		cmocka_unit_test(devices_and_open_files_are_known_by_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
