/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "tests/pipeline/delivery/delivery_fixture.h"

/* The life of one packet in a delivery: parts, retries, results, and what its senders learn. */

static void a_retry_is_made_until_it_is_taken(void **state)
{
	struct fixture *f = *state;
	begin(f);
	for (int i = 0; i < 4; i++)
		f->script[i] = (struct send_result){ .outcome = SEND_RETRY,
						     .retry_after_ms = -1,
						     .reason = "unavailable" };
	assert_true(enqueue(f, 9));
	run_until_sends(f, 5);
	assert_int_equal(f->sends, 5);
	assert_int_equal(read_metric(f, OUT), 9);
}

static void what_is_refused_for_good_is_dropped_and_counted(void **state)
{
	struct fixture *f = *state;
	begin(f);
	f->script[0] = (struct send_result){ .outcome = SEND_PERMANENT,
					     .retry_after_ms = -1,
					     .reason = "invalid" };
	f->script[1] = (struct send_result){ .outcome = SEND_TOO_LARGE,
					     .retry_after_ms = -1,
					     .reason = "too "
						       "large" };
	assert_true(enqueue(f, 4));
	run_until_sends(f, 1);
	assert_int_equal(read_metric(f, DROPPED("permanent")), 4);
	assert_int_equal(read_metric(f, OUT), 0);
}

static void retries_end_after_max_elapsed_time(void **state)
{
	struct fixture *f = *state;
	f->config.retry_on_failure.max_elapsed_time.ns = 3000000;
	begin(f);
	for (int i = 0; i < 16; i++)
		f->script[i] = (struct send_result){ .outcome = SEND_RETRY,
						     .retry_after_ms = -1,
						     .reason = "unavailable" };
	assert_true(enqueue(f, 6));
	run_until(f, 1, DROPPED("retries_exhausted"));
	assert_int_equal(read_metric(f, DROPPED("retries_exhausted")), 6);
}

static void look_for_the_end(void *argument)
{
	struct wait *wait = argument;
	if (read_metric(wait->f, QUEUED))
		loop_timer_start(wait->timer, 100000);
	else
		drain(wait->f);
}

/* The first failure opens the circuit for an hour. What enters then has less patience. */
static void what_enters_an_open_circuit_is_dropped_after_max_elapsed_time(void **state)
{
	struct fixture *f = *state;
	struct wait wait = { .f = f };
	f->config.retry_on_failure.max_elapsed_time.ns = 3000000;
	f->config.sending_queue.num_consumers = 1;
	begin(f);
	f->script[0] = (struct send_result){ .outcome = SEND_RETRY,
					     .retry_after_ms = 3600000,
					     .reason = "unavailable" };
	for (int i = 0; i < 3; i++)
		assert_true(enqueue(f, 6));
	wait.timer = loop_timer_new(f->loop, look_for_the_end, &wait);
	loop_timer_start(wait.timer, 100000);
	loop_run(f->loop);
	loop_timer_unref(&wait.timer);
	assert_int_equal(f->sends, 1);
	assert_int_equal(read_metric(f, DROPPED("retries_exhausted")), 18);
}

static bool enqueue_of(struct fixture *f, uint64_t samples, uint64_t arrival)
{
	struct packet *packet = packet_new(10, 0);
	packet->samples = samples;
	packet->otlp.len = 10;
	packet->oldest_arrival = arrival;
	bool taken = hand_over(f->ledger, f->delivery, packet, ENTRY_IF_FITS);
	packet_unref(&packet);
	return taken;
}

static void what_waited_longer_than_max_age_is_not_sent(void **state)
{
	struct fixture *f = *state;
	log_to_file();
	f->config.sending_queue.max_age.ns = INT64_C(60000000000); /* the machine runs for longer */
	f->config.sending_queue.queue_size = 100;
	begin(f);
	for (int i = 0; i < 20; i++)
		assert_true(enqueue_of(f, 1, 1)); /* when the machine started */
	assert_true(enqueue_of(f, 5, clock_now()));
	assert_true(enqueue_of(f, 7, 0)); /* unknown */
	run_until(f, 2, DROPPED("expired"));
	assert_int_equal(f->sends, 2);
	assert_int_equal(read_metric(f, DROPPED("expired")), 20);
	assert_int_equal(read_metric(f, OUT), 12);
	assert_int_equal(logged("max_age"), 1);
}

static void retries_end_when_the_packet_expires(void **state)
{
	struct fixture *f = *state;
	f->config.sending_queue.max_age.ns = 20000000;
	f->config.sending_queue.num_consumers = 1;
	begin(f);
	for (int i = 0; i < 16; i++)
		f->script[i] = (struct send_result){ .outcome = SEND_RETRY,
						     .retry_after_ms = i ? 1000 : -1,
						     .reason = "unavailable" };
	assert_true(enqueue_of(f, 6, clock_now()));
	run_until(f, 1, DROPPED("expired"));
	assert_in_range(f->sends, 1, 2);
	assert_int_equal(read_metric(f, DROPPED("expired")), 6);
}

