/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/pipeline/delivery/durable_fixture.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/memory.h"
#include "pipeline/delivery/on_disk.h"

#define AGE "otelcol_exporter_oldest_packet_age_seconds{exporter=\"fake\"} "

static void enqueue_kilobyte(struct fixture *f, uint64_t arrival)
{
	struct packet *packet = packet_new(1000, 0);
	packet->otlp.len = 1000;
	packet->samples = 1;
	packet->oldest_arrival = arrival;
	for (int k = 0; k < 5000 && delivery_room(f->delivery, packet) != ROOM_SOME; k++)
		usleep(1000);
	assert_true(hand_over(f->ledger, f->delivery, packet, ENTRY_IF_FITS));
	packet_unref(&packet);
}

struct reaching {
	struct fixture *f;
	struct loop_timer *timer;
	const char *metric;
	int64_t value;
};

static void look_again(void *argument)
{
	struct reaching *r = argument;
	if (read_metric(r->f, r->metric) >= r->value)
		loop_stop(r->f->loop);
	else
		loop_timer_start(r->timer, 1000000);
}

static void run_until_it_reaches(struct fixture *f, const char *metric, int64_t value)
{
	struct reaching r = { f, NULL, metric, value };
	r.timer = loop_timer_new(f->loop, look_again, &r);
	loop_timer_start(r.timer, 1000000);
	loop_run(f->loop);
	loop_timer_unref(&r.timer);
}

/* The oldest packet is the first one that is not in memory, and the next oldest one is the first
 * record, which the second delivery finds. Newest first, they are loaded last. */
static void the_age_of_what_is_on_disk_continues_after_a_restart(void **state)
{
	struct fixture *f = *state;
	uint64_t age = clock_now() / 2;
	int64_t seconds = (int64_t)(age / 1000000000);
	int count = 3;
	f->max_bytes = 30000;
	f->config.sending_queue.num_consumers = 1;
	f->config.sending_queue.order.index = ORDER_NEWEST;
	fail_all(f);
	start(f);
	assert_int_equal(read_metric(f, AGE), 0);
	for (; !durable_spills(f->delivery); count++)
		enqueue_kilobyte(f, clock_now() - (count == 3 ? age / 2 : 0));
	enqueue_kilobyte(f, clock_now() - age);
	for (int i = 0; i < 2; i++)
		enqueue_kilobyte(f, clock_now());
	assert_true(read_metric(f, AGE) >= seconds);
	run_until_sends(f, 2);
	assert_int_equal(read_metric(f, AGE), 0); /* the delivery has ended */
	succeed(f);
	restart(f);
	delivery_set_kill(f->delivery, DELIVERY_HOLDS); /* nothing is loaded */
	run_until_it_reaches(f, AGE, seconds / 2);
	delivery_set_kill(f->delivery, DELIVERY_ALIVE);
	run_until_it_reaches(f, OUT, count);
	drain(f);
	loop_run(f->loop);
}

/* What one record after another does to the time of the oldest one: it is spilled, added or taken.
 * Newest first, so one that came first is taken last. A record is its number; it arrived at ten
 * times that. */
static const struct {
	const char *steps;
	uint64_t oldest;
} ages[] = {
	{ "s1 a1", 10 },
	{ "s1 a1 s2 a2", 10 },
	{ "s1 a1 s2 a2 t2", 10 },
	/* the oldest has gone while others are being spilled */
	{ "s1 a1 s2 t1", 0 },
	{ "s1 a1 s2 t1 a2", 20 },
	{ "s1 a1 s2 t1 a2 s3 a3", 20 },
	/* a record that is loaded before it was added */
	{ "s1 a1 s2 t2 a2", 10 },
	{ "s1 a1 s2 t2 a2 t1 s3 a3", 30 },
	{ "s1 a1 s2 s3 t3", 10 },
	{ "s1 a1 s2 s3 t3 a2", 10 },
	{ "s1 a1 s2 s3 t3 a2 a3", 10 },
	{ "s1 a1 s2 s3 t3 a2 a3 t2", 10 },
	{ "s1 a1 s2 s3 t3 a2 a3 s4 t2 t1 a4", 40 },
};

static void step(struct delivery *d, struct book *book, char what, uint64_t number)
{
	struct packet packet = { .oldest_arrival = 10 * number };
	const uint64_t samples = number == 1 ? 5 : 1;
	const struct item item = { .packet = &packet, .book = book, .left = samples, .units = 1 };
	if (what == 's')
		on_disk_spill(d, &item, number);
	else if (what == 't') {
		on_disk_take(d, &item, number);
		on_disk_reconcile(d);
	} else {
		d->durable.spilling--;
		on_disk_add(d, &item, number);
	}
}

/* And nothing that is left counts as lost. */
static void the_age_is_that_of_what_is_left(void **state)
{
	static const struct metric size = { "size", METRIC_GAUGE, "", "" };
	(void)state;
	for (size_t i = 0; i < sizeof ages / sizeof *ages; i++) {
		struct metrics *counted = metrics_new();
		struct delivery *d = memory_new(sizeof *d);
		struct book book = { 0 };
		d->books = &book;
		d->count.size = metrics_series(counted, &size, NULL);
		d->backlog.order = ORDER_NEWEST;
		for (const char *at = ages[i].steps; *at; at += strspn(at + 2, " ") + 2)
			step(d, &book, *at, (uint64_t)(at[1] - '0'));
		if (on_disk_oldest(d) != ages[i].oldest)
			fail_msg("%s: %" PRIu64, ages[i].steps, on_disk_oldest(d));
		memory_free(d);
		metrics_unref(&counted);
	}
}

static _Atomic bool freed;

static void has_drained(void *argument)
{
	struct fixture *f = argument;
	delivery_unref(&f->delivery);
	freed = true;
	loop_stop(f->loop);
}

static void leave(void *argument)
{
	struct fixture *f = argument;
	delivery_drain(f->delivery, has_drained, f);
}

static bool is_prompt(void *self, const struct packet *packet)
{
	(void)self, (void)packet;
	return true;
}

/* On the pool thread that has loaded the packet. */
static void send_and_leave(void *self, const struct part *part, uint64_t timeout_ns,
			   struct sending *sending)
{
	static const struct send_result ok = { .outcome = SEND_OK, .reason = "ok" };
	struct fixture *f = *(struct fixture **)self;
	(void)part, (void)timeout_ns;
	loop_call(f->loop, leave, f);
	sending_done(sending, &ok);
	while (!freed)
		usleep(1000);
}

static void a_delivery_may_end_while_its_last_packet_is_being_loaded(void **state)
{
	struct fixture *f = *state;
	f->config.sending_queue.num_consumers = 1;
	fail_all(f);
	start(f);
	enqueue_kilobyte(f, clock_now());
	run_until_sends(f, 1);
	f->ops.send = send_and_leave;
	f->ops.prompt = is_prompt;
	restart(f);
	loop_run(f->loop);
	assert_int_equal(read_metric(f, OUT), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_age_is_that_of_what_is_left),
		DURABLE(a_delivery_may_end_while_its_last_packet_is_being_loaded),
		DURABLE(the_age_of_what_is_on_disk_continues_after_a_restart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
