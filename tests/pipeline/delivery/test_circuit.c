/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/pipeline/delivery/delivery_fixture.h"

#include "base/clock.h"
#include "pipeline/delivery/circuit.h"

/* The circuit alone: places enter, and their attempts end as the test says. */
enum { PLACES = 8 };

static struct rig {
	struct loop *loop;
	struct metrics *metrics;
	struct retry_config retry;
	struct circuit circuit;
	struct circuit_place places[PLACES];
	bool started[PLACES]; /* after it waited in line */
	bool expired[PLACES];
} rig;

static void note_start(struct circuit_place *place)
{
	rig.started[place - rig.places] = true;
}

static void note_expired(struct circuit_place *place)
{
	rig.expired[place - rig.places] = true;
}

static int set_up(void **state)
{
	static const struct metric gauge = { "test_state", METRIC_GAUGE, "{state}", "State." };
	(void)state;
	memset(&rig, 0, sizeof rig);
	for (int i = 0; i < PLACES; i++)
		rig.places[i].deadline = UINT64_MAX;
	rig.loop = loop_new(NULL);
	rig.metrics = metrics_new();
	rig.retry = (struct retry_config){ .present = { true },
					   .initial_interval = { 20000000 },
					   .max_interval = { 40000000 },
					   .multiplier = 2 };
	circuit_init(&rig.circuit, &(struct circuit_options){
					   .retry = &rig.retry,
					   .consumers = 4,
					   .loop = rig.loop,
					   .gauge = metrics_series(rig.metrics, &gauge, NULL),
					   .start = note_start,
					   .expired = note_expired,
				   });
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	circuit_bypass(&rig.circuit, true);
	circuit_fini(&rig.circuit);
	loop_unref(&rig.loop);
	metrics_unref(&rig.metrics);
	return 0;
}

static bool enter(int place)
{
	return circuit_enter(&rig.circuit, &rig.places[place]);
}

static bool breaks(int place, int64_t asked_ms)
{
	enum circuit_outcome outcome = circuit_fail(&rig.circuit, &rig.places[place], asked_ms);
	assert_int_not_equal(outcome, CIRCUIT_EXPIRED);
	return outcome == CIRCUIT_WAITS;
}

static void answer(int place)
{
	circuit_leave(&rig.circuit, &rig.places[place], true);
}

static bool started(int place)
{
	bool was = rig.started[place];
	rig.started[place] = false;
	return was;
}

static int started_count(void)
{
	int count = 0;
	for (int i = 0; i < PLACES; i++)
		count += started(i);
	return count;
}

static void stop_when_probed(void *argument)
{
	struct loop_timer **timer = argument;
	if (rig.circuit.state == CIRCUIT_OPEN)
		loop_timer_start(*timer, 1000000);
	else
		loop_stop(rig.loop);
}

/* Until the next probe is due. */
static void wait_for_probe(void)
{
	struct loop_timer *timer = NULL;
	timer = loop_timer_new(rig.loop, stop_when_probed, &timer);
	loop_timer_start(timer, 1000000);
	loop_run(rig.loop);
	loop_timer_unref(&timer);
}

/* Opens it with places 0 to 2 in line, in this order behind 2. */
static void open_it(void)
{
	for (int i = 0; i < 3; i++)
		assert_true(enter(i));
	assert_false(breaks(0, -1));
	assert_false(breaks(1, -1));
	assert_true(breaks(2, -1));
	assert_int_equal(rig.circuit.state, CIRCUIT_OPEN);
	assert_false(enter(0));
	assert_false(enter(1));
}

static void failures_in_a_row_open_it(void **state)
{
	(void)state;
	open_it();
	assert_int_equal(started_count(), 0);
}

static void an_answer_between_failures_keeps_it_closed(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++) {
		assert_true(enter(0));
		assert_true(enter(1));
		assert_false(breaks(0, -1));
		answer(1);
	}
	assert_int_equal(rig.circuit.state, CIRCUIT_CLOSED);
}

static void a_destination_that_names_a_delay_opens_it_at_once(void **state)
{
	(void)state;
	assert_true(enter(0));
	assert_true(breaks(0, 5000));
	assert_true(rig.circuit.probe_at > clock_now() + 4000000000U);
	/* an answer to an earlier request does not override what the destination has asked for */
	answer(1);
	assert_int_equal(rig.circuit.state, CIRCUIT_OPEN);
	assert_true(breaks(2, 9000));
	assert_true(rig.circuit.probe_at > clock_now() + 8000000000U);
}

static void one_probe_is_sent_at_a_time_and_each_time_another(void **state)
{
	static const int order[] = { 2, 0, 1, 3, 2, 0, 1, 3 };
	(void)state;
	open_it();
	assert_false(enter(3));
	for (int i = 0; i < 8; i++) {
		wait_for_probe();
		assert_true(started(order[i]));
		assert_int_equal(started_count(), 0);
		assert_true(breaks(order[i], -1));
	}
}

static void the_interval_grows_with_each_failed_probe_up_to_its_maximum(void **state)
{
	(void)state;
	open_it();
	assert_int_equal(rig.circuit.interval_ns, 20000000);
	wait_for_probe();
	assert_true(breaks(2, -1));
	assert_int_equal(rig.circuit.interval_ns, 40000000);
	wait_for_probe();
	assert_true(breaks(0, -1));
	assert_int_equal(rig.circuit.interval_ns, 40000000);
}

/* Five wait when the first probe is answered: two are sent, one more after each further answer, and
 * all when the number of consumers is reached. */
