/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pipeline/retry.h"

#define MS INT64_C(1000000)
#define HOUR_MS INT64_C(3600000)

static struct retry_config settings(int64_t max_elapsed_ms)
{
	return (struct retry_config){ .initial_interval = { 100 * MS },
				      .max_interval = { 1000 * MS },
				      .max_elapsed_time = { max_elapsed_ms * MS },
				      .multiplier = 2 };
}

static void a_delay_is_the_longer_of_interval_and_hint(void **state)
{
	(void)state;
	struct retry_config r = settings(60000);
	assert_int_equal(retry_delay(&r, 100 * MS, -1), 100 * MS);
	assert_int_equal(retry_delay(&r, 100 * MS, 0), 100 * MS);
	assert_int_equal(retry_delay(&r, 100 * MS, 50), 100 * MS);
	assert_int_equal(retry_delay(&r, 100 * MS, 5000), 5000 * MS);
	assert_int_equal(retry_delay(&r, 0, -1), 10 * MS);
}

static void a_hint_is_bounded_by_the_time_that_data_is_retried_for(void **state)
{
	(void)state;
	struct retry_config r = settings(60000);
	assert_int_equal(retry_delay(&r, 100 * MS, 60001), 60000 * MS);
	assert_int_equal(retry_delay(&r, 100 * MS, INT64_MAX), 60000 * MS);
}

static void or_by_an_hour(void **state)
{
	(void)state;
	struct retry_config r = settings(0);
	assert_int_equal(retry_delay(&r, 100 * MS, HOUR_MS), HOUR_MS * MS);
	assert_int_equal(retry_delay(&r, 100 * MS, HOUR_MS + 1), HOUR_MS * MS);
	assert_int_equal(retry_delay(&r, 100 * MS, INT64_MAX), HOUR_MS * MS);
}

static void intervals_grow_up_to_their_maximum(void **state)
{
	(void)state;
	struct retry_config r = settings(0);
	assert_int_equal(retry_next_interval(&r, 100 * MS), 200 * MS);
	assert_int_equal(retry_next_interval(&r, 800 * MS), 1000 * MS);
	r.multiplier = 0;
	assert_int_equal(retry_next_interval(&r, 100 * MS), 100 * MS);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_delay_is_the_longer_of_interval_and_hint),
		TEST(a_hint_is_bounded_by_the_time_that_data_is_retried_for),
		TEST(or_by_an_hour),
		TEST(intervals_grow_up_to_their_maximum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