/* Bytes that its plan was expected to make are given back. */
static void what_was_dropped_without_an_attempt_holds_no_memory(void **state)
{
	struct fixture *f = *state;
	f->ops.plan = plan_three;
	f->max_bytes = 1 << 20;
	f->config.sending_queue.num_consumers = 1;
	f->config.sending_queue.max_age.ns = 1;
	begin(f);
	assert_true(enqueue_of(f, 3, 1));
	run_until(f, 0, DROPPED("expired"));
	assert_int_equal(f->sends, 0);
	assert_int_equal(read_metric(f, HELD), 0);
}

/* A plan that supports only some of the samples, or none. */
static bool plan_a_part(void *self, const struct part *whole, const struct limits *limits,
			struct parts *parts, struct error *err)
{
	(void)self;
	(void)limits;
	(void)err;
	if (whole->samples > 100)
		parts_add(parts, packet_ref(whole->packet), whole->samples / 3, 0);
	return true;
}

static void parts_are_sent_in_order_and_a_lost_one_costs_only_itself(void **state)
{
	struct fixture *f = *state;
	f->ops.plan = plan_three;
	begin(f);
	f->script[1] = (struct send_result){ .outcome = SEND_PERMANENT,
					     .retry_after_ms = -1,
					     .reason = "invalid" };
	assert_true(enqueue(f, 30));
	run_until_sends(f, 3);
	assert_int_equal(f->sends, 3);
	assert_int_equal(read_metric(f, OUT), 20);
	assert_int_equal(read_metric(f, DROPPED("permanent")), 10);
}

static void what_a_plan_leaves_out_is_dropped_and_counted(void **state)
{
	struct fixture *f = *state;
	f->ops.plan = plan_a_part;
	begin(f);
	assert_true(enqueue(f, 300));
	assert_true(enqueue(f, 50));
	run_until_sends(f, 1);
	assert_int_equal(read_metric(f, OUT), 100);
	assert_int_equal(read_metric(f, DROPPED("plan")), 250);
	assert_int_equal(read_metric(f, QUEUED), 0);
}

static void a_retry_interval_of_zero_does_not_spin(void **state)
{
	struct fixture *f = *state;
	f->config.retry_on_failure.initial_interval.ns = 0;
	f->config.retry_on_failure.max_interval.ns = 0;
	f->config.retry_on_failure.max_elapsed_time.ns = 30000000;
	begin(f);
	for (int i = 0; i < 16; i++)
		f->script[i] = (struct send_result){ .outcome = SEND_RETRY,
						     .retry_after_ms = -1,
						     .reason = "unavailable" };
	assert_true(enqueue(f, 6));
	run_until(f, 1, DROPPED("retries_exhausted"));
	assert_in_range(f->sends, 1, 4);
}

static void a_destination_that_asks_for_ever_is_not_waited_for_at_the_end(void **state)
{
	struct fixture *f = *state;
	begin(f);
	f->script[0] = (struct send_result){ .outcome = SEND_RETRY,
					     .retry_after_ms = INT64_MAX,
					     .reason = "unavailable" };
	assert_true(enqueue(f, 6));
	run_until_sends(f, 1);
	assert_int_equal(f->sends, 2);
	assert_int_equal(read_metric(f, OUT), 6);
}

static void a_destination_that_fails_is_one_line_and_its_recovery_another(void **state)
{
	struct fixture *f = *state;
	log_to_file();
	f->config.sending_queue.num_consumers = 1;
	f->ops.plan = plan_three;
	begin(f);
	for (int i = 0; i < 5; i++)
		f->script[i] = (struct send_result){ .outcome = SEND_PERMANENT,
						     .retry_after_ms = -1,
						     .reason = "invalid" };
	assert_true(enqueue(f, 9));
	assert_true(enqueue(f, 9));
	run_until_sends(f, 6);
	assert_int_equal(logged("Exporting"), 2);
}

static int acks_done;
static enum ack_outcome acked;

static void note_ack(struct ack *ack, enum ack_outcome outcome)
{
	(void)ack;
	acks_done++;
	acked = outcome;
}

static void check_ack(struct fixture *f, enum send_outcome outcome, uint32_t senders,
		      enum ack_outcome expected)
{
	struct ack ack;
	acks_done = 0;
	f->config.sending_queue.wait_for_result = true;
	f->config.retry_on_failure.present.enabled = false;
	begin(f);
	f->script[0] = (struct send_result){ .outcome = outcome,
					     .retry_after_ms = -1,
					     .reason = "invalid" };
	ack_init(&ack, ACK_ENQUEUE, note_ack);
	struct packet *packet = packet_new(10, senders);
	packet->samples = 1;
	packet->contributions[0].ack = &ack;
	assert_true(hand_over(f->ledger, f->delivery, packet, ENTRY_IF_FITS));
	packet_release_acks(packet, ACK_MODE_ANY, ACK_TAKEN); /* the fan-out is done */
	packet_unref(&packet);
	assert_int_equal(acks_done, 0);
	run_until_sends(f, f->ops.plan ? 3 : 1);
	assert_int_equal(acks_done, 1);
	assert_int_equal(acked, expected);
}

