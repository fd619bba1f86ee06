/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/pipeline/delivery/delivery_fixture.h"

#define FORM_GZIP ((struct packet_form){ PACKET_OTLP, CODING_GZIP, 1 })

/* The queue of a delivery: what is added to it, which thread sends it, and how it ends. */

static void what_the_destination_takes_is_out(void **state)
{
	struct fixture *f = *state;
	begin(f);
	assert_true(enqueue(f, 5));
	assert_true(enqueue(f, 7));
	run_until_sends(f, 2);
	assert_int_equal(read_metric(f, OUT), 12);
	assert_int_equal(read_metric(f, QUEUED), 0);
}

static void a_full_queue_drops_for_this_destination_and_counts(void **state)
{
	struct fixture *f = *state;
	begin(f);
	for (int i = 0; i < 3; i++)
		assert_true(enqueue(f, 1));
	assert_int_equal(delivery_room(f->delivery, NULL), ROOM_NONE);
	assert_false(enqueue(f, 10));
	run_until_sends(f, 3);
	assert_int_equal(read_metric(f, DROPPED("queue_full")), 10);
	assert_int_equal(read_metric(f, OUT), 3);
}

static void a_full_queue_is_one_line_and_its_end_another(void **state)
{
	struct fixture *f = *state;
	log_to_file();
	begin(f);
	for (int i = 0; i < 3; i++)
		assert_true(enqueue(f, 1));
	for (int i = 0; i < 50; i++)
		assert_false(enqueue(f, 1));
	run_until_sends(f, 3);
	assert_int_equal(logged("Sending queue"), 2);
}

static void an_empty_queue_takes_what_is_larger_than_queue_size(void **state)
{
	struct fixture *f = *state;
	f->config.sending_queue.sizer.index = SIZER_ITEMS;
	begin(f);
	assert_true(enqueue(f, 5));
	run_until_sends(f, 1);
	assert_int_equal(read_metric(f, OUT), 5);
}

static void without_a_queue_its_sizer_does_not_count(void **state)
{
	struct fixture *f = *state;
	f->config.sending_queue.present.enabled = false;
	f->config.sending_queue.sizer.index = SIZER_BYTES;
	begin(f);
	for (int i = 0; i < 64; i++)
		assert_true(enqueue(f, 1));
	assert_int_equal(delivery_room(f->delivery, NULL), ROOM_SOON);
	run_until_sends(f, 64);
	assert_int_equal(read_metric(f, OUT), 64);
}

static void draining_gives_what_waits_one_more_attempt_and_no_retry(void **state)
{
	struct fixture *f = *state;
	f->config.retry_on_failure.initial_interval.ns = INT64_C(3600000000000);
	f->config.retry_on_failure.max_interval.ns = INT64_C(3600000000000);
	begin(f);
	for (int i = 0; i < 16; i++)
		f->script[i] = (struct send_result){ .outcome = SEND_RETRY,
						     .retry_after_ms = -1,
						     .reason = "unavailable" };
	assert_true(enqueue(f, 2));
	run_until_sends(f, 1);
	assert_int_equal(f->sends, 2);
	assert_int_equal(read_metric(f, DROPPED("shutdown")), 2);
}

static void release_held(void *argument)
{
	struct fixture *f = argument;
	sending_done(f->held, &(struct send_result){ .outcome = SEND_RETRY,
						     .retry_after_ms = -1,
						     .reason = "cancelled" });
}

static void abandon(void *argument)
{
	struct fixture *f = argument;
	delivery_drain(f->delivery, drained, f);
	delivery_abandon(f->delivery);
	loop_post(f->loop, release_held, f);
}

static void wait_for_held(void *argument)
{
	struct wait *wait = argument;
	if (wait->f->held)
		abandon(wait->f);
	else
		loop_timer_start(wait->timer, 100000);
}

static void the_deadline_drops_what_waits_and_what_hangs(void **state)
{
	struct fixture *f = *state;
	f->hold = true;
	f->config.sending_queue.num_consumers = 1;
	begin(f);
	assert_true(enqueue(f, 3));
	assert_true(enqueue(f, 4));
	struct wait wait = { f, 1, NULL, NULL };
	wait.timer = loop_timer_new(f->loop, wait_for_held, &wait);
	loop_timer_start(wait.timer, 100000);
	loop_run(f->loop);
	loop_timer_unref(&wait.timer);
	assert_int_equal(read_metric(f, DROPPED("shutdown")), 7);
	assert_int_equal(read_metric(f, QUEUED), 0);
}

#define FLIGHTS "otelcol_exporter_in_flight_requests{data_type=\"profiles\",exporter=\"fake\"} "

