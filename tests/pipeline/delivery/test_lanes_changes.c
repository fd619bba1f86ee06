/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/pipeline/delivery/lanes_fixture.h"

/* What becomes of what waits when members leave or join. Retries are an hour away, so that nothing
 * else moves anything. */

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

static void leaves_before_its_answer(struct fixture *f)
{
	begin_patiently(f, 2);
	members.holds = true;
	fill(f, 1);
	run_while_not(f, is_held);
	members.absent[2] = true;
	members.changed(members.context);
}

static void what_is_in_flight_to_a_member_that_leaves_moves_when_it_fails(void **state)
{
	struct fixture *f = *state;
	leaves_before_its_answer(f);
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
	leaves_before_its_answer(f);
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

/* Another member has the place, and the lane, of the second one now. */
enum { SECOND = 2, SUCCESSOR = SECOND + MEMBERS };

static void succeed_second(void)
{
	members.absent[SUCCESSOR] = false;
	members.absent[SECOND] = true;
	members.changed(members.context);
}

static bool successor_is_down(struct fixture *f)
{
	return others() == 24 && delivery_circuit(f->delivery) == CIRCUIT_OPEN;
}

static bool stray_was_divided(struct fixture *f)
{
	(void)f;
	return others() == 26;
}

static void a_stray_says_nothing_about_the_member_that_has_its_lane(void **state)
{
	struct fixture *f = *state;
	begin_patiently(f, 6);
	members.holds = true;
	fill(f, 1);
	run_while_not(f, is_held);
	members.fails[SUCCESSOR] = true;
	succeed_second();
	fill(f, 3);
	run_while_not(f, successor_is_down);
	answer(SEND_RETRY);
	run_while_not(f, stray_was_divided);
	assert_int_equal(delivery_circuit(f->delivery), CIRCUIT_OPEN);
	assert_int_equal(members.attempts[SUCCESSOR], 3);
	members.absent[SUCCESSOR] = true;
	members.changed(members.context);
	run_while_not(f, nothing_waits);
	assert_int_equal(read_metric(f, OUT), 36);
	end(f);
}

/* As many failures as open a circuit: what came later would wait in line. */
enum { FAILURES = 3 };

static bool second_has_lost_all(struct fixture *f)
{
	return others() == FAILURES * 6 && !read_metric(f, QUEUED);
}

static void a_member_does_not_inherit_a_circuit(void **state)
{
	struct fixture *f = *state;
	f->config.retry_on_failure.max_elapsed_time = (struct duration){ 1 };
	members.fails[SECOND] = true;
	begin_patiently(f, 6);
	fill(f, FAILURES);
	run_while_not(f, second_has_lost_all);
	assert_int_equal(delivery_circuit(f->delivery), CIRCUIT_OPEN);
	succeed_second();
	fill(f, 1);
	run_while_not(f, nothing_waits);
	assert_int_equal(members.samples[SUCCESSOR], 3);
	end(f);
}

/* ---- retry_on_failure is disabled: what was not sent is no failure */

static void begin_without_retries(struct fixture *f)
{
	f->config.retry_on_failure.present.enabled = false;
	begin_patiently(f, 2);
}

static void what_found_no_member_waits_without_retries(void **state)
{
	struct fixture *f = *state;
	set_absent(true);
	begin_without_retries(f);
	fill(f, 10);
	run_while_not(f, found_none);
	assert_int_equal(read_metric(f, QUEUED), 90);
	set_absent(false);
	members.changed(members.context);
	run_while_not(f, nothing_waits);
	assert_int_equal(read_metric(f, OUT), 90);
	end(f);
}

static void what_was_not_sent_to_a_member_that_leaves_moves_without_retries(void **state)
{
	struct fixture *f = *state;
	members.leaves = true;
	begin_without_retries(f);
	fill(f, 1);
	run_while_not(f, nothing_waits);
	assert_int_equal(members.attempts[2], 1);
	assert_int_equal(others(), 9);
	assert_int_equal(read_metric(f, OUT), 9);
	end(f);
}

static void what_was_sent_to_a_member_that_leaves_is_dropped_without_retries(void **state)
{
	struct fixture *f = *state;
	f->config.retry_on_failure.present.enabled = false;
	leaves_before_its_answer(f);
	answer(SEND_RETRY);
	run_while_not(f, nothing_waits);
	assert_int_equal(others(), 6);
	assert_int_equal(read_metric(f, OUT), 6);
	end(f);
}

static void what_finds_no_member_waits_no_longer_than_retries_would(void **state)
{
	struct fixture *f = *state;
	set_absent(true);
	f->config.retry_on_failure.max_elapsed_time = (struct duration){ 1 };
	begin_without_retries(f);
	fill(f, 2);
	run_while_not(f, nothing_waits);
	assert_int_equal(read_metric(f, OUT), 0);
	end(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MEMBERS_TEST(retries_move_when_their_member_leaves),
		MEMBERS_TEST(the_line_of_the_circuit_moves_when_its_member_leaves),
		MEMBERS_TEST(what_is_in_flight_to_a_member_that_leaves_moves_when_it_fails),
		MEMBERS_TEST(what_is_in_flight_to_a_member_that_leaves_may_be_accepted),
		MEMBERS_TEST(what_waits_for_the_first_member_moves_when_it_joins),
		MEMBERS_TEST(what_has_just_found_no_member_does_not_wait),
		MEMBERS_TEST(a_stray_says_nothing_about_the_member_that_has_its_lane),
		MEMBERS_TEST(a_member_does_not_inherit_a_circuit),
		MEMBERS_TEST(what_found_no_member_waits_without_retries),
		MEMBERS_TEST(what_was_not_sent_to_a_member_that_leaves_moves_without_retries),
		MEMBERS_TEST(what_was_sent_to_a_member_that_leaves_is_dropped_without_retries),
		MEMBERS_TEST(what_finds_no_member_waits_no_longer_than_retries_would),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
