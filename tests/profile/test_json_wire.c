/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "profile/json_wire.h"

static const struct json_wire_enum colours[] = { { "RED", 0 }, { "BLUE", 7 }, { 0 } };

/* clang-format off */
JSON_WIRE_TABLE(leaf,
	JSON_WIRE_FIELD(1, "aString", STRING),
	JSON_WIRE_FIELD(2, "someBytes", BASE64),
	JSON_WIRE_FIELD(3, "traceId", HEX),
	JSON_WIRE_FIELD(4, "flag", BOOL),
	JSON_WIRE_FIELD(5, "i32", INT32),
	JSON_WIRE_FIELD(6, "i64", INT64),
	JSON_WIRE_FIELD(7, "u32", UINT32),
	JSON_WIRE_FIELD(8, "u64", UINT64),
	JSON_WIRE_FIELD(9, "f64", FIXED64),
	JSON_WIRE_FIELD(10, "aDouble", DOUBLE),
	JSON_WIRE_NAMES(11, "colour", colours),
	JSON_WIRE_LIST(12, "numbers", INT64),
	JSON_WIRE_LIST(13, "times", FIXED64),
	JSON_WIRE_LIST(14, "names", STRING),
	JSON_WIRE_LIST(15, "flags", BOOL),
	JSON_WIRE_FIELD(16, "other", MARK),
);
static const struct json_wire_message root;
static const struct json_wire_field root_fields[] = {
	JSON_WIRE_ONE(1, "leaf", leaf),
	JSON_WIRE_MANY(2, "manyLeaves", leaf),
	JSON_WIRE_ONE(3, "child", root),
};
static const struct json_wire_message root = { 3, root_fields };
/* clang-format on */

static bool translate(const char *document, struct bytes *out, uint32_t *mark, struct error *err)
{
	bytes_init(out, 1 << 20);
	error_clear(err);
	return json_wire_translate(&root, view_of(document), out, mark, err);
}