/* One of two senders waits for delivery. It is released while the packet waits for its retry, and
 * the packet, for which the other one was answered, is still delivered. */
static void a_sender_can_be_released_before_its_packet_is_delivered(void **state)
{
	struct fixture *f = *state;
	struct ack ack;
	acks_done = 0;
	begin(f);
	f->script[0] = (struct send_result){ .outcome = SEND_RETRY,
					     .retry_after_ms = -1,
					     .reason = "unavailable" };
	ack_init(&ack, ACK_DELIVERED, note_ack);
	struct packet *packet = packet_new(10, 2);
	packet->samples = 1;
	packet->contributions[0] = (struct contribution){ .ack = &ack, .mode = ACK_DELIVERED };
	assert_true(hand_over(f->ledger, f->delivery, packet, ENTRY_PROMISED));
	packet_release_acks(packet, ACK_MODE_ANY, ACK_TAKEN); /* the fan-out is done */
	packet_unref(&packet);
	assert_int_equal(acks_done, 0);
	delivery_release_senders(f->delivery);
	delivery_release_senders(f->delivery);
	assert_int_equal(acks_done, 1);
	assert_int_equal(acked, ACK_FAILED);
	run_until_sends(f, 2);
	assert_int_equal(acks_done, 1);
	assert_int_equal(read_metric(f, OUT), 1);
}

/* It neither waits for a best-effort destination nor hears of it. */
static void a_best_effort_destination_holds_no_sender(void **state)
{
	struct fixture *f = *state;
	struct ack ack;
	acks_done = 0;
	f->config.required = false;
	f->config.sending_queue.present.enabled = false;
	begin(f);
	ack_init(&ack, ACK_DELIVERED, note_ack);
	struct packet *packet = packet_new(10, 1);
	packet->contributions[0] = (struct contribution){ .ack = &ack, .mode = ACK_DELIVERED };
	assert_true(hand_over(f->ledger, f->delivery, packet, ENTRY_IF_FITS));
	packet_release_acks(packet, ACK_MODE_ANY, ACK_TAKEN);
	packet_unref(&packet);
	assert_int_equal(acks_done, 1);
	assert_int_equal(acked, ACK_TAKEN);
	run_until_sends(f, 1);
	assert_int_equal(acks_done, 1);
}

static void the_sender_hears_of_a_refusal_for_good(void **state)
{
	check_ack(*state, SEND_PERMANENT, 1, ACK_REFUSED);
}

static void the_sender_hears_of_a_failure_that_may_pass(void **state)
{
	check_ack(*state, SEND_RETRY, 1, ACK_FAILED);
}

static void one_senders_refusal_is_not_anothers(void **state)
{
	check_ack(*state, SEND_PERMANENT, 2, ACK_FAILED);
}

/* The other parts were accepted. The sender of the rejected part must not receive a success. */
static void a_part_that_was_refused_is_never_told_as_taken(void **state)
{
	struct fixture *f = *state;
	f->ops.plan = plan_three;
	check_ack(f, SEND_PERMANENT, 1, ACK_REFUSED);
}

static void nor_to_several_senders(void **state)
{
	struct fixture *f = *state;
	f->ops.plan = plan_three;
	check_ack(f, SEND_PERMANENT, 2, ACK_FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_retry_is_made_until_it_is_taken),
		TEST(what_is_refused_for_good_is_dropped_and_counted),
		TEST(retries_end_after_max_elapsed_time),
		TEST(what_enters_an_open_circuit_is_dropped_after_max_elapsed_time),
		TEST(what_waited_longer_than_max_age_is_not_sent),
		TEST(retries_end_when_the_packet_expires),
		TEST(what_was_dropped_without_an_attempt_holds_no_memory),
		TEST(parts_are_sent_in_order_and_a_lost_one_costs_only_itself),
		TEST(what_a_plan_leaves_out_is_dropped_and_counted),
		TEST(a_retry_interval_of_zero_does_not_spin),
		TEST(a_destination_that_asks_for_ever_is_not_waited_for_at_the_end),
		TEST(a_destination_that_fails_is_one_line_and_its_recovery_another),
		TEST(a_sender_can_be_released_before_its_packet_is_delivered),
		TEST(a_best_effort_destination_holds_no_sender),
		TEST(the_sender_hears_of_a_refusal_for_good),
		TEST(the_sender_hears_of_a_failure_that_may_pass),
		TEST(one_senders_refusal_is_not_anothers),
		TEST(a_part_that_was_refused_is_never_told_as_taken),
		TEST(nor_to_several_senders),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