static void after_recovery_the_number_in_flight_increases_by_one_with_each_answer(void **state)
{
	(void)state;
	open_it();
	for (int i = 3; i < PLACES; i++)
		assert_false(enter(i));
	wait_for_probe();
	assert_true(started(2));
	answer(2);
	assert_int_equal(rig.circuit.state, CIRCUIT_HALF_OPEN);
	assert_int_equal(rig.circuit.allowed, 2);
	assert_true(started(0) && started(1));
	assert_int_equal(started_count(), 0);
	answer(0);
	assert_true(started(3) && started(4));
	assert_int_equal(started_count(), 0);
	assert_int_equal(rig.circuit.flying, 3);
	answer(1);
	assert_int_equal(rig.circuit.state, CIRCUIT_CLOSED);
	assert_int_equal(started_count(), 3);
	answer(3);
	assert_true(enter(0));
}

static void a_failure_during_recovery_opens_it_again(void **state)
{
	(void)state;
	open_it();
	wait_for_probe();
	answer(2);
	assert_true(started(0) && started(1));
	assert_true(breaks(0, -1));
	assert_int_equal(rig.circuit.state, CIRCUIT_OPEN);
	answer(1); /* sent before the failure */
	assert_int_equal(rig.circuit.state, CIRCUIT_OPEN);
	wait_for_probe();
	assert_true(started(0));
	answer(0);
	assert_int_equal(rig.circuit.state, CIRCUIT_HALF_OPEN);
}

/* The plan had nothing for it, for example. */
static void what_was_not_sent_is_no_answer_and_gives_its_place_to_the_next(void **state)
{
	(void)state;
	open_it();
	wait_for_probe();
	assert_true(started(2));
	circuit_leave(&rig.circuit, &rig.places[2], false);
	assert_int_equal(rig.circuit.state, CIRCUIT_HALF_OPEN);
	assert_int_equal(rig.circuit.allowed, 1);
	assert_true(started(0));
	assert_int_equal(started_count(), 0);
}

static void without_anything_in_line_the_next_arrival_is_the_probe(void **state)
{
	(void)state;
	assert_true(enter(0));
	assert_true(breaks(0, 1));
	wait_for_probe();
	assert_true(started(0));
	circuit_leave(&rig.circuit, &rig.places[0], false);
	assert_true(enter(1));
	assert_false(enter(2));
	answer(1);
	assert_true(started(2));
}

static void what_the_next_probe_would_be_too_late_for_leaves_the_line(void **state)
{
	(void)state;
	rig.places[1].deadline = clock_now() + 10000000;
	rig.places[3].deadline = clock_now() + 60000000000;
	assert_true(enter(0));
	assert_true(breaks(0, 1));
	assert_false(enter(1));
	assert_false(enter(3));
	assert_true(breaks(2, 1000));
	assert_true(rig.expired[1] && !rig.expired[3]);
	circuit_bypass(&rig.circuit, true);
	assert_true(started(0) && started(2) && started(3));
	assert_int_equal(started_count(), 0);
}

static void stop_when_expired(void *argument)
{
	struct loop_timer **timer = argument;
	if (rig.expired[1] && rig.expired[2])
		loop_stop(rig.loop);
	else
		loop_timer_start(*timer, 1000000);
}

/* The next probe would come in half an hour. */
static void a_place_that_enters_while_it_is_open_waits_until_its_deadline(void **state)
{
	struct loop_timer *timer = NULL;
	(void)state;
	assert_true(enter(0));
	assert_true(breaks(0, 1800000));
	rig.places[1].deadline = clock_now() + 3000000;
	rig.places[2].deadline = clock_now() + 1000000;
	rig.places[3].deadline = clock_now() + UINT64_C(60000000000);
	for (int i = 1; i <= 3; i++)
		assert_false(enter(i));
	timer = loop_timer_new(rig.loop, stop_when_expired, &timer);
	loop_timer_start(timer, 1000000);
	loop_run(rig.loop);
	loop_timer_unref(&timer);
	assert_true(clock_now() >= rig.places[1].deadline && !rig.expired[3]);
	assert_int_equal(rig.circuit.state, CIRCUIT_OPEN);
	assert_int_equal(started_count(), 0);
}

static void a_shutdown_bypasses_it(void **state)
{
	(void)state;
	open_it();
	circuit_bypass(&rig.circuit, true);
	assert_int_equal(started_count(), 3);
	assert_true(enter(4));
	assert_false(breaks(4, 1000)); /* it does not wait */
	circuit_bypass(&rig.circuit, false);
	assert_false(enter(4));
}

#define TEST_(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_(failures_in_a_row_open_it),
		TEST_(an_answer_between_failures_keeps_it_closed),
		TEST_(a_destination_that_names_a_delay_opens_it_at_once),
		TEST_(one_probe_is_sent_at_a_time_and_each_time_another),
		TEST_(the_interval_grows_with_each_failed_probe_up_to_its_maximum),
		TEST_(after_recovery_the_number_in_flight_increases_by_one_with_each_answer),
		TEST_(a_failure_during_recovery_opens_it_again),
		TEST_(what_was_not_sent_is_no_answer_and_gives_its_place_to_the_next),
		TEST_(without_anything_in_line_the_next_arrival_is_the_probe),
		TEST_(what_the_next_probe_would_be_too_late_for_leaves_the_line),
		TEST_(a_place_that_enters_while_it_is_open_waits_until_its_deadline),
		TEST_(a_shutdown_bypasses_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