static const struct {
	const char *document, *hex;
} documents[] = {
	{ "{}", "" },
	{ "{\"leaf\":{}}", "0a00" },
	{ "{\"leaf\":null,\"manyLeaves\":[]}", "" },
	{ "{\"manyLeaves\":[{},{}]}", "12001200" },
	{ "{\"child\":{\"child\":{\"leaf\":{\"i32\":1}}}}", "1a061a040a022801" },
	/* names */
	{ "{\"leaf\":{\"a_string\":\"x\"}}", "0a030a0178" },
	{ "{\"many_leaves\":[{\"some_bytes\":\"eHk=\"}]}", "120412027879" },
	{ "{\"leaf\":{\"i32\":1,\"aString\":\"x\",\"i32\":2}}", "0a0728010a01782802" },
	{ "{\"leaf\":{\"A_string\":1,\"astring\":2,\"_\":3,\"\":4,\"aString_\":5}}", "0a00" },
	/* unknown values, whatever they are */
	{ "{\"x\":[[{\"leaf\":1},[]],{}],\"y\":{\"z\":[1]},\"q\":1.5e999,\"leaf\":{}}", "0a00" },
	/* integers */
	{ "{\"leaf\":{\"i32\":-1}}", "0a0b28ffffffffffffffffff01" },
	{ "{\"leaf\":{\"i32\":\"-2147483648\"}}", "0a0b2880808080f8ffffffff01" },
	{ "{\"leaf\":{\"i64\":\"9223372036854775807\"}}", "0a0a30ffffffffffffffff7f" },
	{ "{\"leaf\":{\"i64\":-9223372036854775808}}", "0a0b3080808080808080808001" },
	{ "{\"leaf\":{\"u32\":4294967295}}", "0a0638ffffffff0f" },
	{ "{\"leaf\":{\"u64\":18446744073709551615}}", "0a0b40ffffffffffffffffff01" },
	{ "{\"leaf\":{\"u64\":\"9007199254740993\"}}", "0a09408180808080808010" },
	{ "{\"leaf\":{\"f64\":\"18446744073709551614\"}}", "0a0949feffffffffffffff" },
	{ "{\"leaf\":{\"i32\":1e3}}", "0a0328e807" },
	{ "{\"leaf\":{\"i32\":\"2.50E+1\"}}", "0a022819" },
	{ "{\"leaf\":{\"i32\":12000e-3}}", "0a02280c" },
	{ "{\"leaf\":{\"i32\":0e999999999999}}", "0a022800" },
	{ "{\"leaf\":{\"i32\":0.000}}", "0a022800" },
	{ "{\"leaf\":{\"u32\":-0}}", "0a023800" },
	{ "{\"leaf\":{\"u64\":\"00000000000000000000000000007\"}}", "0a024007" },
	/* doubles */
	{ "{\"leaf\":{\"aDouble\":1.5}}", "0a0951000000000000f83f" },
	{ "{\"leaf\":{\"aDouble\":\"-2\"}}", "0a095100000000000000c0" },
	{ "{\"leaf\":{\"aDouble\":\"Infinity\"}}", "0a0951000000000000f07f" },
	{ "{\"leaf\":{\"aDouble\":\"-Infinity\"}}", "0a0951000000000000f0ff" },
	{ "{\"leaf\":{\"aDouble\":\"NaN\"}}", "0a0951000000000000f87f" },
	{ "{\"leaf\":{\"aDouble\":5e-324}}", "0a09510100000000000000" },
	/* bytes */
	{ "{\"leaf\":{\"someBytes\":\"-_-_\"}}", "0a051203fbffbf" },
	{ "{\"leaf\":{\"someBytes\":\"+\\/8\"}}", "0a041202fbff" },
	{ "{\"leaf\":{\"someBytes\":\"\"}}", "0a021200" },
	{ "{\"leaf\":{\"traceId\":\"0aFf\"}}", "0a041a020aff" },
	/* the rest */
	{ "{\"leaf\":{\"flag\":true}}", "0a022001" },
	{ "{\"leaf\":{\"flag\":false}}", "0a022000" },
	{ "{\"leaf\":{\"colour\":\"BLUE\"}}", "0a025807" },
	{ "{\"leaf\":{\"colour\":3}}", "0a025803" },
	{ "{\"leaf\":{\"numbers\":[1,\"300\",0]}}", "0a06620401ac0200" },
	{ "{\"leaf\":{\"numbers\":[]}}", "0a00" },
	{ "{\"leaf\":{\"times\":[1]}}", "0a0a6a080100000000000000" },
	{ "{\"leaf\":{\"names\":[\"a\",\"\"]}}", "0a05720161"
						 "7200" },
	{ "{\"leaf\":{\"flags\":[true,false]}}", "0a047a020100" },
	{ "{\"leaf\":{\"a_string\":\"\\u0000\"}}", "0a030a0100" },
};

static void documents_become_messages(void **state)
{
	struct bytes out;
	struct error err;
	uint32_t mark = 9;
	(void)state;
	for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
		char hex[200] = "";
		if (!translate(documents[i].document, &out, &mark, &err))
			fail_msg("%s: %s", documents[i].document, err.text);
		for (size_t j = 0; j < out.len; j++)
			snprintf(hex + 2 * j, 3, "%02x", out.at[j]);
		if (strcmp(hex, documents[i].hex))
			fail_msg("%s: %s", documents[i].document, hex);
		assert_int_equal(mark, 0);
		bytes_fini(&out);
	}
}

#define LEAF(json) "{\"manyLeaves\":[{},{" json "}]}"

