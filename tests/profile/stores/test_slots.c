/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "profile/stores/slots.h"

#define MS UINT64_C(1000000)

static struct slots *slots;

static int setup(void **state)
{
	(void)state;
	slots = slots_new();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	slots_unref(&slots);
	return 0;
}

static void a_free_time_stays(void **state)
{
	(void)state;
	assert_int_equal(slots_take(slots, 1, 5 * MS + 7), 5 * MS + 7);
	assert_int_equal(slots_take(slots, 1, 6 * MS), 6 * MS);
	assert_int_equal(slots_take(slots, 1, 3 * MS), 3 * MS);
}

static void a_taken_millisecond_moves_to_the_next_free_one(void **state)
{
	(void)state;
	slots_take(slots, 1, 5 * MS);
	slots_take(slots, 1, 6 * MS);
	assert_int_equal(slots_take(slots, 1, 5 * MS + 9), 7 * MS + 9);
	assert_int_equal(slots_take(slots, 1, 6 * MS), 8 * MS);
}

static void series_have_times_of_their_own(void **state)
{
	(void)state;
	assert_int_equal(slots_take(slots, 1, 5 * MS), 5 * MS);
	assert_int_equal(slots_take(slots, 2, 5 * MS), 5 * MS);
	assert_int_equal(slots_take(slots, 257, 5 * MS), 5 * MS);
	assert_int_equal(slots_take(slots, 1, 5 * MS), 6 * MS);
}

static void a_long_run_is_remembered_whole(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(slots_take(slots, 1, 5 * MS), (5 + i) * MS);
}

static void two_runs_that_meet_are_passed_together(void **state)
{
	(void)state;
	slots_take(slots, 1, 7 * MS);
	slots_take(slots, 1, 5 * MS);
	assert_int_equal(slots_take(slots, 1, 5 * MS), 6 * MS);
	assert_int_equal(slots_take(slots, 1, 5 * MS), 8 * MS);
}

static void a_hundred_times_apart_are_remembered(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 100; i++)
		assert_int_equal(slots_take(slots, 1, i * 10 * MS), i * 10 * MS);
	assert_int_equal(slots_take(slots, 1, 10 * MS), 11 * MS);
}

static void the_series_used_longest_ago_is_forgotten_first(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		slots_take(slots, i * 256, 5 * MS);
	slots_take(slots, 0, 9 * MS);
	slots_take(slots, 4 * 256, 5 * MS);
	assert_int_equal(slots_take(slots, 0, 5 * MS), 6 * MS);
	assert_int_equal(slots_take(slots, 256, 5 * MS), 5 * MS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_free_time_stays),
		TEST(a_taken_millisecond_moves_to_the_next_free_one),
		TEST(series_have_times_of_their_own),
		TEST(a_long_run_is_remembered_whole),
		TEST(two_runs_that_meet_are_passed_together),
		TEST(a_hundred_times_apart_are_remembered),
		TEST(the_series_used_longest_ago_is_forgotten_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
