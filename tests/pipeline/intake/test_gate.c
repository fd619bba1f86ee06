/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/pipeline/intake/gate_fixture.h"
#include "tests/support/hand_over.h"

static void a_request_is_answered_after_it_was_taken(void **state)
{
	struct fixture *f = *state;
	struct fake fake = fake_request(100);
	open_gate(f, 1);
	run(f, &fake);
	assert_false(fake.refused);
	assert_int_equal(f->packets, 1);
}

static void a_request_goes_through_every_pipeline_of_its_receiver(void **state)
{
	struct fixture *f = *state;
	struct fake fake = fake_request(100);
	open_gate(f, 2);
	run(f, &fake);
	assert_int_equal(f->packets, 2);
	assert_int_equal(ledger_get(f->pipeline.row, LEDGER_IN), 2);
}

#define INCOMPLETE "otelcol_receiver_incomplete_requests" LABELS

static void a_request_that_only_one_of_two_pipelines_took_is_counted(void **state)
{
	struct fixture *f = *state;
	struct fake whole = fake_request(100), half = fake_request(100), none = fake_request(100);
	open_gate(f, 2);
	run(f, &whole);
	assert_int_equal(read_metric(f, INCOMPLETE), 0);
	f->fills = true;
	f->workers = start_workers(f);
	run(f, &half);
	assert_false(half.refused);
	assert_int_equal(read_metric(f, INCOMPLETE), 1);
	f->workers = start_workers(f);
	run(f, &none);
	assert_true(none.refused);
	assert_int_equal(read_metric(f, INCOMPLETE), 1);
}

static void what_cannot_be_decoded_is_told_and_nothing_leaves(void **state)
{
	struct fixture *f = *state;
	struct fake fake = fake_request(100);
	fake.fails = ERROR_INVALID;
	open_gate(f, 2);
	run(f, &fake);
	assert_true(fake.refused);
	assert_int_equal(fake.kind, ERROR_INVALID);
	assert_int_equal(f->packets, 0);
}

static void bad_profiles_are_told_beside_success(void **state)
{
	struct fixture *f = *state;
	struct fake fake = fake_request(100);
	fake.bad = 3;
	open_gate(f, 2);
	run(f, &fake);
	assert_false(fake.refused);
	assert_int_equal(fake.rejected, 3);
}

static void a_body_that_leaves_no_room_for_tables_is_refused_with_a_retry_hint(void **state)
{
	struct fixture *f = *state;
	struct fake fake = fake_request(1 << 19);
	open_gate(f, 1);
	budget_add(&f->budget, 6 << 20);
	run(f, &fake);
	budget_give(&f->budget, 6 << 20);
	assert_true(fake.refused);
	assert_int_equal(fake.kind, ERROR_BUSY);
	assert_true(fake.retry_after_ms > 0);
}

static void a_closed_gate_refuses(void **state)
{
	struct fixture *f = *state;
	struct fake fake = fake_request(0);
	struct error err;
	open_gate(f, 0);
	gate_close(f->gate);
	assert_false(gate_admit(f->gate, &fake.in, 1, &err));
	assert_int_equal(err.kind, ERROR_BUSY);
}

static void what_no_destination_takes_is_refused_with_a_retry_hint(void **state)
{
	struct fixture *f = *state;
	struct fake fake = fake_request(100);
	f->full = true;
	open_gate(f, 1);
	run(f, &fake);
	assert_true(fake.refused);
	assert_int_equal(fake.kind, ERROR_BUSY);
	assert_in_range(fake.retry_after_ms, 1000, 2000);
	assert_int_equal(read_metric(f, REASON("queue_full")), 1);
}

