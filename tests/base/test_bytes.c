/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"

static void grows_up_to_its_maximum(void **state)
{
	(void)state;
	struct bytes b;
	bytes_init(&b, 100);
	for (int i = 0; i < 100; i++)
		assert_true(bytes_add_byte(&b, (uint8_t)i));
	assert_false(bytes_add_byte(&b, 0));
	assert_int_equal(b.len, 100);
	for (int i = 0; i < 100; i++)
		assert_int_equal(b.at[i], i);
	bytes_fini(&b);
	assert_null(b.at);
	assert_int_equal(b.max, 100);
}

static void refuses_whole_what_does_not_fit(void **state)
{
	(void)state;
	struct bytes b;
	bytes_init(&b, 8);
	assert_true(bytes_add_text(&b, "12345"));
	assert_false(bytes_add_text(&b, "6789"));
	assert_int_equal(b.len, 5);
	assert_true(bytes_add_text(&b, "678"));
	assert_true(view_is(bytes_view(&b), "12345678"));
	assert_false(bytes_reserve(&b, SIZE_MAX));
	bytes_fini(&b);
}

static void keeps_slack_behind_its_end(void **state)
{
	(void)state;
	struct bytes b;
	bytes_init(&b, 64);
	assert_true(bytes_reserve(&b, 64));
	b.len = 64;
	memset(b.at + b.len, 0xff, BYTES_SLACK);
	bytes_fini(&b);
}

static void formats_into_the_room(void **state)
{
	(void)state;
	struct bytes b;
	bytes_init(&b, 12);
	assert_true(bytes_format(&b, "%d-%s", 42, "abc"));
	assert_true(view_is(bytes_view(&b), "42-abc"));
	assert_false(bytes_format(&b, "%s", "too long for it"));
	assert_true(view_is(bytes_view(&b), "42-abc"));
	bytes_fini(&b);
}

static void takes_nothing_from_nowhere(void **state)
{
	(void)state;
	struct bytes b;
	bytes_init(&b, 4);
	assert_true(bytes_add(&b, NULL, 0));
	assert_int_equal(b.len, 0);
	bytes_fini(&b);
}

struct purse {
	struct bytes_meter meter;
	size_t limit, charged;
};

static bool purse_raise(struct bytes_meter *meter, struct bytes *b, size_t need)
{
	struct purse *p = (struct purse *)meter;
	if (need > p->limit)
		return false;
	b->max = p->charged = need;
	return true;
}

static void shares_its_charge_with_something_else(void **state)
{
	(void)state;
	struct purse purse = { { purse_raise }, 1000, 0 };
	struct bytes b = { .meter = &purse.meter };
	struct bytes_share share;
	assert_true(bytes_reserve(&b, 100));
	assert_true(bytes_share(&share, &b, 300));
	assert_int_equal(purse.charged, 400);
	assert_int_equal(b.max, 100);
	assert_true(bytes_reserve(&b, 700));
	assert_int_equal(purse.charged, 1000);
	assert_false(bytes_reserve(&b, 701));
	bytes_unshare(&share, &b);
	assert_ptr_equal(b.meter, &purse.meter);
	assert_true(bytes_reserve(&b, 1000));
	assert_false(bytes_share(&share, &b, 1));
	assert_ptr_equal(b.meter, &purse.meter);
	bytes_fini(&b);
	bytes_init(&b, 50);
	assert_true(bytes_share(&share, &b, 1000));
	assert_true(bytes_reserve(&b, 50));
	bytes_unshare(&share, &b);
	assert_int_equal(b.max, 50);
	bytes_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows_up_to_its_maximum),
		cmocka_unit_test(refuses_whole_what_does_not_fit),
		cmocka_unit_test(keeps_slack_behind_its_end),
		cmocka_unit_test(formats_into_the_room),
		cmocka_unit_test(takes_nothing_from_nowhere),
		cmocka_unit_test(shares_its_charge_with_something_else),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
