/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "profile/otlp/encode_references.h"
#include "tests/support/wire_text.h"

static void becomes(const char *text, const char *expected)
{
	struct packet packet = { 0 };
	struct bytes out, wanted;
	struct error error = { 0 };
	bytes_init(&packet.otlp, 1 << 20);
	bytes_init(&wanted, 1 << 20);
	bytes_init(&out, 1 << 20);
	wire_text(&packet.otlp, text);
	wire_text(&wanted, expected);
	assert_true(encode_references(&packet, &out, &error));
	assert_int_equal(out.len, wanted.len);
	assert_memory_equal(out.at, wanted.at, out.len);
	bytes_fini(&packet.otlp);
	bytes_fini(&wanted);
	bytes_fini(&out);
}

static void keys_become_references(void **state)
{
	(void)state;
	becomes("1{1{1{1'a' 2{1'v'}}} 2{1{1'scope' 3{1'b' 2{3=5}}} 2{3@1}} 3'url'} "
		"2{1{} 5'' 5'x' 7{}}",
		"1{1{1{2{1'v'} 3=2}} 2{1{1'scope' 3{2{3=5} 3=3}} 2{3@1}} 3'url'} "
		"2{1{} 5'' 5'x' 5'a' 5'b' 7{}}");
}

static void a_string_is_in_the_table_once(void **state)
{
	(void)state;
	becomes("1{1{1{1'x' 2{1'v'}} 1{1'a' 2{}}}} 1{1{1{1'a' 2{}}}} 2{5'' 5'x'}",
		"1{1{1{2{1'v'} 3=1} 1{2{} 3=2}}} 1{1{1{2{} 3=2}}} 2{5'' 5'x' 5'a'}");
}

static void nested_keys_too(void **state)
{
	(void)state;
	becomes("1{1{1{1'a' 2{6{1{1'b' 2{5{1{6{1{1'c' 2{1'v'}}}} 1{1'w'}}}}}}}}} 2{5''}",
		"1{1{1{2{6{1{2{5{1{6{1{2{1'v'} 3=1}}} 1{1'w'}}} 3=2}}} 3=3}}} "
		"2{5'' 5'c' 5'b' 5'a'}");
}

static void nothing_else_changes(void **state)
{
	(void)state;
	becomes("", "");
	becomes("1{} 2{}", "1{} 2{}");
	becomes("1{1{2=7 3{1'u' 3'k'}} 2{2{2{1=3 4[5 -1] 5<1 2>}}}} "
		"2{5'' 6{1=1 2{1'k'}} 7{1[1 2]}}",
		"1{1{2=7 3{1'u' 3'k'}} 2{2{2{1=3 4[5 -1] 5<1 2>}}}} "
		"2{5'' 6{1=1 2{1'k'}} 7{1[1 2]}}");
}

static void many_keys_find_their_places(void **state)
{
	struct packet packet = { 0 };
	struct bytes out, text;
	struct error error = { 0 };
	(void)state;
	bytes_init(&packet.otlp, 1 << 20);
	bytes_init(&text, 1 << 20);
	bytes_init(&out, 1 << 20);
	assert_true(bytes_add_text(&text, "1{1{"));
	for (int i = 0; i < 1000; i++)
		assert_true(bytes_format(&text, "1{1'key%d' 2{}} ", i));
	assert_true(bytes_add(&text, "}} 2{5''}", 10));
	wire_text(&packet.otlp, (const char *)text.at);
	assert_true(encode_references(&packet, &out, &error));
	text.len = 0;
	assert_true(bytes_add_text(&text, "1{1{"));
	for (int i = 0; i < 1000; i++)
		assert_true(bytes_format(&text, "1{2{} 3=%d} ", i + 1));
	assert_true(bytes_add_text(&text, "}} 2{5'' "));
	for (int i = 0; i < 1000; i++)
		assert_true(bytes_format(&text, "5'key%d' ", i));
	assert_true(bytes_add(&text, "}", 2));
	packet.otlp.len = 0;
	wire_text(&packet.otlp, (const char *)text.at);
	assert_int_equal(out.len, packet.otlp.len);
	assert_memory_equal(out.at, packet.otlp.at, out.len);
	bytes_fini(&packet.otlp);
	bytes_fini(&text);
	bytes_fini(&out);
}

static void too_little_room_is_an_error(void **state)
{
	struct packet packet = { 0 };
	struct bytes out;
	struct error error = { 0 };
	(void)state;
	bytes_init(&packet.otlp, 1 << 20);
	wire_text(&packet.otlp, "1{1{1{1'a' 2{1'some text'}}}} 2{5''}");
	for (size_t room = 0; room < packet.otlp.len; room++) {
		bytes_init(&out, room);
		assert_false(encode_references(&packet, &out, &error));
		assert_int_equal(error.kind, ERROR_TOO_LARGE);
		bytes_fini(&out);
	}
	bytes_fini(&packet.otlp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_become_references),
		cmocka_unit_test(a_string_is_in_the_table_once),
		cmocka_unit_test(nested_keys_too),
		cmocka_unit_test(nothing_else_changes),
		cmocka_unit_test(many_keys_find_their_places),
		cmocka_unit_test(too_little_room_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
