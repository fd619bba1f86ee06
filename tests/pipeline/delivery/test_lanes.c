/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "tests/pipeline/delivery/durable_fixture.h"
#include "tests/pipeline/delivery/lanes_fixture.h"

static void each_member_gets_what_is_for_it(void **state)
{
	struct fixture *f = *state;
	begin(f);
	fill(f, 10);
	assert_true(enqueue(f, 2));
	run_while_not(f, nothing_waits);
	assert_int_equal(members.samples[1], 32);
	assert_int_equal(members.samples[2], 30);
	assert_int_equal(members.samples[3], 30);
	assert_int_equal(read_metric(f, OUT), 92);
	assert_int_equal(read_metric(f, HELD), 0);
	end(f);
}

static void a_member_that_fails_delays_only_its_own(void **state)
{
	struct fixture *f = *state;
	begin(f);
	members.fails[2] = true;
	fill(f, 10);
	run_while_not(f, others_have_all);
	assert_int_equal(read_metric(f, QUEUED), 30);
	assert_int_equal(delivery_circuit(f->delivery) != CIRCUIT_CLOSED, 1);
	members.fails[2] = false;
	run_while_not(f, nothing_waits);
	assert_int_equal(members.samples[2], 30);
	assert_int_equal(read_metric(f, OUT), 90);
	end(f);
}

static bool others_have_more(struct fixture *f)
{
	(void)f;
	return others() == 66;
}

static void what_others_accept_counts_while_a_member_fails(void **state)
{
	struct fixture *f = *state;
	begin(f);
	members.fails[2] = true;
	fill(f, 10);
	run_while_not(f, others_have_all);
	uint64_t before = f->delivery->outage.succeeded_at;
	assert_true(enqueue(f, 9));
	run_while_not(f, others_have_more);
	assert_true(f->delivery->outage.succeeded_at > before);
	assert_true(f->delivery->outage.failing);
	members.fails[2] = false;
	run_while_not(f, nothing_waits);
	assert_false(f->delivery->outage.failing);
	end(f);
}

static void what_waits_for_a_member_that_has_left_goes_to_others(void **state)
{
	struct fixture *f = *state;
	begin(f);
	members.fails[2] = true;
	fill(f, 10);
	run_while_not(f, others_have_all);
	members.absent[2] = true;
	run_while_not(f, nothing_waits);
	assert_int_equal(members.samples[2], 0);
	assert_int_equal(others(), 90);
	assert_int_equal(read_metric(f, OUT), 90);
	end(f);
}

static void what_a_member_refuses_as_it_leaves_is_split_for_others(void **state)
{
	struct fixture *f = *state;
	begin(f);
	members.halves = true;
	assert_true(enqueue(f, 12));
	run_while_not(f, nothing_waits);
	assert_int_equal(members.samples[1], 4 + 2);
	assert_int_equal(members.samples[2], 2);
	assert_int_equal(members.samples[3], 4);
	assert_int_equal(read_metric(f, OUT), 12);
	end(f);
}

#define UP "otelcol_exporter_up{exporter=\"fake\"} "

static bool works(struct fixture *f)
{
	return read_metric(f, UP) == 1;
}

static void a_member_that_has_left_is_no_failure(void **state)
{
	struct fixture *f = *state;
	begin(f);
	members.refuses[2] = true;
	fill(f, 1);
	run_while_not(f, nothing_waits);
	assert_false(works(f));
	members.absent[2] = true;
	fill(f, 1);
	run_while_not(f, works);
	end(f);
}

#define AGE "otelcol_exporter_oldest_packet_age_seconds{exporter=\"fake\"} "

static bool two_members_have_theirs(struct fixture *f)
{
	(void)f;
	return others() == 6 && members.attempts[2] > 3;
}

static void what_waits_for_a_member_has_an_age(void **state)
{
	struct fixture *f = *state;
	begin(f);
	members.fails[2] = true;
	struct packet *packet = packet_new(10, 0);
	packet->samples = 9;
	packet->oldest_arrival = clock_now() - 60 * UINT64_C(1000000000);
	assert_true(hand_over(f->ledger, f->delivery, packet, ENTRY_IF_FITS));
	packet_unref(&packet);
	run_while_not(f, two_members_have_theirs);
	assert_true(read_metric(f, AGE) >= 60);
	members.fails[2] = false;
	run_while_not(f, nothing_waits);
	end(f);
}

