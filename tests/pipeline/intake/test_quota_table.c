/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/intake/quota_table.h"

#define SECOND UINT64_C(1000000000)

static const struct quota_rates rates = { { { 1000, 5000 }, { 10, 20 } } };

static struct hash128 name_of(const char *text)
{
	return hash_bytes_128(text, strlen(text));
}

static struct quota_left take(struct quota_table *t, const char *name, int64_t bytes,
			      int64_t samples, uint64_t now)
{
	return quota_table_take(t, name_of(name), &rates, (int64_t[]){ bytes, samples }, now);
}

static void a_bucket_fills_at_its_rate_up_to_its_burst(void **state)
{
	struct quota_table *t = quota_table_new(100);
	(void)state;
	assert_int_equal(take(t, "a", 0, 0, SECOND).of[QUOTA_BYTES], 5000);
	assert_int_equal(take(t, "a", 3000, 0, SECOND).of[QUOTA_BYTES], 2000);
	assert_int_equal(take(t, "a", 0, 0, 2 * SECOND).of[QUOTA_BYTES], 3000);
	assert_int_equal(take(t, "a", 0, 0, 9 * SECOND).of[QUOTA_BYTES], 5000);
	assert_int_equal(take(t, "b", 0, 5, 9 * SECOND).of[QUOTA_SAMPLES], 15);
	assert_int_equal(take(t, "a", 0, 0, 9 * SECOND).of[QUOTA_SAMPLES], 20);
	quota_table_unref(&t);
}

static void a_debt_is_paid_off_before_anything_is_left(void **state)
{
	struct quota_table *t = quota_table_new(100);
	(void)state;
	struct quota_left left = take(t, "a", 9000, 0, SECOND);
	assert_int_equal(left.of[QUOTA_BYTES], -4000);
	uint32_t wait = quota_table_wait_ms(&rates.of[QUOTA_BYTES], left.of[QUOTA_BYTES]);
	assert_in_range(wait, 4001, 4003);
	assert_true(take(t, "a", 0, 0, SECOND + 4 * SECOND).of[QUOTA_BYTES] <= 0);
	assert_true(take(t, "a", 0, 0, SECOND + (uint64_t)wait * 1000000).of[QUOTA_BYTES] > 0);
	assert_int_equal(quota_table_wait_ms(&rates.of[QUOTA_BYTES], 1), 0);
	quota_table_unref(&t);
}

static void what_is_given_back_fills_at_most_the_bucket(void **state)
{
	struct quota_table *t = quota_table_new(100);
	(void)state;
	take(t, "a", 3000, 0, SECOND);
	assert_int_equal(take(t, "a", -1000, 0, SECOND).of[QUOTA_BYTES], 3000);
	assert_int_equal(take(t, "a", -9000, 0, SECOND).of[QUOTA_BYTES], 5000);
	/* a name without a bucket gets none by that */
	take(t, "nobody", -1000, 0, SECOND);
	assert_int_equal(quota_table_count(t), 1);
	quota_table_unref(&t);
}

static void a_unit_without_a_limit_is_never_used_up(void **state)
{
	static const struct quota_rates only_bytes = { { { 1000, 5000 }, { 0, 0 } } };
	struct quota_table *t = quota_table_new(100);
	(void)state;
	struct quota_left left = quota_table_take(t, name_of("a"), &only_bytes,
						  (int64_t[]){ 1, INT64_MAX / 4 }, SECOND);
	assert_int_equal(left.of[QUOTA_SAMPLES], INT64_MAX);
	quota_table_unref(&t);
}

static void the_largest_amounts_do_not_overflow(void **state)
{
	static const struct quota_rates slow = { { { 1, 3600 }, { 1, 3600 } } };
	struct quota_table *t = quota_table_new(100);
	(void)state;
	for (int i = 0; i < 100; i++) {
		struct quota_left left =
			quota_table_take(t, name_of("a"), &slow,
					 (int64_t[]){ INT64_MAX, INT64_MAX }, SECOND);
		assert_true(left.of[QUOTA_BYTES] < 0);
		assert_true(quota_table_wait_ms(&slow.of[QUOTA_BYTES], left.of[QUOTA_BYTES]) <=
			    86400001);
	}
	quota_table_unref(&t);
}

enum { MAX = 16 * 32 };

static void flood(struct quota_table *t, int from, int to, int64_t bytes, uint64_t now)
{
	char name[32];
	for (int i = from; i < to; i++) {
		snprintf(name, sizeof name, "invented-%d", i);
		take(t, name, bytes, 0, now);
	}
}

