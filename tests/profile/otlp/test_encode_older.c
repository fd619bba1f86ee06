/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "profile/otlp/encode_older.h"
#include "tests/support/wire_text.h"

typedef bool encoder(const struct packet *, struct bytes *, struct error *);

static void becomes(encoder *encode, const char *text, const char *expected)
{
	struct packet packet = { 0 };
	struct bytes out, wanted;
	struct error error = { 0 };
	bytes_init(&packet.otlp, 1 << 20);
	bytes_init(&wanted, 1 << 20);
	bytes_init(&out, 1 << 20);
	wire_text(&packet.otlp, text);
	wire_text(&wanted, expected);
	assert_true(encode(&packet, &out, &error));
	assert_int_equal(out.len, wanted.len);
	assert_memory_equal(out.at, wanted.at, out.len);
	bytes_fini(&packet.otlp);
	bytes_fini(&wanted);
	bytes_fini(&out);
}

static void samples_of_1_9(void **state)
{
	(void)state;
	becomes(encode_1_9, "1{2{2{2{1=3 2[4 5] 3=300 4[6 -1] 5<7>}}}}",
		"1{2{2{2{1=3 2[6 -1] 3[4 5] 4=300 5<7>}}}}");
	becomes(encode_1_9, "1{2{2{2{2[4 5]} 2{3=1 4[6]} 2{4[6]} 2{1=1 5<7 8>} 2{}}}}",
		"1{2{2{2{3[4 5]} 2{2[6] 4=1} 2{2[6]} 2{1=1 5<7 8>} 2{}}}}");
}

static void nothing_else_of_1_9(void **state)
{
	(void)state;
	const char *same = "1{1{1{1'2' 2{1'v'}} 2=4} 2{1{1's' 3{1'k'}} "
			   "2{1{1=2 2=3} 3@9 4=2 5{2=4} 6=4 7'0123456789abcdef' 8=3 11[2 3]} "
			   "3'u'} 3'u'} 2{1{2=3 4=2} 2{} 5'' 5'x' 7{1[1 2]}}";
	becomes(encode_1_9, same, same);
	becomes(encode_1_9, "", "");
}

static void profiles_of_1_8(void **state)
{
	(void)state;
	becomes(encode_1_8,
		"1{2{2{1{1=2} 2{1=3 4[6]} 2{2[1] 4[6]} 3@9 7'0123456789abcdef' 8=3 11[2 3]}}} "
		"2{5'' 7{1[1 2]}}",
		"1{2{2{1{1=2} 2{1=3 2[6]} 2{2[6] 3[1]} 3@9 8'0123456789abcdef' 9=3 12[2 3]}}} "
		"2{5'' 7{1[1 2]}}");
	becomes(encode_1_8, "1{2{2{8=3 11=2 11=3 11=4}}}", "1{2{2{9=3 12=2 12=3 12=4}}}");
}

static void too_little_room(void **state)
{
	(void)state;
	struct packet packet = { 0 };
	struct bytes out;
	struct error error = { 0 };
	bytes_init(&packet.otlp, 1 << 20);
	bytes_init(&out, 3);
	wire_text(&packet.otlp, "1{2{2{2{4[6]}}}}");
	assert_false(encode_1_9(&packet, &out, &error));
	assert_int_equal(error.kind, ERROR_TOO_LARGE);
	bytes_fini(&packet.otlp);
	bytes_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(samples_of_1_9),
					    cmocka_unit_test(nothing_else_of_1_9),
					    cmocka_unit_test(profiles_of_1_8),
					    cmocka_unit_test(too_little_room) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
