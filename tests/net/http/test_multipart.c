/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/multipart.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define TYPE "multipart/form-data; boundary=f941e3"
#define FILE_PART(name, content) \
	"--f941e3\r\nContent-Disposition: form-data; name=\"" name "\"; filename=\"" name \
	".bin\"\r\n" \
	"Content-Type: application/octet-stream\r\n\r\n" content "\r\n"
#define END "--f941e3--\r\n"

/* All parts as "name:length|", with '*' for a file. An error as "!message". */
static const char *shown_of(const char *type, const char *body, size_t len)
{
	static struct bytes out;
	struct multipart m;
	struct multipart_part part;
	struct error err;
	enum multipart_more more = MULTIPART_ERROR;
	bytes_fini(&out);
	bytes_init(&out, 10000);
	if (multipart_begin(&m, type, (struct view){ (const uint8_t *)body, len }, &err))
		while ((more = multipart_next(&m, &part, &err)) == MULTIPART_PART)
			bytes_format(&out, "%.*s%s:%zu|", (int)part.name.len, part.name.at,
				     part.is_file ? "*" : "", part.content.len);
	if (more == MULTIPART_ERROR) {
		out.len = 0;
		bytes_format(&out, "!%s", err.text);
	}
	bytes_add_byte(&out, 0);
	return (const char *)out.at;
}

#define shown(body) shown_of(TYPE, body, sizeof(body) - 1)

static void the_go_sdks_form_is_understood(void **state)
{
	(void)state;
	assert_string_equal(shown(FILE_PART("profile", "\x1f\x8b\0\r\n-\r\n--f941")
					  FILE_PART("sample_type_config", "{}") END),
			    "profile*:14|sample_type_config*:2|");
}

static void media_type_and_boundary_may_be_written_in_every_way(void **state)
{
	static const char *const types[] = {
		"multipart/form-data;boundary=f941e3",
		"Multipart/Form-Data; charset=utf-8; Boundary=\"f941e3\"",
		"multipart/form-data ; boundary=f941e3 ; x=y",
	};
	static const char body[] = FILE_PART("profile", "abc") END;
	(void)state;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		assert_true(multipart_is(types[i]));
		assert_string_equal(shown_of(types[i], body, sizeof body - 1), "profile*:3|");
	}
	assert_false(multipart_is("multipart/form-database"));
	assert_false(multipart_is("multipart/mixed; boundary=x"));
	assert_false(multipart_is(NULL));
}

static void preamble_epilogue_and_empty_parts_are_allowed(void **state)
{
	(void)state;
	assert_string_equal(shown("preamble\r\n" FILE_PART("a", "") FILE_PART("b", "1") END
				  "epilogue"),
			    "a*:0|b*:1|");
	assert_string_equal(shown(END), "");
	assert_string_equal(
		shown("--f941e3\r\nContent-Disposition: form-data; name=a\r\n\r\n--f941e3--"),
		"a:0|");
}

static void a_boundary_is_demanded(void **state)
{
	static const char *const types[] = {
		"multipart/form-data",
		"multipart/form-data; boundary=",
		"multipart/form-data; boundary=\"",
		"multipart/form-data; boundary=\"a\\\"b\"",
		"multipart/form-data; x",
		"multipart/form-data; "
		"boundary=01234567890123456789012345678901234567890123456789012345678901234567890",
	};
	(void)state;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		assert_string_equal(shown_of(types[i], "", 0),
				    "!Content-Type: multipart/form-data must have a boundary of "
				    "1 to 70 characters");
}

static void faults_name_the_part(void **state)
{
	(void)state;
	assert_string_equal(shown("nothing"), "!the multipart body does not contain its boundary");
	assert_string_equal(shown(FILE_PART("a", "1") "--f941e3"),
			    "!multipart part 2: the delimiter is not followed by a line break");
	assert_string_equal(
		shown(FILE_PART(
			"a", "1") "--f941e3\r\nContent-Disposition: form-data; name=b\r\n\r\ncut"),
		"!multipart part 2: no closing delimiter: the body is truncated");
	assert_string_equal(shown("--f941e3\r\nX: y\r\n\r\n" END),
			    "!multipart part 1: missing Content-Disposition");
	assert_string_equal(shown("--f941e3\r\nnonsense\r\n\r\n" END),
			    "!multipart part 1: a header line has no colon");
	assert_string_equal(
		shown("--f941e3\r\nContent-Disposition: attachment; name=b\r\n\r\n" END),
		"!multipart part 1: Content-Disposition is repeated or is not "
		"form-data with a name");
	assert_string_equal(shown("--f941e3\r\nContent-Disposition: form-data; name=b\r\n"
				  "Content-Transfer-Encoding: base64\r\n\r\n" END),
			    "!multipart part 1: Content-Transfer-Encoding must be binary");
}

static void parts_and_headers_are_limited(void **state)
{
	struct bytes many;
	(void)state;
	bytes_init(&many, 100000);
	for (int i = 0; i < 33; i++)
		bytes_add_text(&many, FILE_PART("a", "1"));
	bytes_add_text(&many, END);
	assert_string_equal(shown_of(TYPE, (const char *)many.at, many.len), "!more than 32 "
									     "multipart parts");
	many.len = 0;
	bytes_add_text(&many, "--f941e3\r\nX: ");
	for (int i = 0; i < 5000; i++)
		bytes_add_byte(&many, 'x');
	bytes_add_text(&many, "\r\n\r\n");
	assert_string_equal(shown_of(TYPE, (const char *)many.at, many.len),
			    "!multipart part 1: its headers exceed 4096 bytes");
	bytes_fini(&many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_go_sdks_form_is_understood),
		cmocka_unit_test(media_type_and_boundary_may_be_written_in_every_way),
		cmocka_unit_test(preamble_epilogue_and_empty_parts_are_allowed),
		cmocka_unit_test(a_boundary_is_demanded),
		cmocka_unit_test(faults_name_the_part),
		cmocka_unit_test(parts_and_headers_are_limited),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