static void invented_names_do_not_grow_the_table(void **state)
{
	struct quota_table *t = quota_table_new(MAX);
	(void)state;
	flood(t, 0, 100000, 1000, SECOND);
	assert_in_range(quota_table_count(t), 1, MAX);
	assert_true(quota_table_shared(t) > 90000);
	quota_table_unref(&t);
}

static void a_flood_resets_no_bucket_that_is_not_full(void **state)
{
	struct quota_table *t = quota_table_new(MAX);
	(void)state;
	assert_int_equal(take(t, "spender", 7000, 0, SECOND).of[QUOTA_BYTES], -2000);
	flood(t, 0, 100000, 1, SECOND);
	assert_int_equal(take(t, "spender", 0, 0, SECOND).of[QUOTA_BYTES], -2000);
	quota_table_unref(&t);
}

static void names_without_a_place_share_one_limit(void **state)
{
	struct quota_table *t = quota_table_new(MAX);
	int accepted = 0;
	char name[32];
	(void)state;
	flood(t, 0, 100000, 1, SECOND);
	for (int i = 0; i < 10000; i++) {
		snprintf(name, sizeof name, "late-%d", i);
		if (take(t, name, 0, 0, SECOND).of[QUOTA_BYTES] > 0) {
			take(t, name, 5000, 0, SECOND);
			accepted++;
		}
	}
	assert_in_range(accepted, 0, QUOTA_TABLE_SHARDS);
	quota_table_unref(&t);
}

static void full_buckets_make_place(void **state)
{
	struct quota_table *t = quota_table_new(MAX);
	(void)state;
	flood(t, 0, MAX * 4, 1, SECOND);
	uint64_t shared = quota_table_shared(t);
	/* by now they are full again */
	flood(t, 1000000, 1000000 + MAX / 4, 1, 100 * SECOND);
	assert_int_equal(quota_table_shared(t), shared);
	assert_in_range(quota_table_count(t), 1, MAX);
	quota_table_unref(&t);
}

static void a_pinned_name_has_its_place_in_a_flood(void **state)
{
	struct quota_table *t = quota_table_new(MAX);
	(void)state;
	quota_table_pin(t, name_of("vip"));
	flood(t, 0, 100000, 1000000, SECOND);
	uint64_t shared = quota_table_shared(t);
	assert_int_equal(take(t, "vip", 100, 0, SECOND).of[QUOTA_BYTES], 4900);
	assert_int_equal(quota_table_shared(t), shared);
	quota_table_unref(&t);
}

enum { THREADS = 4, ROUNDS = 20000 };

static void *take_one_each(void *argument)
{
	struct quota_table *t = argument;
	char name[32];
	for (int i = 0; i < ROUNDS; i++) {
		snprintf(name, sizeof name, "shared-%d", i % 7);
		take(t, name, 1, 0, SECOND);
		snprintf(name, sizeof name, "own-%p-%d", (void *)name, i);
		take(t, name, 1, 0, SECOND);
	}
	return NULL;
}

static void threads_lose_no_amount(void **state)
{
	struct quota_table *t = quota_table_new(MAX);
	pthread_t threads[THREADS];
	int64_t used = 0;
	char name[32];
	(void)state;
	for (int i = 0; i < 7; i++) {
		snprintf(name, sizeof name, "shared-%d", i);
		quota_table_pin(t, name_of(name));
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_one_each, t), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 7; i++) {
		snprintf(name, sizeof name, "shared-%d", i);
		used += 5000 - take(t, name, 0, 0, SECOND).of[QUOTA_BYTES];
	}
	assert_int_equal(used, THREADS * ROUNDS);
	quota_table_unref(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bucket_fills_at_its_rate_up_to_its_burst),
		cmocka_unit_test(a_debt_is_paid_off_before_anything_is_left),
		cmocka_unit_test(what_is_given_back_fills_at_most_the_bucket),
		cmocka_unit_test(a_unit_without_a_limit_is_never_used_up),
		cmocka_unit_test(the_largest_amounts_do_not_overflow),
		cmocka_unit_test(invented_names_do_not_grow_the_table),
		cmocka_unit_test(a_flood_resets_no_bucket_that_is_not_full),
		cmocka_unit_test(names_without_a_place_share_one_limit),
		cmocka_unit_test(full_buckets_make_place),
		cmocka_unit_test(a_pinned_name_has_its_place_in_a_flood),
		cmocka_unit_test(threads_lose_no_amount),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