static void every_request_is_counted_once(void **state)
{
	struct fixture *f = *state;
	struct fake good = fake_request(100), partly = fake_request(100), bad = fake_request(100);
	struct fake large = fake_request(0), lost = fake_request(0), full = fake_request(0);
	struct error err;
	open_gate(f, 1);
	partly.bad = 3;
	bad.fails = ERROR_INVALID;
	submit(f, &good);
	submit(f, &partly);
	submit(f, &bad);
	workers_stop(&f->workers);
	f->workers = start_workers(f);
	reopen_gate(f, 0);
	assert_true(gate_admit(f->gate, &large.in, 10, &err));
	budget_add(&f->budget, 8 << 20);
	assert_false(gate_admit(f->gate, &full.in, 10, &err));
	assert_false(gate_charge(f->gate, &large.in, 1 << 20, &err));
	gate_forget(f->gate, &large.in, REFUSAL_NONE);
	budget_give(&f->budget, 8 << 20);
	assert_true(gate_admit(f->gate, &lost.in, 10, &err));
	gate_forget(f->gate, &lost.in, REFUSAL_CANCELLED);
	assert_int_equal(read_metric(f, OUTCOME("success")), 1);
	assert_int_equal(read_metric(f, OUTCOME("partial")), 1);
	assert_int_equal(read_metric(f, OUTCOME("refused")), 4);
	assert_int_equal(read_metric(f, REASON("memory")), 2);
	assert_int_equal(read_metric(f, REASON("cancelled")), 1);
	assert_int_equal(read_metric(f, REASON("invalid")), 1);
	assert_int_equal(read_metric(f, "otelcol_receiver_accepted_profile_samples" LABELS), 2);
	assert_int_equal(read_metric(f, "otelcol_receiver_refused_profile_samples" LABELS), 6);
}

static void check_waiting(struct fixture *f, enum ack_outcome outcome, enum error_kind told)
{
	struct fake fake = fake_request(100000);
	f->hold = true;
	open_gate(f, 1);
	submit(f, &fake);
	workers_stop(&f->workers);
	assert_false(fake.replied);
	assert_int_equal(fake.in.charged, GATE_REQUEST_BYTES + 100000);
	packet_release_acks(f->held, ACK_MODE_ANY, outcome);
	packet_unref(&f->held);
	assert_true(fake.replied);
	assert_int_equal(fake.kind, told);
	assert_int_equal(read_metric(f, REASON("delivery")), 1);
	assert_int_equal(read_metric(f, "otelcol_receiver_accepted_profile_samples" LABELS), 0);
	assert_int_equal(read_metric(f, "otelcol_receiver_refused_profile_samples" LABELS), 1);
}

static void a_sender_that_waits_holds_no_memory_of_tables(void **state)
{
	check_waiting(*state, ACK_FAILED, ERROR_BUSY);
}

static void a_sender_that_waits_is_not_called_back_in_vain(void **state)
{
	check_waiting(*state, ACK_REFUSED, ERROR_INTERNAL);
}

static void take(void *self, const struct part *part, uint64_t timeout_ns, struct sending *sending)
{
	(void)self;
	(void)part;
	(void)timeout_ns;
	sending_done(sending, &(struct send_result){ .outcome = SEND_OK, .retry_after_ms = -1 });
}

static void drained(void *argument)
{
	struct fixture *f = argument;
	if (!--f->draining)
		loop_stop(f->loop);
}

static void drain(void *argument)
{
	struct fixture *f = argument;
	f->draining = 2;
	for (int i = 0; i < 2; i++)
		delivery_drain(f->deliveries[i], drained, f);
}

/* Two destinations, the first of which is full. `pipelines` is the number of pipelines that send to
 * them; `blocks`: the first one blocks. */