static bool was_tried(struct fixture *f)
{
	(void)f;
	return members.attempts[0] > 3;
}

static void without_members_everything_waits(void **state)
{
	struct fixture *f = *state;
	begin(f);
	set_absent(true);
	fill(f, 10);
	run_while_not(f, was_tried);
	assert_int_equal(read_metric(f, QUEUED), 90);
	set_absent(false);
	run_while_not(f, nothing_waits);
	assert_int_equal(read_metric(f, OUT), 90);
	end(f);
}

static bool is_avoided(struct fixture *f)
{
	if (members.avoided)
		return true;
	enqueue(f, 9);
	return false;
}

/* A third of what is left for all: a quarter, if it is the only one. */
static void too_much_for_one_member_is_reported_to_the_plan(void **state)
{
	struct fixture *f = *state;
	f->config.sending_queue.queue_size = 40;
	begin(f);
	members.fails[2] = true;
	run_while_not(f, is_avoided);
	assert_in_range(read_metric(f, QUEUED), 3 * 10, 3 * 16);
	members.fails[2] = false;
	run_while_not(f, nothing_waits);
	members.avoided = false;
	assert_true(enqueue(f, 9));
	run_while_not(f, nothing_waits);
	assert_false(members.avoided);
	end(f);
}

static void the_end_drops_what_one_member_did_not_accept(void **state)
{
	struct fixture *f = *state;
	begin(f);
	members.fails[2] = true;
	fill(f, 10);
	run_while_not(f, others_have_all);
	end(f);
	assert_int_equal(read_metric(f, OUT), 60);
	assert_int_equal(read_metric(f, DROPPED("shutdown")), 30);
}

static int looks;

static bool a_while_has_passed(struct fixture *f)
{
	(void)f;
	return ++looks % 100 == 0;
}

static void a_kill_holds_what_waits_for_members(void **state)
{
	struct fixture *f = *state;
	begin(f);
	members.fails[2] = true;
	fill(f, 10);
	run_while_not(f, others_have_all);
	delivery_set_kill(f->delivery, DELIVERY_HOLDS);
	members.fails[2] = false;
	fill(f, 1);
	run_while_not(f, a_while_has_passed);
	assert_int_equal(members.samples[2], 0);
	delivery_set_kill(f->delivery, DELIVERY_ALIVE);
	run_while_not(f, nothing_waits);
	assert_int_equal(read_metric(f, OUT), 99);
	end(f);
}

static void a_kill_discards_what_waits_for_members(void **state)
{
	struct fixture *f = *state;
	begin(f);
	members.fails[2] = true;
	fill(f, 10);
	run_while_not(f, others_have_all);
	delivery_set_kill(f->delivery, DELIVERY_DISCARDS);
	run_while_not(f, nothing_waits);
	assert_int_equal(read_metric(f, DROPPED("killed")), 30);
	end(f);
}

/* ---- senders */

static struct ack ack;
static _Atomic int acks_done;
static enum ack_outcome acked;

static void note_ack(struct ack *a, enum ack_outcome outcome)
{
	(void)a;
	acked = outcome;
	acks_done++;
}

static void enqueue_waiting(struct fixture *f, uint32_t senders)
{
	acks_done = 0;
	ack_init(&ack, ACK_DELIVERED, note_ack);
	struct packet *packet = packet_new(10, senders);
	packet->otlp.len = 10;
	packet->samples = 9;
	packet->contributions[0] = (struct contribution){ .ack = &ack, .mode = ACK_DELIVERED };
	assert_true(hand_over(f->ledger, f->delivery, packet, ENTRY_IF_FITS));
	packet_release_acks(packet, ACK_MODE_ANY, ACK_TAKEN); /* the fan-out is done */
	packet_unref(&packet);
}

static bool is_answered(struct fixture *f)
{
	(void)f;
	return acks_done > 0;
}

static void senders_are_answered_when_the_last_member_has_its_part(void **state)
{
	struct fixture *f = *state;
	begin(f);
	members.fails[2] = true;
	enqueue_waiting(f, 1);
	run_while_not(f, two_members_have_theirs);
	assert_int_equal(acks_done, 0);
	members.fails[2] = false;
	run_while_not(f, is_answered);
	assert_int_equal(acked, ACK_TAKEN);
	end(f);
	assert_int_equal(acks_done, 1);
}

