/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "profile/otlp/encode_json.h"
#include "tests/support/wire_text.h"

static void becomes(const char *text, const char *json)
{
	struct packet packet = { 0 };
	struct bytes out;
	struct error error = { 0 };
	bytes_init(&packet.otlp, 1 << 20);
	bytes_init(&out, 1 << 20);
	wire_text(&packet.otlp, text);
	assert_true(encode_json(&packet, &out, &error));
	assert_true(bytes_add_byte(&out, '\0'));
	assert_string_equal((const char *)out.at, json);
	bytes_fini(&packet.otlp);
	bytes_fini(&out);
}

static void messages_and_arrays_nest(void **state)
{
	(void)state;
	becomes("", "{}");
	becomes("1{} 2{}", "{\"resourceProfiles\":[{}],\"dictionary\":{}}");
	becomes("1{1{} 2{1{} 2{} 2{}}} 1{}",
		"{\"resourceProfiles\":[{\"resource\":{},\"scopeProfiles\":[{\"scope\":{},\"profiles\":[{},{}]}]},{}]}");
	becomes("2{5'' 5'a' 7{} 7{1[1 2]}}",
		"{\"dictionary\":{\"stringTable\":[\"\",\"a\"],\"stackTable\":[{},{\"locationIndices\":[1,2]}]}}");
}

static void numbers_of_64_bits_are_strings(void **state)
{
	(void)state;
	becomes("1{2{2{2{1=3 4[5 -1 0x7fffffffffffffff] 5<1 0xffffffffffffffff>} 3@1 4=-1 "
		"6=-9223372036854775808 8=7}}}",
		"{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":[{\"stackIndex\":3,\"values\":[\"5\",\"-1\",\"9223372036854775807\"],\"timestampsUnixNano\":[\"1\",\"18446744073709551615\"]}],\"timeUnixNano\":\"1\",\"durationNano\":\"18446744073709551615\",\"period\":\"-9223372036854775808\",\"droppedAttributesCount\":7}]}]}]}");
}

static void ids_are_hex_and_other_bytes_base64(void **state)
{
	(void)state;
	becomes("1{2{2{7#00ff}}} 2{4{1#0102 2#a0} 6{2{7#}} 6{2{7#00}} 6{2{7#00ff}} 6{2{7#00ff10}} "
		"6{2{7#fbfffe}}}",
		"{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"profileId\":\"00ff\"}]}]}],\"dictionary\":{\"linkTable\":[{\"traceId\":\"0102\",\"spanId\":\"a0\"}],\"attributeTable\":[{\"value\":{\"bytesValue\":\"\"}},{\"value\":{\"bytesValue\":\"AA==\"}},{\"value\":{\"bytesValue\":\"AP8=\"}},{\"value\":{\"bytesValue\":\"AP8Q\"}},{\"value\":{\"bytesValue\":\"+//+\"}}]}}");
}

static void text_is_escaped(void **state)
{
	(void)state;
	becomes("2{5'a\"b\\x5cc\\x0a\\x09\\x00\\x1f\\x7f\xc3\xa9'}",
		"{\"dictionary\":{\"stringTable\":[\"a\\\"b\\\\c\\n\\t\\u0000\\u001f\x7f\xc3\xa9\"]}}");
}

static void doubles_have_their_words(void **state)
{
	(void)state;
	becomes("2{6{2{4@0x7ff8000000000000}} 6{2{4@0xfff0000000000000}} "
		"6{2{4@0x7ff0000000000000}} 6{2{4@0x3fb999999999999a}} 6{2{4@0}} "
		"6{2{4@0x8000000000000000}} 6{2{4@0x0000000000000001}} 6{2{4@0x430c6bf526340000}} "
		"6{2{4@0x3e7ad7f29abcaf48}}}",
		"{\"dictionary\":{\"attributeTable\":[{\"value\":{\"doubleValue\":\"NaN\"}},{\"value\":{\"doubleValue\":\"-Infinity\"}},{\"value\":{\"doubleValue\":\"Infinity\"}},{\"value\":{\"doubleValue\":0.1}},{\"value\":{\"doubleValue\":0}},{\"value\":{\"doubleValue\":-0.0}},{\"value\":{\"doubleValue\":5e-324}},{\"value\":{\"doubleValue\":1000000000000000}},{\"value\":{\"doubleValue\":1e-7}}]}}");
}

static void fields_without_a_name_are_passed_over(void **state)
{
	(void)state;
	becomes("1{2{2{9'SECRET' 10'SECRET' 40'SECRET'}} 9'SECRET'} 77'SECRET'",
		"{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{}]}]}]}");
}

static void refused(const char *text, size_t max, enum error_kind kind)
{
	struct packet packet = { 0 };
	struct bytes out;
	struct error error = { 0 };
	bytes_init(&packet.otlp, 1 << 20);
	bytes_init(&out, max);
	wire_text(&packet.otlp, text);
	assert_false(encode_json(&packet, &out, &error));
	assert_int_equal(error.kind, kind);
	bytes_fini(&packet.otlp);
	bytes_fini(&out);
}

static void what_cannot_be_written_is_an_error(void **state)
{
	(void)state;
	refused("2{5'a long text that does not fit'}", 20, ERROR_TOO_LARGE);
	refused("1{} 2{} 1{}", 1000, ERROR_INTERNAL);
	refused("1{} ~0a05", 1000, ERROR_INTERNAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_and_arrays_nest),
		cmocka_unit_test(numbers_of_64_bits_are_strings),
		cmocka_unit_test(ids_are_hex_and_other_bytes_base64),
		cmocka_unit_test(text_is_escaped),
		cmocka_unit_test(doubles_have_their_words),
		cmocka_unit_test(fields_without_a_name_are_passed_over),
		cmocka_unit_test(what_cannot_be_written_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
