/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>
#include <cmocka.h>

#include "pipeline/budget.h"

static void nothing_is_taken_beyond_the_soft_limit(void **state)
{
	struct memory m;
	(void)state;
	memory_init(&m, 100, 20);
	assert_true(memory_take(&m, 80, m.soft));
	assert_false(memory_take(&m, 1, m.soft));
	assert_int_equal(m.charged, 80);
	memory_give(&m, 30);
	assert_true(memory_take(&m, 30, m.soft));
}

static void giving_back_never_fails(void **state)
{
	struct memory m;
	(void)state;
	memory_init(&m, 100, 20);
	memory_add(&m, 500);
	assert_true(memory_take(&m, -400, m.soft));
	assert_int_equal(m.charged, 100);
}

static void what_is_resident_at_rest_counts_and_what_is_charged_counts_once(void **state)
{
	struct memory m;
	(void)state;
	memory_init(&m, INT64_C(1) << 40, 1 << 30);
	memory_add(&m, 4096);
	assert_true(memory_ready(&m, NULL));
	int64_t resident = memory_resident();
	assert_true(resident > 0);
	assert_in_range(m.baseline, resident / 2, resident);
	assert_true(m.baseline + m.charged <= resident + 65536);
	assert_false(memory_take(&m, m.soft - m.baseline - m.charged + 1, m.soft));
	assert_true(memory_take(&m, m.soft - m.baseline - m.charged, m.soft));
}

static void a_process_that_is_really_larger_than_the_limit_takes_nothing(void **state)
{
	struct memory m;
	(void)state;
	memory_init(&m, 4096, 0);
	memory_check(&m);
	assert_false(memory_take(&m, 1, m.soft));
	m.limit = m.soft = INT64_C(1) << 40;
	memory_check(&m);
	assert_true(memory_take(&m, 1, m.soft));
}

static void a_limit_below_what_the_process_needs_is_an_error_with_the_number(void **state)
{
	struct memory m;
	struct error err;
	char limit[64];
	(void)state;
	int64_t resident = memory_resident();
	memory_init(&m, resident + (3 << 20), 0);
	assert_false(memory_ready(&m, &err));
	assert_int_equal(err.kind, ERROR_CONFIG);
	snprintf(limit, sizeof limit, "must be at least %d MiB", (int)(m.baseline >> 20) + 5);
	assert_non_null(strstr(err.text, limit));
	/* With that number it starts, also where the spike is a share of the limit. */
	for (int64_t mib = resident >> 20; !memory_ready(&m, &err);
	     mib = strtol(strstr(err.text, "least ") + 6, NULL, 10)) {
		memory_init(&m, mib << 20, (mib << 20) / 5);
		assert_true(mib << 20 < resident * 2 + (16 << 20));
	}
}

static void requests_keep_room_beside_the_queues(void **state)
{
	struct memory m;
	(void)state;
	memory_init(&m, INT64_C(1) << 40, 0);
	atomic_store(&m.baseline, 20 << 20);
	static const struct {
		int64_t soft, room, queues;
	} cases[] = {
		{ 30, 10, 5 },    /* half */
		{ 44, 24, 16 },   /* an ordinary request for each of two workers */
		{ 120, 100, 75 }, /* three quarters */
		{ 10, 4, 2 },     /* it will not start */
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		m.soft = cases[i].soft << 20;
		assert_int_equal(memory_allowance(&m), cases[i].room << 20);
		assert_int_equal(memory_share(&m, 2, 1), cases[i].queues << 20);
		assert_int_equal(memory_share(&m, 2, 4), cases[i].queues << 18);
	}
	m.soft = 120 << 20;
	assert_int_equal(memory_batch_max(&m, 100 << 20), (100 << 20) / 32);
	assert_int_equal(memory_batch_max(&m, 10 << 20), 1 << 20);
}

static void what_is_much_must_fit_the_real_size_too(void **state)
{
	struct memory m;
	(void)state;
	memory_init(&m, memory_resident() + (8 << 20), 0);
	assert_true(memory_ready(&m, NULL));
	/* as if all that is resident had come since, and nobody had charged it */
	atomic_store(&m.baseline, 1);
	assert_true(memory_take(&m, 1 << 19, m.soft));
	assert_false(memory_take(&m, m.soft / 4 * 3, m.soft));
}

static void *give_later(void *argument)
{
	struct memory *m = argument;
	while (!atomic_load(&m->claimed))
		sched_yield();
	assert_false(memory_take(m, 1, m->soft));
	memory_give(m, 60 << 20);
	return NULL;
}

static void a_claim_goes_before_those_who_ask_later(void **state)
{
	struct memory m;
	pthread_t other;
	(void)state;
	memory_init(&m, 100 << 20, 20 << 20);
	memory_add(&m, 60 << 20);
	pthread_create(&other, NULL, give_later, &m);
	memory_claim(&m, 50 << 20);
	pthread_join(other, NULL);
	assert_int_equal(m.charged, 50 << 20);
	assert_int_equal(m.claimed, 0);
	memory_release(&m, 50 << 20);
}

static void a_claim_that_finds_no_room_is_charged_all_the_same(void **state)
{
	struct memory m;
	(void)state;
	memory_init(&m, 100 << 20, 20 << 20);
	memory_claim(&m, 500 << 20);
	assert_int_equal(m.charged, 500 << 20);
	memory_release(&m, 500 << 20);
}

static void *release_later(void *argument)
{
	struct memory *m = argument;
	memory_claim(m, 60 << 20);
	memory_claim(m, 60 << 20); /* within the other: it waits for nobody */
	while (atomic_load(&m->claimed) == 0)
		sched_yield();
	usleep(300000); /* longer than anyone waits without holders */
	memory_release(m, 60 << 20);
	memory_release(m, 60 << 20);
	return NULL;
}

static void claims_that_do_not_fit_together_take_turns(void **state)
{
	struct memory m;
	pthread_t other;
	(void)state;
	memory_init(&m, 100 << 20, 20 << 20);
	pthread_create(&other, NULL, release_later, &m);
	while (atomic_load(&m.charged) < 120 << 20)
		sched_yield();
	memory_claim(&m, 50 << 20);
	pthread_join(other, NULL);
	assert_int_equal(m.charged, 50 << 20);
	assert_int_equal(m.holders, 1);
	memory_release(&m, 50 << 20);
	assert_int_equal(m.holders, 0);
	assert_int_equal(m.charged, 0);
}

static void a_small_claim_waits_for_nobody(void **state)
{
	struct memory m;
	(void)state;
	memory_init(&m, 100, 20);
	pthread_mutex_lock(&m.claiming); /* as while a large one waits */
	memory_claim(&m, 500);
	assert_int_equal(m.charged, 500);
	pthread_mutex_unlock(&m.claiming);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_taken_beyond_the_soft_limit),
		cmocka_unit_test(giving_back_never_fails),
		cmocka_unit_test(what_is_resident_at_rest_counts_and_what_is_charged_counts_once),
		cmocka_unit_test(a_process_that_is_really_larger_than_the_limit_takes_nothing),
		cmocka_unit_test(what_is_much_must_fit_the_real_size_too),
		cmocka_unit_test(a_limit_below_what_the_process_needs_is_an_error_with_the_number),
		cmocka_unit_test(requests_keep_room_beside_the_queues),
		cmocka_unit_test(a_claim_goes_before_those_who_ask_later),
		cmocka_unit_test(a_claim_that_finds_no_room_is_charged_all_the_same),
		cmocka_unit_test(claims_that_do_not_fit_together_take_turns),
		cmocka_unit_test(a_small_claim_waits_for_nobody),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
