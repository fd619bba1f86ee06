/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "profile/collect/put.h"

static const uint64_t numbers[] = { 0,          1,          127,
				    128,        300,        16383,
				    16384,      1u << 21,   1u << 28,
				    UINT32_MAX, 1ull << 35, 1ull << 42,
				    1ull << 49, 1ull << 56, (1ull << 56) - 1,
				    1ull << 63, UINT64_MAX };
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A view of bytes, followed by slack. */
static struct view with_slack(const void *data, size_t len)
{
	static uint8_t room[4096 + BYTES_SLACK];
	memset(room, 0xff, sizeof room);
	memcpy(room, data, len);
	return (struct view){ room, len };
}

static void varints_of_every_length_come_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(numbers); i++) {
		uint8_t written[10];
		size_t len = (size_t)(wire_put_varint(written, numbers[i]) - written);
		assert_int_equal(len, wire_varint_len(numbers[i]));
		struct wire w = wire_of(with_slack(written, len));
		assert_true(wire_varint(&w) == numbers[i]);
		assert_true(wire_done(&w));
	}
}

static void every_writer_of_varints_writes_the_same(void **state)
{
	(void)state;
	for (unsigned bit = 0; bit < 64; bit++) {
		for (uint64_t number = (1ull << bit) - 1; number <= 1ull << bit; number++) {
			uint8_t plain[10], fast[10], before[16];
			size_t len = (size_t)(wire_put_varint(plain, number) - plain);
			assert_int_equal(wire_put_long(fast, number) - fast, len);
			assert_memory_equal(fast, plain, len);
			assert_int_equal(wire_varint_len(number), len);
			if (number > UINT32_MAX)
				continue;
			assert_ptr_equal(put_index_before(before + 16, (uint32_t)number),
					 before + 16 - len);
			assert_memory_equal(before + 16 - len, plain, len);
			assert_int_equal(put_index(fast, (uint32_t)number) - fast, len);
			assert_memory_equal(fast, plain, len);
		}
	}
}

static void a_varint_cut_anywhere_is_a_fault(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(numbers); i++) {
		uint8_t written[10];
		size_t len = (size_t)(wire_put_varint(written, numbers[i]) - written);
		for (size_t cut = 1; cut < len; cut++) {
			struct wire w = wire_of(with_slack(written, cut));
			wire_varint(&w);
			assert_false(wire_done(&w));
			uint32_t count;
			assert_false(wire_packed_ok(with_slack(written, cut), &count));
		}
	}
}

static void a_varint_of_more_than_64_bits_is_a_fault(void **state)
{
	(void)state;
	static const uint8_t too_big[] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02";
	static const uint8_t too_long[] = "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00";
	struct wire w = wire_of(with_slack(too_big, 10));
	wire_varint(&w);
	assert_false(wire_done(&w));
	assert_int_equal(w.fault, WIRE_LONG);
	uint32_t count;
	assert_false(wire_packed_ok(with_slack(too_big, 10), &count));
	assert_false(wire_packed_ok(with_slack(too_long, 11), &count));
}

static void padded_varints_are_read(void **state)
{
	(void)state;
	struct wire w = wire_of(with_slack("\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10));
	assert_int_equal(wire_varint(&w), 1);
	assert_true(wire_done(&w));
}

static void a_payload_longer_than_its_message_is_a_fault(void **state)
{
	(void)state;
	static const char *const bad[] = { "\x0a\x02x", "\x0a\xff\xff\xff\xff\x0f",
					   "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" };
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct wire w = wire_of(with_slack(bad[i], strlen(bad[i])));
		struct wire_field field;
		assert_false(wire_next(&w, &field));
		assert_false(wire_done(&w));
		assert_int_equal(w.fault, WIRE_TRUNCATED);
	}
}

static void groups_and_impossible_tags_are_faults(void **state)
{
	(void)state;
	static const struct view bad[] = {
		{ (const uint8_t *)"\x0b\x0c", 2 },
		{ (const uint8_t *)"\x0c", 1 },
		{ (const uint8_t *)"\x0e", 1 },
		{ (const uint8_t *)"\x0f", 1 },
		{ (const uint8_t *)"\x00", 1 },
		{ (const uint8_t *)"\x02\x00", 2 },
		{ (const uint8_t *)"\x88\x80\x80\x80\x10\x00", 6 },
	};
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct wire w = wire_of(with_slack(bad[i].at, bad[i].len));
		struct wire_field field;
		while (wire_next(&w, &field))
			;
		assert_false(wire_done(&w));
		assert_int_equal(w.fault, WIRE_BAD_TAG);
	}
}

