/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "tests/pipeline/delivery/durable_fixture.h"

/* A destination of three members: what one of them does concerns only what is for it. A packet of
 * nine samples has three for each member; a smaller one is for the first member alone. */
enum { MEMBERS = 3 };

static struct {
	_Atomic bool absent[MEMBERS + 1], fails[MEMBERS + 1], refuses[MEMBERS + 1];
	_Atomic int samples[MEMBERS + 1]; /* that it has accepted */
	_Atomic int attempts[MEMBERS + 1];
	_Atomic bool avoided; /* a plan had to avoid the second one */
	/* The second one gets two parts, and leaves when it has refused the second of these as too
	 * large. */
	_Atomic bool halves;
	_Atomic bool holds; /* the next request to the second one gets no answer */
	_Atomic bool joins; /* while a plan finds no member, all join */
	struct sending *_Atomic held;
	void (*changed)(void *context);
	void *context;
} members;

static uint32_t lanes(void *self)
{
	(void)self;
	return MEMBERS;
}

static bool serves(void *self, uint32_t member)
{
	(void)self;
	return !members.absent[member];
}

static uint32_t count(void *self)
{
	uint32_t present = 0;
	for (uint32_t i = 1; i <= MEMBERS; i++)
		present += serves(self, i);
	return present;
}

static void watch(void *self, void (*changed)(void *context), void *context)
{
	(void)self;
	members.changed = changed;
	members.context = context;
}

static const struct member_ops member_ops = {
	.lanes = lanes, .count = count, .serves = serves, .watch = watch
};

/* The next member after one that has left. */
static uint32_t present(uint32_t member)
{
	for (uint32_t i = 0; i < MEMBERS; i++, member = member % MEMBERS + 1)
		if (!members.absent[member])
			return member;
	return 0;
}

static void add_part(const struct part *whole, uint32_t member, uint64_t samples,
		     struct parts *parts)
{
	struct packet *packet = packet_new(10, 0);
	packet->otlp.len = 10;
	packet->samples = samples;
	packet->oldest_arrival = whole->packet->oldest_arrival;
	parts_add(parts, packet, samples, 0);
	parts->at[parts->count - 1].group = present(member);
}

/* Both are large enough to be split again. */
static void add_halves(const struct part *whole, struct parts *parts)
{
	for (int i = 0; i < 2; i++) {
		add_part(whole, 2, whole->samples / 2, parts);
		parts->at[parts->count - 1].bytes = whole->samples * 10000;
	}
}

static bool plan(void *self, const struct part *whole, const struct limits *limits,
		 struct parts *parts, struct error *err)
{
	(void)self;
	(void)err;
	for (const uint32_t *a = limits->avoided; a && *a; a++)
		members.avoided = members.avoided || *a == 2;
	if (whole->samples >= MEMBERS && !whole->group && present(1)) {
		for (uint32_t i = 1; i <= MEMBERS; i++)
			add_part(whole, i, whole->samples / MEMBERS, parts);
		return true;
	}
	if (members.halves && whole->group == 2 && whole->samples > 1) {
		add_halves(whole, parts);
		return true;
	}
	parts_add(parts, packet_ref(whole->packet), whole->samples, 0);
	parts->at[parts->count - 1].group = whole->group ? whole->group : present(1);
	return true;
}

static void set_absent(bool absent)
{
	for (int i = 1; i <= MEMBERS; i++)
		members.absent[i] = absent;
}

static void send_to_member(void *self, const struct part *part, uint64_t timeout_ns,
			   struct sending *sending)
{
	struct send_result result = { .outcome = SEND_OK, .retry_after_ms = -1, .reason = "down" };
	uint32_t member = part->group;
	(void)timeout_ns;
	members.attempts[member]++;
	if (member == 2 && atomic_exchange(&members.holds, false)) {
		members.held = sending;
		return;
	}
	if (!member && atomic_exchange(&members.joins, false)) {
		set_absent(false);
		loop_call((*(struct fixture **)self)->loop, members.changed, members.context);
	}
	if (members.halves && member == 2 && members.samples[2]) {
		members.absent[2] = true;
		result.outcome = SEND_TOO_LARGE;
	} else if (!member || members.fails[member] || members.absent[member])
		result.outcome = SEND_RETRY;
	else if (members.refuses[member])
		result.outcome = SEND_PERMANENT;
	else
		members.samples[member] += (int)part->samples;
	sending_done(sending, &result);
}

static void reset(struct fixture *f)
{
	memset(&members, 0, sizeof members);
	f->ops = (struct exporter_ops){ .plan = plan, .members = &member_ops };
	f->ops.send = send_to_member;
	f->config.sending_queue.queue_size = 1000;
}

static int setup_members(void **state)
{
	setup(state);
	reset(*state);
	return 0;
}

static int setup_durable_members(void **state)
{
	setup_durable(state);
	reset(*state);
	return 0;
}

/* ---- running: the loop runs until the condition is true */

static struct {
	struct fixture *f;
	bool (*is_true)(struct fixture *f);
	struct loop_timer *timer;
} awaited;

static void look_again(void *argument)
{
	(void)argument;
	if (awaited.is_true(awaited.f))
		loop_stop(awaited.f->loop);
	else
		loop_timer_start(awaited.timer, 200000);
}

static void run_while_not(struct fixture *f, bool (*is_true)(struct fixture *f))
{
	awaited.f = f;
	awaited.is_true = is_true;
	awaited.timer = loop_timer_new(f->loop, look_again, NULL);
	loop_timer_start(awaited.timer, 200000);
	loop_run(f->loop);
	loop_timer_unref(&awaited.timer);
}

static void end(struct fixture *f)
{
	drain(f);
	loop_run(f->loop);
}