static const struct {
	const char *document, *error;
} invalid[] = {
	{ "[]", "the JSON: is not an object" },
	{ "{\"leaf\":[]}", "leaf: is not an object" },
	{ "{\"leaf\":1}", "leaf: is not an object" },
	{ "{\"leaf\":true}", "leaf: is not an object" },
	{ "{\"leaf\":\"x\"}", "leaf: is not an object" },
	{ "{\"manyLeaves\":{}}", "manyLeaves: is not an array" },
	{ "{\"manyLeaves\":[[]]}", "manyLeaves[0]: is not an object" },
	{ "{\"manyLeaves\":[{},null]}", "manyLeaves[1]: is null" },
	{ LEAF("\"aString\":1"), "manyLeaves[1].aString: is not a string" },
	{ LEAF("\"aString\":[]"), "manyLeaves[1].aString: is not a string" },
	{ LEAF("\"aString\":{}"), "manyLeaves[1].aString: is not a string" },
	{ LEAF("\"flag\":1"), "manyLeaves[1].flag: is not true or false" },
	{ LEAF("\"flag\":\"true\""), "manyLeaves[1].flag: is not true or false" },
	{ LEAF("\"i32\":true"), "manyLeaves[1].i32: is not a number" },
	{ LEAF("\"i32\":{}"), "manyLeaves[1].i32: is not a number" },
	{ LEAF("\"i32\":\"\""), "manyLeaves[1].i32: is not a number" },
	{ LEAF("\"i32\":\" 1\""), "manyLeaves[1].i32: is not a number" },
	{ LEAF("\"i32\":\"0x1\""), "manyLeaves[1].i32: is not a number" },
	{ LEAF("\"i32\":\"1e\""), "manyLeaves[1].i32: is not a number" },
	{ LEAF("\"i32\":\"1.\""), "manyLeaves[1].i32: is not a number" },
	{ LEAF("\"i32\":\"-\""), "manyLeaves[1].i32: is not a number" },
	{ LEAF("\"i32\":1.5"), "manyLeaves[1].i32: is not an integer" },
	{ LEAF("\"i32\":1e-1"), "manyLeaves[1].i32: is not an integer" },
	{ LEAF("\"i32\":2147483648"), "manyLeaves[1].i32: is out of range" },
	{ LEAF("\"i32\":-2147483649"), "manyLeaves[1].i32: is out of range" },
	{ LEAF("\"i64\":9223372036854775808"), "manyLeaves[1].i64: is out of range" },
	{ LEAF("\"u32\":-1"), "manyLeaves[1].u32: is out of range" },
	{ LEAF("\"u32\":4294967296"), "manyLeaves[1].u32: is out of range" },
	{ LEAF("\"u64\":18446744073709551616"), "manyLeaves[1].u64: is out of range" },
	{ LEAF("\"u64\":1e20"), "manyLeaves[1].u64: is out of range" },
	{ LEAF("\"u64\":1e999999999999"), "manyLeaves[1].u64: is out of range" },
	{ LEAF("\"aDouble\":\"nan\""), "manyLeaves[1].aDouble: is not a number" },
	{ LEAF("\"aDouble\":1e999"), "manyLeaves[1].aDouble: is out of range" },
	{ LEAF("\"colour\":\"PINK\""), "manyLeaves[1].colour: is not a known name" },
	{ LEAF("\"someBytes\":\"?\""), "manyLeaves[1].someBytes: is not base64" },
	{ LEAF("\"someBytes\":5"), "manyLeaves[1].someBytes: is not a string" },
	{ LEAF("\"traceId\":\"abc\""), "manyLeaves[1].traceId: is not hexadecimal" },
	{ LEAF("\"traceId\":\"0g\""), "manyLeaves[1].traceId: is not hexadecimal" },
	{ LEAF("\"traceId\":\"@`\""), "manyLeaves[1].traceId: is not hexadecimal" },
	{ LEAF("\"numbers\":1"), "manyLeaves[1].numbers: is not an array" },
	{ LEAF("\"numbers\":[1,\"x\"]"), "manyLeaves[1].numbers[1]: is not a number" },
	{ LEAF("\"numbers\":[1,[2]]"), "manyLeaves[1].numbers[1]: is not a number" },
	{ LEAF("\"numbers\":[1,null]"), "manyLeaves[1].numbers[1]: is null" },
	{ LEAF("\"names\":\"x\""), "manyLeaves[1].names: is not an array" },
};

static void errors_name_the_field(void **state)
{
	struct bytes out;
	struct error err;
	(void)state;
	for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
		if (translate(invalid[i].document, &out, NULL, &err))
			fail_msg("%s was translated", invalid[i].document);
		assert_string_equal(err.text, invalid[i].error);
		assert_int_equal(err.kind, ERROR_INVALID);
		bytes_fini(&out);
	}
}

static void a_mark_ends_the_translation(void **state)
{
	struct bytes out;
	struct error err;
	uint32_t mark = 0;
	(void)state;
	assert_false(translate("{\"leaf\":{\"other\":5}}", &out, &mark, &err));
	assert_int_equal(mark, 16);
	assert_int_equal(err.kind, ERROR_NONE);
	bytes_fini(&out);
}