static void fields_written_are_read(void **state)
{
	(void)state;
	struct bytes out;
	bytes_init(&out, 1000);
	assert_true(wire_add_varint(&out, 1, 300));
	assert_true(wire_add_fixed64(&out, 2, 1ull << 60));
	assert_true(wire_add_len(&out, 3000, view_of("text")));
	struct wire w = wire_of(bytes_view(&out));
	struct wire_field f;
	assert_true(wire_next(&w, &f));
	assert_true(f.number == 1 && f.type == WIRE_VARINT && f.value == 300);
	assert_true(wire_next(&w, &f));
	assert_true(f.number == 2 && f.type == WIRE_FIXED64 && f.value == 1ull << 60);
	assert_true(wire_next(&w, &f));
	assert_true(f.number == 3000 && f.type == WIRE_LEN && view_is(f.view, "text"));
	assert_false(wire_next(&w, &f));
	assert_true(wire_done(&w));
	bytes_fini(&out);
}

static void writers_stop_at_the_maximum(void **state)
{
	(void)state;
	struct bytes out;
	bytes_init(&out, 30);
	assert_true(wire_add_varint(&out, 1, 1));
	assert_false(wire_add_len(&out, 1, view_of("a text that does not fit")));
	bytes_fini(&out);
}

static void packed_varints_are_counted(void **state)
{
	(void)state;
	uint8_t packed[400], *at = packed;
	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < COUNT(numbers); i++)
			at = wire_put_varint(at, numbers[i]);
	for (int i = 0; i < 50; i++)
		at = wire_put_varint(at, 7);
	uint32_t count;
	assert_true(wire_packed_ok(with_slack(packed, (size_t)(at - packed)), &count));
	assert_int_equal(count, 3 * COUNT(numbers) + 50);
	assert_true(wire_packed_ok(with_slack("", 0), &count));
	assert_int_equal(count, 0);
}

struct utf8_case {
	const char *text;
	const char *repaired; /* NULL: it is valid */
};

/* From Unicode 15, section 3.9, tables 3-8 to 3-11. */
static const struct utf8_case utf8_cases[] = {
	{ "", NULL },
	{ "plain text of more than sixteen bytes", NULL },
	{ "gr\xc3\xbc\xc3\x9f\x65 \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf \xed\x9f\xbf",
	  NULL },
	{ "\x80", "\xef\xbf\xbd" },
	{ "a\xc0\xaf\x62", "a\xef\xbf\xbd\xef\xbf\xbd\x62" },
	{ "\xe0\x80\xaf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
	{ "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
	{ "\xf4\x91\x92\x93", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
	{ "\xff\x41", "\xef\xbf\xbd\x41" },
	{ "\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41",
	  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\x41" },
	{ "sixteen bytes of ASCII, then \xc3", "sixteen bytes of ASCII, then \xef\xbf\xbd" },
};

static void invalid_utf8_is_found_and_repaired(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(utf8_cases); i++) {
		const struct utf8_case *c = &utf8_cases[i];
		struct view text = with_slack(c->text, strlen(c->text));
		assert_int_equal(wire_utf8_ok(text), c->repaired == NULL);
		struct bytes out;
		bytes_init(&out, 1000);
		assert_true(wire_utf8_repair(&out, text));
		assert_true(view_is(bytes_view(&out), c->repaired ? c->repaired : c->text));
		bytes_fini(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(varints_of_every_length_come_back),
		cmocka_unit_test(every_writer_of_varints_writes_the_same),
		cmocka_unit_test(a_varint_cut_anywhere_is_a_fault),
		cmocka_unit_test(a_varint_of_more_than_64_bits_is_a_fault),
		cmocka_unit_test(padded_varints_are_read),
		cmocka_unit_test(a_payload_longer_than_its_message_is_a_fault),
		cmocka_unit_test(groups_and_impossible_tags_are_faults),
		cmocka_unit_test(fields_written_are_read),
		cmocka_unit_test(writers_stop_at_the_maximum),
		cmocka_unit_test(packed_varints_are_counted),
		cmocka_unit_test(invalid_utf8_is_found_and_repaired),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
