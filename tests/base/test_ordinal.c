/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/ordinal.h"

static void indices_become_ordinals(void **state)
{
	static const struct {
		size_t index;
		const char *text;
	} cases[] = {
		{ 0, "first" },   { 1, "second" },    { 9, "tenth" },   { 10, "11th" },
		{ 11, "12th" },   { 12, "13th" },     { 20, "21st" },   { 21, "22nd" },
		{ 22, "23rd" },   { 23, "24th" },     { 110, "111th" }, { 111, "112th" },
		{ 120, "121st" }, { 1000, "1001st" },
	};
	char text[ORDINAL_TEXT];
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(ordinal_text(cases[i].index, text), cases[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(indices_become_ordinals) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
