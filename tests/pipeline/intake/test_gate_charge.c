/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/pipeline/intake/gate_fixture.h"

/* The charges for requests and connections, and which of them are refused when memory is short. */

static void memory_is_refused_before_the_body_with_a_retry_hint(void **state)
{
	struct fixture *f = *state;
	struct fake fake = fake_request(0);
	struct error err;
	open_gate(f, 0);
	budget_add(&f->budget, 8 << 20);
	assert_false(gate_admit(f->gate, &fake.in, 1 << 20, &err));
	assert_int_equal(err.kind, ERROR_BUSY);
	assert_in_range(err.retry_after_ms, 1000, 2000);
	assert_int_equal(f->budget.charged, 8 << 20);
	budget_give(&f->budget, 8 << 20);
}

static void what_could_never_fit_is_refused_for_good(void **state)
{
	struct fixture *f = *state;
	struct fake headers = fake_request(0), unknown = fake_request(0),
		    body = fake_request((1 << 20) - 1);
	struct error err;
	open_gate(f, 0);
	assert_false(gate_admit(f->gate, &headers.in, 9 << 20, &err));
	assert_int_equal(err.kind, ERROR_TOO_LARGE);
	assert_true(gate_admit(f->gate, &unknown.in, 0, &err));
	assert_false(gate_charge(f->gate, &unknown.in, 9 << 20, &err));
	assert_int_equal(err.kind, ERROR_TOO_LARGE);
	gate_forget(f->gate, &unknown.in, REFUSAL_NONE);
	reopen_gate(f, 1);
	run(f, &body);
	assert_true(body.refused);
	assert_int_equal(body.kind, ERROR_TOO_LARGE);
	assert_int_equal(read_metric(f, REASON("too_large")), 3);
}

static void an_announced_body_costs_nothing_before_it_arrives(void **state)
{
	struct fixture *f = *state;
	struct fake fakes[100];
	struct error err;
	open_gate(f, 0);
	for (int i = 0; i < 100; i++) {
		fakes[i] = fake_request(0);
		fakes[i].in.overhead = 1000;
		assert_true(gate_admit(f->gate, &fakes[i].in, 3 << 20, &err));
	}
	assert_int_equal(f->budget.charged, 100 * (GATE_REQUEST_BYTES + 1000));
	for (int i = 0; i < 100; i++)
		gate_forget(f->gate, &fakes[i].in, REFUSAL_CANCELLED);
}

static void what_has_arrived_is_charged_until_it_is_forgotten(void **state)
{
	struct fixture *f = *state;
	struct fake fake = fake_request(0);
	struct error err;
	open_gate(f, 0);
	assert_true(gate_admit(f->gate, &fake.in, 2 << 20, &err));
	assert_true(gate_charge(f->gate, &fake.in, 2 << 20, &err));
	assert_int_equal(f->budget.charged, GATE_REQUEST_BYTES + (2 << 20));
	assert_true(gate_charge(f->gate, &fake.in, 1 << 20, &err));
	assert_int_equal(f->budget.charged, GATE_REQUEST_BYTES + (1 << 20));
	gate_forget(f->gate, &fake.in, REFUSAL_CANCELLED);
	assert_int_equal(f->budget.charged, 0);
}

static void a_body_is_charged_in_steps_up_to_its_announced_length(void **state)
{
	static const struct {
		size_t need, room;
	} steps[] = { { 1, 16384 },
		      { 16384, 16384 },
		      { 16385, 32768 },
		      { 40000, 65536 },
		      { 70000, 100000 } };
	struct fixture *f = *state;
	struct fake fake = fake_request(0);
	struct error err;
	size_t room = 0;
	open_gate(f, 0);
	assert_true(gate_admit(f->gate, &fake.in, 100000, &err));
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		assert_true(gate_grow(f->gate, &fake.in, steps[i].need, 100000, &room, &err));
		assert_int_equal(room, steps[i].room);
		assert_int_equal(fake.in.charged, GATE_REQUEST_BYTES + room);
	}
	gate_forget(f->gate, &fake.in, REFUSAL_CANCELLED);
}

static void a_body_that_cannot_be_doubled_grows_by_what_it_needs(void **state)
{
	struct fixture *f = *state;
	struct fake fake = fake_request(0);
	struct error err;
	size_t room = 0;
	open_gate(f, 0);
	assert_true(gate_admit(f->gate, &fake.in, 0, &err));
	assert_true(gate_grow(f->gate, &fake.in, 3 << 20, 4 << 20, &room, &err));
	assert_int_equal(room, 3 << 20);
	assert_false(gate_grow(f->gate, &fake.in, 4 << 20, 4 << 20, &room, &err));
	assert_int_equal(room, 3 << 20);
	assert_int_equal(fake.in.charged, GATE_REQUEST_BYTES + room);
	gate_forget(f->gate, &fake.in, REFUSAL_NONE);
}

static struct fake request_of(const char *peer)
{
	struct fake fake = fake_request(0);
	fake.in.request.peer = peer;
	return fake;
}

