/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/system.h"
#include "pipeline/budget.h"

static int trims;
static void *trimmed; /* what the next one returns */
static size_t trimmed_bytes;

/* Instead of the C library's. */
int malloc_trim(size_t pad)
{
	(void)pad;
	trims++;
	if (trimmed)
		munmap(trimmed, trimmed_bytes);
	trimmed = NULL;
	return 0;
}

static void nothing_is_taken_beyond_the_soft_limit(void **state)
{
	struct budget b;
	(void)state;
	budget_init(&b, 100, 20);
	assert_true(budget_take(&b, 80, b.soft));
	assert_false(budget_take(&b, 1, b.soft));
	assert_int_equal(b.charged, 80);
	budget_give(&b, 30);
	assert_true(budget_take(&b, 30, b.soft));
}

static void giving_back_never_fails(void **state)
{
	struct budget b;
	(void)state;
	budget_init(&b, 100, 20);
	budget_add(&b, 500);
	assert_true(budget_take(&b, -400, b.soft));
	assert_int_equal(b.charged, 100);
}

static void what_is_resident_at_rest_counts_and_what_is_charged_counts_once(void **state)
{
	struct budget b;
	(void)state;
	budget_init(&b, INT64_C(1) << 40, 1 << 30);
	budget_add(&b, 4096);
	assert_true(budget_ready(&b, NULL));
	int64_t resident = system_resident();
	assert_true(resident > 0);
	assert_in_range(b.baseline, resident / 2, resident);
	assert_true(b.baseline + b.charged <= resident + 65536);
	assert_false(budget_take(&b, b.soft - b.baseline - b.charged + 1, b.soft));
	assert_true(budget_take(&b, b.soft - b.baseline - b.charged, b.soft));
}

static void a_process_that_is_really_larger_than_the_limit_takes_nothing(void **state)
{
	struct budget b;
	(void)state;
	budget_init(&b, 4096, 0);
	budget_check(&b);
	assert_false(budget_take(&b, 1, b.soft));
	b.limit = b.soft = INT64_C(1) << 40;
	budget_check(&b);
	assert_true(budget_take(&b, 1, b.soft));
}

static void check_times(struct budget *b, int times)
{
	for (int i = 0; i < times; i++)
		budget_check(b);
}

/* Memory that is resident, and charged to nobody. */
static void *occupy(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	return at;
}

static void after_a_burst_freed_memory_is_returned(void **state)
{
	struct budget b;
	const int64_t room = 1 << 30;
	(void)state;
	budget_init(&b, system_resident() + room, 0);
	assert_true(budget_ready(&b, NULL));
	trims = 0;
	check_times(&b, 10);
	assert_int_equal(trims, 0);
	void *first = occupy((size_t)room / 16);
	budget_add(&b, room / 2); /* the burst goes on */
	check_times(&b, 10);
	assert_int_equal(trims, 0);
	budget_give(&b, room / 2);
	check_times(&b, 2);
	assert_int_equal(trims, 0);
	check_times(&b, 1);
	assert_int_equal(trims, 1);
	check_times(&b, 1000); /* what cannot be returned costs ever less */
	assert_in_range(trims, 2, 10);
	trims = 0;
	void *second = occupy((size_t)room / 16);
	check_times(&b, 3); /* more is resident */
	assert_int_equal(trims, 1);
	trimmed = occupy(trimmed_bytes = (size_t)room / 16);
	check_times(&b, 6); /* a trim that returned something is followed by another one soon */
	assert_int_equal(trims, 3);
	munmap(first, (size_t)room / 16);
	munmap(second, (size_t)room / 16);
}

/* An owner of best-effort data. */
struct owner {
	struct budget *budget;
	int64_t holds;
	int asked;
};

static bool drop(void *context)
{
	struct owner *o = context;
	bool dropped = o->holds;
	o->asked++;
	budget_give(o->budget, o->holds);
	o->holds = 0;
	return dropped;
}

static void best_effort_data_is_dropped_before_a_charge_is_refused(void **state)
{
	struct budget b;
	struct owner owner = { &b, 30, 0 };
	struct budget_relief relief = { .shed = drop, .context = &owner };
	(void)state;
	budget_init(&b, 100, 0);
	budget_on_short(&b, &relief);
	assert_true(budget_take(&b, 30, b.soft));
	assert_true(budget_take(&b, 40, b.soft));
	assert_int_equal(owner.asked, 0);
	/* a lower limit is reached, but a quarter is left */
	assert_false(budget_take(&b, 5, 60));
	assert_int_equal(owner.asked, 0);
	assert_true(budget_take(&b, 60, b.soft));
	assert_int_equal(b.charged, 100);
	assert_int_equal(owner.asked, 1);
	assert_false(budget_take(&b, 1, b.soft)); /* nothing is left to drop */
	assert_int_equal(owner.asked, 2);
	budget_off_short(&b, &relief);
	assert_false(budget_take(&b, 1, b.soft));
	assert_int_equal(owner.asked, 2);
}