/* `depth` children in each other, the innermost with a string of `len` bytes. */
static char *nested(int depth, int len)
{
	struct bytes b;
	bytes_init(&b, 1 << 24);
	bytes_add_text(&b, "{");
	for (int i = 0; i < depth; i++)
		bytes_add_text(&b, "\"child\":{");
	bytes_format(&b, "\"leaf\":{\"aString\":\"%0*d\"}", len, 0);
	for (int i = 0; i <= depth; i++)
		bytes_add_text(&b, "}");
	bytes_add_byte(&b, 0);
	return (char *)b.at;
}

static size_t header_len(size_t len)
{
	return len < 128 ? 2 : len < 16384 ? 3 : 4;
}

static void lengths_are_minimal_at_every_size_and_depth(void **state)
{
	static const int lengths[] = { 1,   50,    120,   122,   123,    124,   125,
				       127, 16376, 16380, 16384, 100000, 300000 };
	(void)state;
	for (int depth = 0; depth < 60; depth += 13)
		for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
			char *document = nested(depth, lengths[i]);
			struct bytes out;
			struct error err;
			size_t expected = (size_t)lengths[i];
			for (int level = 0; level < depth + 2; level++)
				expected += header_len(expected);
			assert_true(translate(document, &out, NULL, &err));
			assert_int_equal(out.len, expected);
			assert_int_equal(out.at[out.len - 1], '0');
			bytes_fini(&out);
			memory_free(document);
		}
}

static void depth_has_a_limit(void **state)
{
	struct bytes out;
	struct error err;
	(void)state;
	char *document = nested(200, 1);
	assert_false(translate(document, &out, NULL, &err));
	assert_int_equal(err.kind, ERROR_INVALID);
	assert_non_null(strstr(err.text, "child.child.child"));
	assert_non_null(strstr(err.text, "...: is nested too deeply"));
	bytes_fini(&out);
	memory_free(document);
}

static void a_full_buffer_is_no_error_of_the_sender(void **state)
{
	struct bytes out;
	struct error err;
	(void)state;
	char *document = nested(3, 1000);
	for (size_t max = 0; max < 1000; max += 9) {
		bytes_init(&out, max);
		error_clear(&err);
		assert_false(json_wire_translate(&root, view_of(document), &out, NULL, &err));
		assert_int_equal(err.kind, ERROR_NONE);
		bytes_fini(&out);
	}
	memory_free(document);
}

/* What is charged: never less than what is used. */
struct purse {
	struct bytes_meter meter;
	size_t charged, limit;
};

static bool purse_raise(struct bytes_meter *meter, struct bytes *b, size_t need)
{
	struct purse *p = (struct purse *)meter;
	if (need > p->limit)
		return false;
	b->max = need;
	if (need > p->charged)
		p->charged = need;
	return true;
}

static void the_memory_for_long_escaped_strings_is_charged(void **state)
{
	struct purse purse = { { purse_raise }, 0, 1 << 20 };
	struct bytes out, document;
	struct error err = { 0 };
	(void)state;
	bytes_init(&document, 1 << 20);
	bytes_format(&document, "{\"leaf\":{\"aString\":\"\\n%0100000d\"}}", 0);
	bytes_init(&out, 0);
	out.meter = &purse.meter;
	assert_true(json_wire_translate(&root, bytes_view(&document), &out, NULL, &err));
	assert_ptr_equal(out.meter, &purse.meter);
	assert_int_equal(out.len, 100001 + 8);
	assert_true(purse.charged >= 200000);
	assert_true(out.max >= out.room);
	bytes_fini(&out);
	purse.limit = 150000;
	bytes_init(&out, 0);
	out.meter = &purse.meter;
	assert_false(json_wire_translate(&root, bytes_view(&document), &out, NULL, &err));
	assert_int_equal(err.kind, ERROR_NONE);
	bytes_fini(&out);
	bytes_fini(&document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(documents_become_messages),
		cmocka_unit_test(errors_name_the_field),
		cmocka_unit_test(a_mark_ends_the_translation),
		cmocka_unit_test(lengths_are_minimal_at_every_size_and_depth),
		cmocka_unit_test(depth_has_a_limit),
		cmocka_unit_test(a_full_buffer_is_no_error_of_the_sender),
		cmocka_unit_test(the_memory_for_long_escaped_strings_is_charged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
