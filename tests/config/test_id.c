/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/memory.h"
#include "config/id.h"

static void ids_are_cut_and_trimmed(void **state)
{
	static const struct {
		const char *text, *id;
		size_t type_len;
	} cases[] = {
		{ "otlp", "otlp", 4 },
		{ " otlp ", "otlp", 4 },
		{ "otlp/a", "otlp/a", 4 },
		{ " otlp / a/b ", "otlp/a/b", 4 },
		{ "otlp/tenant-1.x_y:z", "otlp/tenant-1.x_y:z", 4 },
		{ "otlp/\xc3\xbc", "otlp/\xc3\xbc", 4 },
		{ "a1_/1", "a1_/1", 3 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct config_id id;
		assert_true(config_id_parse(cases[i].text, &id, NULL));
		assert_string_equal(id.text, cases[i].id);
		assert_int_equal(id.type_len, cases[i].type_len);
		config_id_fini(&id);
	}
}

static void bad_ids_are_explained(void **state)
{
	static const char *const cases[][2] = {
		{ "", "id must not be empty" },
		{ "  ", "id must not be empty" },
		{ "nop/", "in \"nop/\" id: the part after / should not be empty" },
		{ "/x", "in \"/x\" id: the part before / should not be empty" },
		{ "/", "in \"/\" id: the part before / should not be empty" },
		{ "1a", "invalid character(s) in type \"1a\"" },
		{ "a-b", "invalid character(s) in type \"a-b\"" },
		{ "a/b c", "invalid character(s) in name \"b c\"" },
		{ "a/b$", "invalid character(s) in name \"b$\"" },
		{ "a/\xe2\x82\xac", "invalid character(s) in name \"\xe2\x82\xac\"" },
		{ "a/\xe2\x80\x8b", "invalid character(s) in name \"\xe2\x80\x8b\"" },
		{ "a/\xff", "invalid character(s) in name \"\xff\"" },
		{ "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl",
		  "invalid character(s) in type "
		  "\"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl\"" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct config_id id;
		struct error err;
		assert_false(config_id_parse(cases[i][0], &id, &err));
		assert_string_equal(err.text, cases[i][1]);
	}
}

static void names_have_a_length(void **state)
{
	(void)state;
	char *text = memory_new(2000);
	memset(text, 'n', 2 + 1024);
	memcpy(text, "a/", 2);
	struct config_id id;
	struct error err;
	assert_true(config_id_parse(text, &id, &err));
	config_id_fini(&id);
	text[2 + 1024] = 'n';
	assert_false(config_id_parse(text, &id, &err));
	assert_non_null(strstr(err.text, "\" is longer than 1024 characters (1025 characters)"));
	memory_free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_are_cut_and_trimmed),
		cmocka_unit_test(bad_ids_are_explained),
		cmocka_unit_test(names_have_a_length),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