static void senders_learn_what_one_member_has_refused(void **state)
{
	struct fixture *f = *state;
	begin(f);
	members.refuses[3] = true;
	enqueue_waiting(f, 1);
	run_while_not(f, is_answered);
	assert_int_equal(acked, ACK_REFUSED);
	run_while_not(f, nothing_waits);
	assert_int_equal(read_metric(f, OUT), 6);
	end(f);
}

static void senders_of_divided_packets_can_be_released(void **state)
{
	struct fixture *f = *state;
	begin(f);
	members.fails[2] = true;
	enqueue_waiting(f, 2);
	run_while_not(f, two_members_have_theirs);
	delivery_release_senders(f->delivery);
	delivery_release_senders(f->delivery);
	assert_int_equal(acks_done, 1);
	assert_int_equal(acked, ACK_FAILED);
	members.fails[2] = false;
	run_while_not(f, nothing_waits);
	assert_int_equal(read_metric(f, OUT), 9);
	end(f);
	assert_int_equal(acks_done, 1);
}

/* ---- on disk */

static int setup_durable_members(void **state)
{
	setup_durable(state);
	reset(*state);
	return 0;
}

/* A record is removed a little later than its packet has ended. */
static bool nothing_is_stored(struct fixture *f)
{
	return nothing_waits(f) && read_metric(f, USED) == 0;
}

/* The whole packet has a record; what the others have accepted is sent to them again. */
static void what_waits_for_a_member_is_on_disk_after_the_end(void **state)
{
	struct fixture *f = *state;
	start(f);
	members.fails[2] = true;
	fill(f, 10);
	run_while_not(f, others_have_all);
	end(f);
	assert_int_equal(read_metric(f, DROPPED("shutdown")), 0);
	assert_int_equal(read_metric(f, OUT), 60);
	members.fails[2] = false;
	members.absent[1] = true;
	restart(f);
	assert_int_equal(read_metric(f, RESTORED), 90);
	run_while_not(f, nothing_is_stored);
	assert_int_equal(read_metric(f, OUT), 90);
	assert_true(members.samples[2] >= 30);
	end(f);
}

static void what_all_members_have_leaves_the_disk(void **state)
{
	struct fixture *f = *state;
	start(f);
	fill(f, 10);
	assert_true(enqueue(f, 2));
	run_while_not(f, nothing_waits);
	end(f);
	assert_int_equal(read_metric(f, OUT), 92);
	restart(f);
	assert_int_equal(read_metric(f, RESTORED), 0);
	end(f);
}

#define DURABLE_TEST(name) \
	cmocka_unit_test_setup_teardown(name, setup_durable_members, teardown_durable)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MEMBERS_TEST(each_member_gets_what_is_for_it),
		MEMBERS_TEST(a_member_that_fails_delays_only_its_own),
		MEMBERS_TEST(what_others_accept_counts_while_a_member_fails),
		MEMBERS_TEST(what_waits_for_a_member_that_has_left_goes_to_others),
		MEMBERS_TEST(what_a_member_refuses_as_it_leaves_is_split_for_others),
		MEMBERS_TEST(a_member_that_has_left_is_no_failure),
		MEMBERS_TEST(what_waits_for_a_member_has_an_age),
		MEMBERS_TEST(without_members_everything_waits),
		MEMBERS_TEST(too_much_for_one_member_is_reported_to_the_plan),
		MEMBERS_TEST(the_end_drops_what_one_member_did_not_accept),
		MEMBERS_TEST(a_kill_holds_what_waits_for_members),
		MEMBERS_TEST(a_kill_discards_what_waits_for_members),
		MEMBERS_TEST(senders_are_answered_when_the_last_member_has_its_part),
		MEMBERS_TEST(senders_learn_what_one_member_has_refused),
		MEMBERS_TEST(senders_of_divided_packets_can_be_released),
		DURABLE_TEST(what_waits_for_a_member_is_on_disk_after_the_end),
		DURABLE_TEST(what_all_members_have_leaves_the_disk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
