/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/quote.h"

static void texts_become_json(void **state)
{
	static const struct {
		const char *text, *json, *plain;
	} cases[] = {
		{ "", "\"\"", "" },
		{ "a\"b\\c", "\"a\\\"b\\\\c\"", "a\"b\\c" },
		{ "\b\t\n\f\r", "\"\\b\\t\\n\\f\\r\"", "\\b\\t\\n\\f\\r" },
		{ "\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\"", "\\u0001\\u001f\\u007f" },
		{ "\xc3\xbc\xf0\x9f\x98\x80", "\"\xc3\xbc\xf0\x9f\x98\x80\"",
		  "\xc3\xbc\xf0\x9f\x98\x80" },
		{ "\xc2\x85\xe2\x80\xa8\xef\xbb\xbf\xf0\x9f\xbf\xbf",
		  "\"\\u0085\\u2028\\ufeff\\ud83f\\udfff\"",
		  "\\u0085\\u2028\\ufeff\\ud83f\\udfff" },
		{ "a\xff\xc3", "\"a\\ufffd\\ufffd\"", "a\\ufffd\\ufffd" },
		{ "\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80",
		  "\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"",
		  "\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct bytes out;
		bytes_init(&out, 200);
		assert_true(quote_json(&out, cases[i].text, strlen(cases[i].text)));
		assert_true(view_is(bytes_view(&out), cases[i].json));
		out.len = 0;
		assert_true(quote_plain(&out, cases[i].text, strlen(cases[i].text)));
		assert_true(view_is(bytes_view(&out), cases[i].plain));
		bytes_fini(&out);
	}
}

static void a_full_buffer_stays_as_it_was(void **state)
{
	(void)state;
	for (size_t max = 1; max < 12; max++) {
		struct bytes out;
		bytes_init(&out, max);
		bytes_add_byte(&out, 'x');
		assert_int_equal(quote_json(&out, "ab\x01", 3), max >= 1 + 10);
		assert_int_equal(out.len, max >= 11 ? 11 : 1);
		bytes_fini(&out);
	}
}

static void texts_are_cut_between_sequences(void **state)
{
	(void)state;
	static const char text[] = "a\xc3\xbc\xf0\x9f\x98\x80";
	static const size_t fits[] = { 0, 1, 1, 3, 3, 3, 3, 7 };
	for (size_t max = 0; max < sizeof fits / sizeof fits[0]; max++)
		assert_int_equal(quote_fit(text, 7, max), fits[max]);
}

static void of_a_url_only_what_is_no_secret_is_shown(void **state)
{
	static const char *const cases[][2] = {
		{ "out/a.pb.gz", "out/a.pb.gz" },
		{ "http://host:1/x", "http://host:1/x" },
		{ "http://user:secret@host/a/b?token=secret#secret", "http://host/a/b" },
		{ "https://host?secret@x", "https://host" },
		{ "https://secret@secret@host/a@b", "https://host/a@b" },
		{ "http://", "http://" },
		{ "http:/user:secret@host/x?secret", "http:/host/x" },
		{ "http:user:secret@host/x?secret", "http:host/x" },
		{ "HTTPS:///user:secret@host/x#secret", "HTTPS:///host/x" },
		{ "s3://user:secret@host/x?secret", "s3://host/x" },
		{ "./a?b:c", "./a?b:c" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *shown = quote_place(cases[i][0]);
		assert_string_equal(shown, cases[i][1]);
		memory_free(shown);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_become_json),
		cmocka_unit_test(a_full_buffer_stays_as_it_was),
		cmocka_unit_test(texts_are_cut_between_sequences),
		cmocka_unit_test(of_a_url_only_what_is_no_secret_is_shown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