/* The bytes that plans make are counted: with a small share, fewer plans run at once, and nothing
 * is lost. */
static void where_the_share_is_small_fewer_are_planned_at_once(void **state)
{
	struct fixture *f = *state;
	f->ops.plan = plan_three;
	f->config.sending_queue.num_consumers = 3;
	f->max_bytes = 20000;
	begin(f);
	for (int i = 0; i < 3; i++) {
		struct packet *packet = packet_new(1000, 0);
		packet->otlp.len = 1000;
		packet->samples = 9;
		assert_true(hand_over(f->ledger, f->delivery, packet, ENTRY_IF_FITS));
		packet_unref(&packet);
		assert_int_equal(read_metric(f, FLIGHTS), i < 2 ? i + 1 : 2);
	}
	run_until_sends(f, 9);
	assert_int_equal(read_metric(f, OUT), 27);
}

static bool always_prompt(void *self, const struct packet *packet)
{
	(void)self;
	(void)packet;
	return true;
}

static bool one_byte(const void *context, const struct packet *packet, struct bytes *out,
		     struct error *err)
{
	(void)context;
	(void)packet;
	(void)err;
	return bytes_add_byte(out, 'z');
}

static bool prompt_if_encoded(void *self, const struct packet *packet)
{
	(void)self;
	return packet_has(packet, FORM_GZIP);
}

static void encode(void *self, struct packet *packet)
{
	(void)self;
	packet_form(packet, FORM_GZIP, one_byte, NULL, NULL);
}

/* The loop runs only at the end. */
static void a_small_packet_is_encoded_by_whoever_brings_it(void **state)
{
	struct fixture *f = *state;
	f->ops.prompt = prompt_if_encoded;
	f->ops.encode = encode;
	begin(f);
	struct packet *large = packet_new(1 << 20, 0);
	large->otlp.len = 1 << 20;
	large->samples = 5;
	assert_true(hand_over(f->ledger, f->delivery, large, ENTRY_IF_FITS));
	packet_unref(&large);
	assert_int_equal(f->sends, 0);
	assert_true(enqueue(f, 3));
	assert_int_equal(f->sends, 1);
	run_until_sends(f, 2);
}

/* The loop runs only at the end. */
static void a_prompt_exporter_sends_on_the_thread_at_hand(void **state)
{
	struct fixture *f = *state;
	const struct send_result ok = { .outcome = SEND_OK };
	f->hold = true;
	f->ops.prompt = always_prompt;
	f->config.sending_queue.num_consumers = 1;
	begin(f);
	assert_true(enqueue(f, 3));
	assert_true(enqueue(f, 4));
	assert_int_equal(f->sends, 1);
	sending_done(f->held, &ok);
	assert_int_equal(read_metric(f, OUT), 3);
	assert_int_equal(f->sends, 2);
	sending_done(f->held, &ok);
	assert_int_equal(read_metric(f, OUT), 7);
	assert_int_equal(read_metric(f, QUEUED), 0);
	run_until_sends(f, 2);
}

/* It accepts what comes, also beyond the queue's size, and drops it: no sender is refused. */
static void a_destination_that_discards_has_room(void **state)
{
	struct fixture *f = *state;
	f->hold = true;
	f->ops.prompt = always_prompt;
	f->config.sending_queue.num_consumers = f->config.sending_queue.queue_size = 1;
	begin(f);
	assert_true(enqueue(f, 3));
	assert_int_equal(delivery_room(f->delivery, NULL), ROOM_NONE);
	delivery_set_kill(f->delivery, DELIVERY_DISCARDS);
	assert_int_equal(delivery_room(f->delivery, NULL), ROOM_SOME);
	assert_true(enqueue(f, 4));
	assert_int_equal(read_metric(f, DROPPED("killed")), 4);
	sending_done(f->held, &(struct send_result){ .outcome = SEND_OK });
	run_until_sends(f, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_the_destination_takes_is_out),
		TEST(a_full_queue_drops_for_this_destination_and_counts),
		TEST(a_full_queue_is_one_line_and_its_end_another),
		TEST(an_empty_queue_takes_what_is_larger_than_queue_size),
		TEST(without_a_queue_its_sizer_does_not_count),
		TEST(draining_gives_what_waits_one_more_attempt_and_no_retry),
		TEST(the_deadline_drops_what_waits_and_what_hangs),
		TEST(where_the_share_is_small_fewer_are_planned_at_once),
		TEST(a_prompt_exporter_sends_on_the_thread_at_hand),
		TEST(a_destination_that_discards_has_room),
		TEST(a_small_packet_is_encoded_by_whoever_brings_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