static void best_effort_data_gives_way_while_less_than_a_quarter_is_left(void **state)
{
	struct budget b;
	(void)state;
	budget_init(&b, INT64_C(1) << 40, 0);
	int64_t quarter = b.soft / 4;
	budget_add(&b, b.soft - quarter);
	assert_false(budget_sheds(&b));
	budget_check(&b);
	assert_false(b.shedding);
	budget_add(&b, 1);
	assert_true(budget_sheds(&b));
	budget_check(&b);
	assert_false(b.shedding); /* nothing had to */
	budget_note_shed(&b);
	budget_check(&b);
	assert_true(b.shedding);
	budget_check(&b);
	assert_true(b.shedding);
	budget_give(&b, 1);
	budget_check(&b);
	assert_false(b.shedding);
}

static void a_limit_below_what_the_process_needs_is_an_error_with_the_number(void **state)
{
	struct budget b;
	struct error err;
	char limit[64];
	(void)state;
	int64_t resident = system_resident();
	budget_init(&b, resident + (3 << 20), 0);
	assert_false(budget_ready(&b, &err));
	assert_int_equal(err.kind, ERROR_CONFIG);
	snprintf(limit, sizeof limit, "must be at least %d MiB", (int)(b.baseline >> 20) + 5);
	assert_non_null(strstr(err.text, limit));
	/* It starts with that limit, also if the spike is a fraction of the limit. */
	for (int64_t mib = resident >> 20; !budget_ready(&b, &err);
	     mib = strtol(strstr(err.text, "least ") + 6, NULL, 10)) {
		budget_init(&b, mib << 20, (mib << 20) / 5);
		assert_true(mib << 20 < resident * 2 + (16 << 20));
	}
}

static void requests_keep_room_beside_the_queues(void **state)
{
	struct budget b;
	(void)state;
	budget_init(&b, INT64_C(1) << 40, 0);
	atomic_store(&b.baseline, 20 << 20);
	static const struct {
		int64_t soft, room, queues;
	} cases[] = {
		{ 30, 10, 5 },    /* half */
		{ 44, 24, 16 },   /* an ordinary request for each of two workers */
		{ 120, 100, 75 }, /* three quarters */
		{ 10, 4, 2 },     /* it does not start */
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		b.soft = cases[i].soft << 20;
		assert_int_equal(budget_allowance(&b), cases[i].room << 20);
		assert_int_equal(budget_share(&b, 2, 1), cases[i].queues << 20);
		assert_int_equal(budget_share(&b, 2, 4), cases[i].queues << 18);
	}
	b.soft = 120 << 20;
	assert_int_equal(budget_batch_max(&b, 100 << 20), (100 << 20) / 32);
	assert_int_equal(budget_batch_max(&b, 10 << 20), 1 << 20);
}

static void what_is_much_must_fit_the_real_size_too(void **state)
{
	struct budget b;
	(void)state;
	budget_init(&b, system_resident() + (8 << 20), 0);
	assert_true(budget_ready(&b, NULL));
	/* as if all resident memory had been allocated since then, without charges */
	atomic_store(&b.baseline, 1);
	assert_true(budget_take(&b, 1 << 19, b.soft));
	assert_false(budget_take(&b, b.soft / 4 * 3, b.soft));
}

static void *give_later(void *argument)
{
	struct budget *b = argument;
	while (!atomic_load(&b->claimed))
		sched_yield();
	assert_false(budget_take(b, 1, b->soft));
	budget_give(b, 60 << 20);
	return NULL;
}

static void a_claim_goes_before_those_who_ask_later(void **state)
{
	struct budget b;
	pthread_t other;
	(void)state;
	budget_init(&b, 100 << 20, 20 << 20);
	budget_add(&b, 60 << 20);
	pthread_create(&other, NULL, give_later, &b);
	budget_claim(&b, 50 << 20);
	pthread_join(other, NULL);
	assert_int_equal(b.charged, 50 << 20);
	assert_int_equal(b.claimed, 0);
	budget_release(&b, 50 << 20);
}

static void a_claim_that_finds_no_room_is_charged_all_the_same(void **state)
{
	struct budget b;
	(void)state;
	budget_init(&b, 100 << 20, 20 << 20);
	budget_claim(&b, 500 << 20);
	assert_int_equal(b.charged, 500 << 20);
	budget_release(&b, 500 << 20);
}

