/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "profile/collect/intern.h"

static uint32_t put(struct intern *t, uint32_t number)
{
	uint8_t room[16 + BYTES_SLACK] = { 0 };
	int len = snprintf((char *)room, 16, "%u", number);
	return intern_put(t, room, (size_t)len);
}

static void equal_entries_have_one_index(void **state)
{
	(void)state;
	struct intern t;
	intern_init(&t, PUT_LEN(1), 1 << 20);
	for (uint32_t round = 0; round < 3; round++)
		for (uint32_t i = 0; i < 10000; i++)
			assert_int_equal(put(&t, i), i + 1);
	assert_int_equal(t.count, 10001);
	intern_fini(&t);
}

static void the_wire_holds_the_entries_in_their_order(void **state)
{
	(void)state;
	struct intern t;
	intern_init(&t, PUT_LEN(5), 1 << 20);
	uint8_t text[200 + BYTES_SLACK];
	memset(text, 'x', sizeof text);
	assert_int_equal(put(&t, 7), 1);
	assert_int_equal(intern_put(&t, text, 200), 2);
	assert_int_equal(intern_put(&t, text, 0), 3);
	static const uint8_t start[] = { 0x2a, 0, 0x2a, 1, '7', 0x2a, 0xc8, 1, 'x' };
	assert_int_equal(t.wire.len, 2 + 3 + 203 + 2);
	assert_memory_equal(t.wire.at, start, sizeof start);
	intern_fini(&t);
}

static void an_entry_built_in_place_is_the_same_entry(void **state)
{
	(void)state;
	struct intern t;
	intern_init(&t, PUT_LEN(1), 1 << 20);
	for (size_t len = 1; len < 1000; len += 37) {
		uint8_t text[1000 + BYTES_SLACK];
		memset(text, (int)len, sizeof text);
		uint8_t *at = intern_room(&t, len);
		memset(at, (int)len, len);
		uint32_t index = intern_put(&t, at, len);
		assert_int_equal(index, t.count - 1);
		assert_int_equal(intern_put(&t, text, len), index);
		assert_memory_equal(t.wire.at + t.wire.len - len, text, len);
	}
	intern_fini(&t);
}

static void a_full_table_takes_what_it_has(void **state)
{
	(void)state;
	struct intern t;
	intern_init(&t, PUT_LEN(1), 200);
	uint32_t known = 0;
	while (put(&t, known))
		known++;
	assert_true(t.full);
	assert_null(intern_room(&t, 100));
	for (uint32_t i = 0; i < known; i++)
		assert_int_equal(put(&t, i), i + 1);
	intern_reset(&t);
	assert_false(t.full);
	assert_int_equal(put(&t, known), 1);
	intern_fini(&t);
}

/* Although the table grew in between: an old entry must not end up after a new one. */
static void a_rollback_forgets_the_new_and_finds_the_old(void **state)
{
	(void)state;
	struct intern t;
	intern_init(&t, PUT_LEN(1), 1 << 20);
	for (uint32_t round = 0; round < 200; round++) {
		uint32_t old = 20 + round * 7, fresh = 10 + round * 31 % 3000;
		for (uint32_t i = 0; i < old; i++)
			put(&t, i);
		intern_mark(&t);
		size_t len = t.wire.len;
		for (uint32_t i = 0; i < fresh; i++)
			assert_int_equal(put(&t, 100000 + i), old + 1 + i);
		intern_rollback(&t);
		assert_int_equal(t.wire.len, len);
		for (uint32_t i = 0; i < old; i++)
			assert_int_equal(put(&t, i), i + 1);
		assert_int_equal(put(&t, 100000), old + 1);
		intern_reset(&t);
	}
	intern_fini(&t);
}

static void a_reset_forgets_everything(void **state)
{
	(void)state;
	struct intern t;
	intern_init(&t, PUT_LEN(1), 1 << 20);
	for (uint32_t round = 0; round < 300; round++) {
		uint32_t count = round * 131 % 2000;
		for (uint32_t i = 0; i < count; i++)
			assert_int_equal(put(&t, round % 7 * 100000 + i), i + 1);
		intern_reset(&t);
		assert_int_equal(t.count, 1);
		assert_int_equal(t.wire.len, 2);
	}
	intern_fini(&t);
}

static void stamps_start_again_before_they_overflow(void **state)
{
	(void)state;
	struct intern t;
	intern_init(&t, PUT_LEN(1), 1 << 20);
	for (uint32_t i = 0; i < 100; i++)
		put(&t, i);
	intern_reset(&t);
	t.base = UINT32_MAX - 150; /* as after very many resets */
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 90; i++)
			assert_int_equal(put(&t, i + round), i + 1);
		intern_reset(&t);
		assert_true(t.base < 1000);
	}
	intern_fini(&t);
}

static void slots_shrink_when_hardly_any_is_used(void **state)
{
	(void)state;
	struct intern t;
	intern_init(&t, PUT_LEN(1), 1 << 20);
	for (uint32_t i = 0; i < 10000; i++)
		put(&t, i);
	size_t large = intern_footprint(&t);
	for (uint32_t round = 0; round < 3000; round++) {
		for (uint32_t i = 0; i < 10; i++)
			put(&t, i);
		intern_reset(&t);
	}
	assert_true(intern_footprint(&t) < large / 2);
	assert_int_equal(put(&t, 5), 1);
	intern_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_entries_have_one_index),
		cmocka_unit_test(the_wire_holds_the_entries_in_their_order),
		cmocka_unit_test(an_entry_built_in_place_is_the_same_entry),
		cmocka_unit_test(a_full_table_takes_what_it_has),
		cmocka_unit_test(a_rollback_forgets_the_new_and_finds_the_old),
		cmocka_unit_test(a_reset_forgets_everything),
		cmocka_unit_test(stamps_start_again_before_they_overflow),
		cmocka_unit_test(slots_shrink_when_hardly_any_is_used),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