/* Submits bodies of 1 MiB until one is refused; returns the number of accepted ones. */
static int fill(struct fixture *f, struct fake *fakes, const char *peer, struct error *err)
{
	int count = 0;
	for (;; count++) {
		fakes[count] = request_of(peer);
		if (!gate_admit(f->gate, &fakes[count].in, 1 << 20, err))
			return count;
		if (!gate_charge(f->gate, &fakes[count].in, 1 << 20, err)) {
			gate_forget(f->gate, &fakes[count].in, REFUSAL_NONE);
			return count;
		}
	}
}

static void forget(struct fixture *f, struct fake *fakes, int count)
{
	while (count--)
		gate_forget(f->gate, &fakes[count].in, REFUSAL_CANCELLED);
}

static void who_holds_most_is_refused_first(void **state)
{
	struct fixture *f = *state;
	struct fake first[9], second[9], third[9];
	struct error err;
	open_gate(f, 0);
	f->budget.soft = 9 << 20;
	int a = fill(f, first, "127.0.0.2", &err);
	assert_int_equal(a, 4);
	assert_int_equal(err.kind, ERROR_BUSY);
	assert_in_range(err.retry_after_ms, 1000, 2000);
	assert_int_equal(read_metric(f, REASON("peer_memory")), 1);
	int b = fill(f, second, "127.0.0.3", &err);
	assert_int_equal(b, 2);
	assert_int_equal(fill(f, third, "127.0.0.2", &err), 0);
	int c = fill(f, third, "::1", &err);
	assert_int_equal(c, 1);
	forget(f, first, a);
	forget(f, second, b);
	forget(f, third, c);
	assert_int_equal(read_metric(f, REASON("memory")), 0);
}

static void a_peer_is_its_identity_where_it_has_one(void **state)
{
	static const struct metadatum one[] = { { "subject", "CN=a" }, { 0 } },
				      two[] = { { "subject", "CN=b" }, { 0 } };
	struct fixture *f = *state;
	struct fake fakes[3] = { request_of("127.0.0.2"), request_of("127.0.0.3"),
				 request_of("127.0.0.2") };
	open_gate(f, 0);
	for (int i = 0; i < 3; i++) {
		fakes[i].in.request.auth = i < 2 ? one : two;
		assert_true(gate_admit(f->gate, &fakes[i].in, 0, NULL));
	}
	assert_ptr_equal(fakes[0].in.peer, fakes[1].in.peer);
	assert_ptr_not_equal(fakes[0].in.peer, fakes[2].in.peer);
	forget(f, fakes, 3);
}

static void the_request_in_work_may_have_more_than_the_share(void **state)
{
	struct fixture *f = *state;
	struct fake small[9], large = request_of("127.0.0.2");
	struct error err;
	open_gate(f, 0);
	int count = fill(f, small, "127.0.0.2", &err);
	reopen_gate(f, 1);
	large.body = 200000; /* its tables need at most 3.2 MB */
	run(f, &large);
	assert_false(large.refused);
	forget(f, small, count);
}

static void connections_leave_a_part_of_the_budget_to_requests(void **state)
{
	struct fixture *f = *state;
	struct fake fake = fake_request(0);
	struct error err;
	int held = 0;
	open_gate(f, 0);
	assert_false(budget_is_short(&f->budget));
	while (entrance_hold(f->entrance, 65536))
		held++;
	assert_int_equal(held, 7 * 16);
	assert_in_range(budget_spare(&f->budget), 0, 65535);
	assert_false(budget_is_short(&f->budget));
	assert_true(gate_admit(f->gate, &fake.in, 1000, &err));
	assert_true(budget_is_short(&f->budget));
	gate_forget(f->gate, &fake.in, REFUSAL_CANCELLED);
	entrance_release(f->entrance, held * 65536);
	assert_int_equal(f->budget.charged, 0);
}

static void a_sender_can_connect_when_requests_have_all_memory(void **state)
{
	struct fixture *f = *state;
	struct fake fake = fake_request(0);
	struct error err;
	int held = 0;
	open_gate(f, 0);
	budget_add(&f->budget, 8 << 20);
	assert_false(gate_admit(f->gate, &fake.in, 0, &err));
	assert_in_range(err.retry_after_ms, 1000, 2000);
	assert_int_equal(budget_spare(&f->budget), 1 << 20);
	while (entrance_hold(f->entrance, 65536))
		held++;
	assert_int_equal(held, 16); /* an eighth of the budget */
	entrance_release(f->entrance, held * 65536);
	budget_give(&f->budget, 8 << 20);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(memory_is_refused_before_the_body_with_a_retry_hint),
		TEST(what_could_never_fit_is_refused_for_good),
		TEST(an_announced_body_costs_nothing_before_it_arrives),
		TEST(what_has_arrived_is_charged_until_it_is_forgotten),
		TEST(a_body_is_charged_in_steps_up_to_its_announced_length),
		TEST(a_body_that_cannot_be_doubled_grows_by_what_it_needs),
		TEST(who_holds_most_is_refused_first),
		TEST(a_peer_is_its_identity_where_it_has_one),
		TEST(the_request_in_work_may_have_more_than_the_share),
		TEST(connections_leave_a_part_of_the_budget_to_requests),
		TEST(a_sender_can_connect_when_requests_have_all_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
