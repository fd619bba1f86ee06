/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "net/h2/bounds.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

enum { RATE = 20, BURST = 200 };

/* The number of tokens that are available at a time. */
static int drain(struct h2_bucket *bucket, uint64_t now)
{
	int taken = 0;
	while (h2_bucket_take(bucket, now, RATE, BURST))
		taken++;
	return taken;
}

static void a_bucket_begins_full_and_no_more(void **state)
{
	struct h2_bucket bucket = { 0 };
	(void)state;
	assert_int_equal(drain(&bucket, 5 * SECOND), BURST);
	assert_int_equal(drain(&bucket, 5 * SECOND), 0);
}

static void a_bucket_of_the_first_second_is_full_too(void **state)
{
	struct h2_bucket bucket = { 0 };
	(void)state;
	assert_int_equal(drain(&bucket, 0), BURST);
	assert_int_equal(drain(&bucket, SECOND), RATE);
}

static void tokens_come_at_the_rate(void **state)
{
	struct h2_bucket bucket = { 0 };
	(void)state;
	drain(&bucket, SECOND);
	assert_int_equal(drain(&bucket, SECOND + 49 * MS), 0);
	assert_int_equal(drain(&bucket, SECOND + 50 * MS), 1);
	assert_int_equal(drain(&bucket, 2 * SECOND), RATE - 1);
	assert_int_equal(drain(&bucket, 7 * SECOND), 5 * RATE);
}

/* A fraction of a millisecond is carried over. */
static void asking_often_does_not_lower_the_rate(void **state)
{
	struct h2_bucket bucket = { 0 };
	int taken = 0;
	(void)state;
	drain(&bucket, SECOND);
	for (uint64_t now = SECOND; now <= 11 * SECOND; now += 19 * MS / 10)
		taken += h2_bucket_take(&bucket, now, RATE, BURST);
	assert_in_range(taken, 10 * RATE - 1, 10 * RATE);
}

static void a_long_idle_time_fills_it_and_overflows_nothing(void **state)
{
	struct h2_bucket bucket = { 0 };
	(void)state;
	drain(&bucket, SECOND);
	assert_int_equal(drain(&bucket, 3600 * SECOND), BURST);
	assert_int_equal(drain(&bucket, UINT64_MAX), BURST);
	bucket = (struct h2_bucket){ 0 };
	assert_true(h2_bucket_take(&bucket, UINT64_MAX, INT32_MAX, (int64_t)INT32_MAX * H2_BURST));
	assert_true(h2_bucket_take(&bucket, UINT64_MAX, INT32_MAX, (int64_t)INT32_MAX * H2_BURST));
}

static void a_clock_that_is_behind_gives_nothing(void **state)
{
	struct h2_bucket bucket = { 0 };
	(void)state;
	drain(&bucket, 10 * SECOND);
	assert_int_equal(drain(&bucket, 9 * SECOND), 0);
	assert_int_equal(drain(&bucket, 11 * SECOND), RATE);
}

static void what_is_earned_comes_back_up_to_a_full_bucket(void **state)
{
	struct h2_bucket bucket = { 0 };
	(void)state;
	drain(&bucket, SECOND);
	h2_bucket_earn(&bucket, 6);
	assert_int_equal(drain(&bucket, SECOND), 6);
	h2_bucket_earn(&bucket, 10 * BURST);
	assert_int_equal(drain(&bucket, SECOND), BURST);
	h2_bucket_earn(&bucket, 1);
	h2_bucket_earn(&bucket, 0);
	assert_int_equal(drain(&bucket, SECOND), 1);
}

/* The words that clients recognise, in a form short enough for GOAWAY. */
static void each_reason_has_a_short_text(void **state)
{
	(void)state;
	assert_string_equal(h2_reason_text(H2_PINGS), "too_many_pings");
	assert_string_equal(h2_reason_text(H2_REASON_NONE), "shutdown");
	for (int i = H2_REASON_NONE; i < H2_REASONS; i++)
		assert_in_range(strlen(h2_reason_text((enum h2_reason)i)), 1, 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bucket_begins_full_and_no_more),
		cmocka_unit_test(a_bucket_of_the_first_second_is_full_too),
		cmocka_unit_test(tokens_come_at_the_rate),
		cmocka_unit_test(asking_often_does_not_lower_the_rate),
		cmocka_unit_test(a_long_idle_time_fills_it_and_overflows_nothing),
		cmocka_unit_test(a_clock_that_is_behind_gives_nothing),
		cmocka_unit_test(what_is_earned_comes_back_up_to_a_full_bucket),
		cmocka_unit_test(each_reason_has_a_short_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