static bool admitted_if(struct fixture *f, uint32_t pipelines, bool blocks, bool second_required)
{
	static const struct exporter_ops taking = { .send = take };
	struct delivery_config config[2] = {
		{ .required = true,
		  .sending_queue = { .present = { true },
				     .num_consumers = 1,
				     .queue_size = 1,
				     .block_on_overflow = blocks } },
		{ .required = second_required,
		  .sending_queue = { .present = { true }, .num_consumers = 1, .queue_size = 1 } },
	};
	uint32_t count = pipelines == 1 ? 2 : 1;
	struct route routes[2] = { { .deliveries = f->deliveries,
				     .delivery_count = count,
				     .required_count = second_required ? count : 1 },
				   { .deliveries = f->deliveries + 1,
				     .delivery_count = 1,
				     .required_count = second_required } };
	struct pipeline paths[2] = { { .routes = &routes[0], .route_count = 1 },
				     { .routes = &routes[1], .route_count = 1 } };
	struct fake fake = fake_request(0);
	struct error err;
	struct packet *packet = packet_new(10, 0);
	for (int i = 0; i < 2; i++)
		f->deliveries[i] = delivery_new(&(struct delivery_options){ .ops = &taking,
									    .config = &config[i],
									    .id = "fake",
									    .log = &f->log,
									    .metrics = f->metrics,
									    .ledger = f->ledger,
									    .loop = f->loop });
	assert_true(hand_over(f->ledger, f->deliveries[0], packet, ENTRY_IF_FITS));
	packet_unref(&packet);
	f->pipelines[0] = &paths[0];
	f->pipelines[1] = &paths[1];
	open_gate(f, pipelines);
	bool ok = gate_admit(f->gate, &fake.in, 10, &err);
	gate_forget(f->gate, &fake.in, REFUSAL_NONE);
	loop_post(f->loop, drain, f);
	loop_run(f->loop);
	delivery_unref(&f->deliveries[0]);
	delivery_unref(&f->deliveries[1]);
	gate_unref(&f->gate);
	return ok;
}

static bool admitted(struct fixture *f, uint32_t pipelines, bool blocks)
{
	return admitted_if(f, pipelines, blocks, true);
}

static void room_at_a_best_effort_destination_admits_nothing(void **state)
{
	struct fixture *f = *state;
	assert_false(admitted_if(f, 1, false, false));
	assert_false(admitted_if(f, 2, false, false));
	open_gate(f, 0);
}

static void a_full_queue_refuses_senders_that_wait_for_every_destination(void **state)
{
	struct fixture *f = *state;
	f->ack = ACK_DELIVERED;
	assert_false(admitted(f, 1, false));
	assert_false(admitted(f, 2, false));
	open_gate(f, 0);
}

static void a_full_queue_refuses_only_when_it_blocks_or_no_other_has_room(void **state)
{
	struct fixture *f = *state;
	assert_true(admitted(f, 1, false));
	assert_true(admitted(f, 2, false));
	assert_false(admitted(f, 1, true));
	assert_false(admitted(f, 2, true));
	open_gate(f, 0);
}

static void deduplicate(struct fixture *f)
{
	f->deduplicate = (struct duplicates_config){ { true }, { INT64_C(3600000000000) }, 100 };
	f->duplicates = duplicates_new(&f->deduplicate, &f->budget, f->metrics, "fake");
}

static struct fake keyed_request(const char *key)
{
	static struct metadatum headers[2][2] = { { { "idempotency-key", "\"0123456789abcdef\"" } },
						  { { "idempotency-key", "another-key-of-16" } } };
	struct fake fake = fake_request(100);
	fake.in.headers = headers[!strcmp(key, "another")];
	return fake;
}

static void run_again(struct fixture *f, struct fake *fake)
{
	f->workers = start_workers(f);
	run(f, fake);
}

#define IN "otelcol_ledger_receiver_in_samples{receiver=\"fake\"} "
#define DUPLICATE "otelcol_ledger_receiver_dropped_samples{reason=\"duplicate\",receiver=\"fake\"} "

static void a_repeated_request_is_answered_as_the_first_and_not_processed(void **state)
{
	struct fixture *f = *state;
	struct fake first = keyed_request("one"), second = first, other = keyed_request("another");
	first.bad = 3;
	deduplicate(f);
	open_gate(f, 1);
	assert_true(gate_wants_headers(f->gate));
	run(f, &first);
	run_again(f, &second);
	assert_false(second.refused);
	assert_int_equal(second.rejected, 3);
	assert_string_equal(second.text, first.text);
	assert_int_equal(f->packets, 1);
	run_again(f, &other);
	assert_int_equal(f->packets, 2);
	assert_int_equal(read_metric(f, OUTCOME("duplicate")), 1);
	assert_int_equal(read_metric(f, OUTCOME("partial")), 1);
	assert_int_equal(read_metric(f, OUTCOME("success")), 1);
	assert_int_equal(read_metric(f, "otelcol_receiver_accepted_profile_samples" LABELS), 2);
	assert_int_equal(read_metric(f, "otelcol_receiver_duplicate_profile_samples" LABELS), 1);
	assert_int_equal(read_metric(f, IN), 9);
	assert_int_equal(read_metric(f, DUPLICATE), 1);
}