static void *release_later(void *argument)
{
	struct budget *b = argument;
	budget_claim(b, 60 << 20);
	budget_claim(b, 60 << 20); /* within the other claim: it does not wait */
	while (atomic_load(&b->claimed) == 0)
		sched_yield();
	usleep(300000); /* longer than any claim waits without holders */
	budget_release(b, 60 << 20);
	budget_release(b, 60 << 20);
	return NULL;
}

static void claims_that_do_not_fit_together_take_turns(void **state)
{
	struct budget b;
	pthread_t other;
	(void)state;
	budget_init(&b, 100 << 20, 20 << 20);
	pthread_create(&other, NULL, release_later, &b);
	while (atomic_load(&b.charged) < 120 << 20)
		sched_yield();
	budget_claim(&b, 50 << 20);
	pthread_join(other, NULL);
	assert_int_equal(b.charged, 50 << 20);
	assert_int_equal(b.holders, 1);
	budget_release(&b, 50 << 20);
	assert_int_equal(b.holders, 0);
	assert_int_equal(b.charged, 0);
}

struct queue {
	struct budget budget;
	_Atomic bool released, late_done;
};

static void *claim_first(void *argument)
{
	struct queue *q = argument;
	budget_claim(&q->budget, 50 << 20);
	assert_true(q->released);
	budget_release(&q->budget, 50 << 20);
	return NULL;
}

static void *claim_late(void *argument)
{
	struct queue *q = argument;
	budget_claim(&q->budget, 10 << 20); /* would fit at once */
	assert_true(q->released);
	q->late_done = true;
	budget_release(&q->budget, 10 << 20);
	return NULL;
}

static void a_claim_that_would_fit_does_not_overtake_one_that_waits(void **state)
{
	struct queue q = { .released = false };
	pthread_t first, late;
	(void)state;
	budget_init(&q.budget, 100 << 20, 20 << 20);
	budget_claim(&q.budget, 60 << 20);
	pthread_create(&first, NULL, claim_first, &q);
	while (atomic_load(&q.budget.claimed) < 50 << 20)
		sched_yield();
	pthread_create(&late, NULL, claim_late, &q);
	while (atomic_load(&q.budget.claimed) < 60 << 20 && !q.late_done)
		sched_yield();
	q.released = true;
	budget_release(&q.budget, 60 << 20);
	pthread_join(first, NULL);
	pthread_join(late, NULL);
	assert_int_equal(q.budget.charged, 0);
	assert_int_equal(q.budget.claimed, 0);
	assert_int_equal(q.budget.holders, 0);
}

enum { CROWD = 4, ROUNDS = 500 };

static void *claim_often(void *argument)
{
	struct budget *b = argument;
	for (int i = 0; i < ROUNDS; i++) {
		budget_claim(b, 60 << 20);
		budget_release(b, 60 << 20);
	}
	return NULL;
}

/* Each claim fits only alone. If a release woke no thread, each round would take a second. */
static void a_release_wakes_the_claim_that_waits(void **state)
{
	struct budget b;
	pthread_t threads[CROWD];
	(void)state;
	budget_init(&b, 100 << 20, 20 << 20);
	alarm(120);
	for (int i = 0; i < CROWD; i++)
		pthread_create(&threads[i], NULL, claim_often, &b);
	for (int i = 0; i < CROWD; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(b.charged, 0);
	alarm(0);
	assert_int_equal(b.turn, CROWD * ROUNDS);
}

static void a_small_claim_waits_for_nobody(void **state)
{
	struct budget b;
	(void)state;
	budget_init(&b, 100, 20);
	pthread_mutex_lock(&b.mutex); /* as if another claim had its turn */
	budget_claim(&b, 500);
	assert_int_equal(b.charged, 500);
	pthread_mutex_unlock(&b.mutex);
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
		cmocka_unit_test(after_a_burst_freed_memory_is_returned),
		cmocka_unit_test(best_effort_data_is_dropped_before_a_charge_is_refused),
		cmocka_unit_test(best_effort_data_gives_way_while_less_than_a_quarter_is_left),
		cmocka_unit_test(a_claim_that_finds_no_room_is_charged_all_the_same),
		cmocka_unit_test(claims_that_do_not_fit_together_take_turns),
		cmocka_unit_test(a_claim_that_would_fit_does_not_overtake_one_that_waits),
		cmocka_unit_test(a_release_wakes_the_claim_that_waits),
		cmocka_unit_test(a_small_claim_waits_for_nobody),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
