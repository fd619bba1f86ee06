/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "pipeline/intake/workers.h"

/* One worker, which waits in its first request until the queue is full and then records the order
 * of the other requests. */
enum { MANY = 1000, PLACES = 4096 };

static struct fixture {
	struct budget budget;
	struct peers peers;
	struct workers *workers;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool busy, go; /* lock */
	struct inbound requests[2 * PLACES], *order[2 * PLACES];
	uint32_t made, run;
} f;

static void run(struct worker *worker, struct inbound *in)
{
	(void)worker;
	pthread_mutex_lock(&f.lock);
	f.busy = true;
	pthread_cond_broadcast(&f.changed);
	while (!f.go)
		pthread_cond_wait(&f.changed, &f.lock);
	f.order[f.run++] = in;
	pthread_mutex_unlock(&f.lock);
}

static struct inbound *request_of(const char *peer)
{
	struct inbound *in = &f.requests[f.made++];
	in->request.peer = peer;
	in->peer = peers_hold(&f.peers, &in->request);
	return in;
}

static bool submit(const char *peer)
{
	return workers_submit(f.workers, request_of(peer));
}

static int setup(void **state)
{
	(void)state;
	memset(&f, 0, sizeof f);
	budget_init(&f.budget, 8 << 20, 0);
	peers_init(&f.peers);
	pthread_mutex_init(&f.lock, NULL);
	pthread_cond_init(&f.changed, NULL);
	f.workers = workers_start(&(struct workers_options){ .count = 1,
							     .queue_max = PLACES,
							     .budget = &f.budget,
							     .idle_bytes = 1 << 20,
							     .run = run },
				  NULL);
	assert_true(submit("first"));
	pthread_mutex_lock(&f.lock);
	while (!f.busy)
		pthread_cond_wait(&f.changed, &f.lock);
	pthread_mutex_unlock(&f.lock);
	return 0;
}

static void run_all(void)
{
	pthread_mutex_lock(&f.lock);
	f.go = true;
	pthread_cond_broadcast(&f.changed);
	pthread_mutex_unlock(&f.lock);
	workers_stop(&f.workers);
}

static int teardown(void **state)
{
	(void)state;
	if (f.workers)
		run_all();
	for (uint32_t i = 0; i < f.made; i++)
		peers_release(&f.peers, &f.requests[i].peer);
	peers_fini(&f.peers);
	pthread_cond_destroy(&f.changed);
	pthread_mutex_destroy(&f.lock);
	assert_int_equal(f.budget.charged, 0);
	return 0;
}

/* The number of requests that ran before the only request of the peer. */
static uint32_t turn_of(const char *peer)
{
	uint32_t i = 0;
	while (strcmp(f.order[i]->request.peer, peer) != 0)
		i++;
	return i;
}

static void many_requests_of_one_peer_delay_another_by_one(void **state)
{
	(void)state;
	for (int i = 0; i < MANY; i++)
		assert_true(submit("many"));
	assert_true(submit("one"));
	assert_true(submit("other"));
	run_all();
	assert_int_equal(f.run, 1 + MANY + 2);
	assert_in_range(turn_of("one"), 1, 3);
	assert_in_range(turn_of("other"), 1, 4);
}

static void requests_of_one_peer_keep_their_order(void **state)
{
	(void)state;
	const struct inbound *last[2] = { NULL, NULL };
	for (int i = 0; i < 30; i++)
		assert_true(submit(i % 3 ? "a" : "b"));
	run_all();
	assert_int_equal(f.run, 31);
	for (uint32_t i = 1; i < f.run; i++) {
		const struct inbound **before = &last[*f.order[i]->request.peer == 'a'];
		assert_true(!*before || *before < f.order[i]);
		*before = f.order[i];
	}
}

static uint32_t fill(const char *peer)
{
	uint32_t count = 0;
	while (workers_has_place(f.workers, f.requests[f.made - 1].peer) && submit(peer))
		count++;
	return count;
}

static void the_peer_with_most_requests_waiting_is_refused_first(void **state)
{
	(void)state;
	assert_true(submit("many"));
	assert_int_equal(1 + fill("many"), PLACES / 2);
	assert_false(submit("many"));
	struct workers_load load = workers_load(f.workers, f.requests[f.made - 1].peer);
	assert_int_equal(load.max, PLACES);
	assert_int_equal(load.waiting, PLACES / 2);
	assert_true(submit("one"));
	assert_int_equal(1 + fill("one"), PLACES / 4);
	assert_false(submit("many"));
	assert_true(submit("other"));
}

static void a_stopped_queue_takes_nothing_and_runs_what_it_has(void **state)
{
	(void)state;
	assert_true(submit("a"));
	assert_true(submit("b"));
	run_all();
	assert_int_equal(f.run, 3);
}

static void a_worker_of_another_thread_runs_without_the_queue(void **state)
{
	(void)state;
	struct worker *worker = worker_new(f.workers);
	struct inbound *in = request_of("inline");
	f.go = true;
	worker_run(worker, in);
	assert_ptr_equal(f.order[0], in);
	worker_unref(&worker);
	assert_null(worker);
}

static void a_peer_that_has_no_request_is_forgotten(void **state)
{
	(void)state;
	struct inbound a = { .request = { .peer = "2001:db8::1" } },
		       b = { .request = { .peer = "2001:db8::ffff:2" } };
	uint32_t before = f.peers.count;
	a.peer = peers_hold(&f.peers, &a.request);
	b.peer = peers_hold(&f.peers, &b.request);
	assert_ptr_equal(a.peer, b.peer); /* the addresses of one host share their first 64 bits */
	assert_int_equal(f.peers.count, before + 1);
	peers_release(&f.peers, &a.peer);
	assert_int_equal(f.peers.count, before + 1);
	peers_release(&f.peers, &b.peer);
	assert_int_equal(f.peers.count, before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(many_requests_of_one_peer_delay_another_by_one),
		TEST(requests_of_one_peer_keep_their_order),
		TEST(the_peer_with_most_requests_waiting_is_refused_first),
		TEST(a_stopped_queue_takes_nothing_and_runs_what_it_has),
		TEST(a_worker_of_another_thread_runs_without_the_queue),
		TEST(a_peer_that_has_no_request_is_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