static void a_repetition_is_not_answered_before_the_first_request(void **state)
{
	struct fixture *f = *state;
	struct fake first = keyed_request("one"), early = first, late = first;
	f->hold = true;
	f->ack = ACK_DELIVERED;
	deduplicate(f);
	open_gate(f, 1);
	submit(f, &first);
	workers_stop(&f->workers);
	assert_false(first.replied);
	run_again(f, &early);
	assert_true(early.refused);
	assert_int_equal(early.kind, ERROR_BUSY);
	assert_true(early.retry_after_ms > 0);
	assert_int_equal(read_metric(f, REASON("in_progress")), 1);
	packet_release_acks(f->held, ACK_MODE_ANY, ACK_TAKEN);
	packet_unref(&f->held);
	assert_true(first.replied);
	run_again(f, &late);
	assert_false(late.refused);
	assert_int_equal(f->packets, 1);
	assert_int_equal(read_metric(f, OUTCOME("duplicate")), 1);
}

static void a_request_that_was_refused_may_come_again(void **state)
{
	struct fixture *f = *state;
	struct fake first = keyed_request("one"), second = first, third = first;
	first.fails = ERROR_INVALID;
	deduplicate(f);
	open_gate(f, 1);
	run(f, &first);
	assert_true(first.refused);
	f->full = true;
	run_again(f, &second);
	assert_true(second.refused);
	f->full = false;
	run_again(f, &third);
	assert_false(third.refused);
	assert_int_equal(f->packets, 2); /* one of them found no room */
	assert_int_equal(read_metric(f, OUTCOME("duplicate")), 0);
}

static void a_request_that_a_destination_did_not_accept_may_come_again(void **state)
{
	struct fixture *f = *state;
	struct fake first = keyed_request("one"), second = first;
	f->hold = true;
	f->ack = ACK_DELIVERED;
	deduplicate(f);
	open_gate(f, 1);
	submit(f, &first);
	workers_stop(&f->workers);
	packet_release_acks(f->held, ACK_MODE_ANY, ACK_FAILED);
	packet_unref(&f->held);
	assert_true(first.refused);
	f->workers = start_workers(f);
	submit(f, &second);
	workers_stop(&f->workers);
	assert_int_equal(f->packets, 2);
	packet_release_acks(f->held, ACK_MODE_ANY, ACK_TAKEN);
	packet_unref(&f->held);
	assert_false(second.refused);
}

static void without_deduplicate_a_key_means_nothing(void **state)
{
	struct fixture *f = *state;
	struct fake first = keyed_request("one"), second = first;
	open_gate(f, 1);
	assert_false(gate_wants_headers(f->gate));
	run(f, &first);
	run_again(f, &second);
	assert_int_equal(f->packets, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_request_is_answered_after_it_was_taken),
		TEST(a_request_goes_through_every_pipeline_of_its_receiver),
		TEST(a_request_that_only_one_of_two_pipelines_took_is_counted),
		TEST(what_cannot_be_decoded_is_told_and_nothing_leaves),
		TEST(bad_profiles_are_told_beside_success),
		TEST(a_body_that_leaves_no_room_for_tables_is_refused_with_a_retry_hint),
		TEST(a_closed_gate_refuses),
		TEST(what_no_destination_takes_is_refused_with_a_retry_hint),
		TEST(every_request_is_counted_once),
		TEST(a_sender_that_waits_holds_no_memory_of_tables),
		TEST(a_sender_that_waits_is_not_called_back_in_vain),
		TEST(room_at_a_best_effort_destination_admits_nothing),
		TEST(a_full_queue_refuses_senders_that_wait_for_every_destination),
		TEST(a_repeated_request_is_answered_as_the_first_and_not_processed),
		TEST(a_repetition_is_not_answered_before_the_first_request),
		TEST(a_request_that_was_refused_may_come_again),
		TEST(a_request_that_a_destination_did_not_accept_may_come_again),
		TEST(without_deduplicate_a_key_means_nothing),
		TEST(a_full_queue_refuses_only_when_it_blocks_or_no_other_has_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