static int others(void)
{
	return members.samples[1] + members.samples[3];
}

static bool others_have_all(struct fixture *f)
{
	(void)f;
	return others() == 60 && members.attempts[2] > 3;
}

static bool nothing_waits(struct fixture *f)
{
	return read_metric(f, QUEUED) == 0;
}

static void fill(struct fixture *f, int packets)
{
	for (int i = 0; i < packets; i++)
		assert_true(enqueue(f, 9));
}

/* ---- tests */

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

/* ---- changes of the members: retries are an hour away, so that nothing else moves anything */

static void begin_patiently(struct fixture *f, uint32_t consumers)
{
	const struct duration hour = { INT64_C(3600000000000) };
	f->config.retry_on_failure.initial_interval = hour;
	f->config.retry_on_failure.max_interval = hour;
	f->config.sending_queue.num_consumers = consumers;
	begin(f);
}

static bool each_has_failed(struct fixture *f)
{
	return others() == 60 && members.attempts[2] == f->config.sending_queue.num_consumers;
}

static bool circuit_is_open(struct fixture *f)
{
	return others() == 60 && delivery_circuit(f->delivery) == CIRCUIT_OPEN;
}

/* With more packets for the second member than it has consumers. */
static void leaves(struct fixture *f, uint32_t consumers, bool (*all_wait)(struct fixture *f))
{
	begin_patiently(f, consumers);
	members.fails[2] = true;
	fill(f, 10);
	run_while_not(f, all_wait);
	members.absent[2] = true;
	members.changed(members.context);
	run_while_not(f, nothing_waits);
	assert_int_equal(members.samples[2], 0);
	assert_int_equal(others(), 90);
	assert_int_equal(read_metric(f, OUT), 90);
	assert_int_equal(delivery_circuit(f->delivery), CIRCUIT_CLOSED);
	end(f);
}

static void retries_move_when_their_member_leaves(void **state)
{
	leaves(*state, 2, each_has_failed);
}

static void the_line_of_the_circuit_moves_when_its_member_leaves(void **state)
{
	leaves(*state, 6, circuit_is_open);
}

static bool is_held(struct fixture *f)
{
	(void)f;
	return others() == 6 && members.held;
}

static void answer(enum send_outcome outcome)
{
	sending_done(members.held, &(struct send_result){ .outcome = outcome,
							  .retry_after_ms = -1,
							  .reason = "down" });
}

static void what_is_in_flight_to_a_member_that_leaves_moves_when_it_fails(void **state)
{
	struct fixture *f = *state;
	begin_patiently(f, 2);
	members.holds = true;
	fill(f, 1);
	run_while_not(f, is_held);
	members.absent[2] = true;
	members.changed(members.context);
	assert_int_equal(read_metric(f, QUEUED), 3);
	answer(SEND_RETRY);
	run_while_not(f, nothing_waits);
	assert_int_equal(others(), 9);
	assert_int_equal(read_metric(f, OUT), 9);
	end(f);
}

static void what_is_in_flight_to_a_member_that_leaves_may_be_accepted(void **state)
{
	struct fixture *f = *state;
	begin_patiently(f, 2);
	members.holds = true;
	fill(f, 1);
	run_while_not(f, is_held);
	members.absent[2] = true;
	members.changed(members.context);
	answer(SEND_OK);
	run_while_not(f, nothing_waits);
	assert_int_equal(others(), 6);
	assert_int_equal(read_metric(f, OUT), 9);
	end(f);
}

static bool found_none(struct fixture *f)
{
	return members.attempts[0] == f->config.sending_queue.num_consumers;
}

static void what_waits_for_the_first_member_moves_when_it_joins(void **state)
{
	struct fixture *f = *state;
	begin_patiently(f, 2);
	set_absent(true);
	fill(f, 10);
	run_while_not(f, found_none);
	set_absent(false);
	members.changed(members.context);
	run_while_not(f, nothing_waits);
	assert_int_equal(read_metric(f, OUT), 90);
	end(f);
}

/* A plan may have found none shortly before. */
static void what_has_just_found_no_member_does_not_wait(void **state)
{
	struct fixture *f = *state;
	begin_patiently(f, 2);
	set_absent(true);
	members.joins = true;
	fill(f, 1);
	run_while_not(f, nothing_waits);
	assert_int_equal(members.attempts[0], 1);
	assert_int_equal(read_metric(f, OUT), 9);
	end(f);
}

/* ---- much for one member */

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

#define MEMBERS_TEST(name) cmocka_unit_test_setup_teardown(name, setup_members, teardown)
#define DURABLE_TEST(name) \
	cmocka_unit_test_setup_teardown(name, setup_durable_members, teardown_durable)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MEMBERS_TEST(each_member_gets_what_is_for_it),
		MEMBERS_TEST(a_member_that_fails_delays_only_its_own),
		MEMBERS_TEST(what_waits_for_a_member_that_has_left_goes_to_others),
		MEMBERS_TEST(what_a_member_refuses_as_it_leaves_is_split_for_others),
		MEMBERS_TEST(a_member_that_has_left_is_no_failure),
		MEMBERS_TEST(what_waits_for_a_member_has_an_age),
		MEMBERS_TEST(without_members_everything_waits),
		MEMBERS_TEST(retries_move_when_their_member_leaves),
		MEMBERS_TEST(the_line_of_the_circuit_moves_when_its_member_leaves),
		MEMBERS_TEST(what_is_in_flight_to_a_member_that_leaves_moves_when_it_fails),
		MEMBERS_TEST(what_is_in_flight_to_a_member_that_leaves_may_be_accepted),
		MEMBERS_TEST(what_waits_for_the_first_member_moves_when_it_joins),
		MEMBERS_TEST(what_has_just_found_no_member_does_not_wait),
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
