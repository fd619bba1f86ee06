/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/collecting.h"

/* ---- all or nothing ---- */

/* Requests that share some entries and have some of their own, several levels deep. */
static void varied_request(struct fixture *f, uint32_t seed, uint32_t samples)
{
	char text[32];
	open_begin(&f->p, NULL);
	for (uint32_t i = 0; i < samples; i++) {
		uint32_t n = (seed * 7 + i * 3) % 101;
		if (i % 5 == 0) {
			open_resource(&f->p, LIST(open_integer(&f->p, "pid", n % 7, "")));
			open_scope(&f->p, n % 3 ? "agent" : "other");
			open_profile(&f->p, "cpu", "ns");
		}
		snprintf(text, sizeof text, "function %u", n);
		uint32_t stack = open_frame(&f->p, text);
		snprintf(text, sizeof text, "value %u", n % 11);
		open_value(&f->p, stack, LIST(open_attribute(&f->p, "key", text)), n);
	}
}

/* Seals both collectors, and unrefs `other`. */
static void assert_seals_alike(struct collect *c, struct collect *other)
{
	struct packet *a = collect_seal(c), *b = collect_seal(other);
	assert_null(oracle_breach(bytes_view(&a->otlp)));
	assert_int_equal(a->otlp.len, b->otlp.len);
	assert_memory_equal(a->otlp.at, b->otlp.at, a->otlp.len);
	packet_unref(&a);
	packet_unref(&b);
	collect_unref(&other);
}

/* A refused request has no effect: the sealed packet equals the packet without it. */
static void refused_requests_leave_no_trace(void **state)
{
	struct fixture *f = *state;
	struct collect *without = collect_new(&collecting_wide);
	collecting_limit(f, (struct collect_limits){ .max_bytes = 1000, .hard_bytes = 1 << 20 });
	for (uint32_t i = 0; i < 20; i++) {
		varied_request(f, i, i % 2 ? 40 : 4000);
		enum collect_result result = collecting_add(f);
		if (i == 0)
			assert_int_equal(result, COLLECT_ADDED); /* the first may be larger */
		else
			assert_int_equal(result, COLLECT_FULL);
		if (result == COLLECT_ADDED)
			assert_int_equal(collect_add(without, &f->p, false, &f->added, NULL),
					 COLLECT_ADDED);
		assert_int_equal(collect_bytes(f->c), collect_bytes(without));
		assert_int_equal(collect_samples(f->c), collect_samples(without));
	}
	assert_seals_alike(f->c, without);
}

static void refused_requests_keep_no_memory(void **state)
{
	struct fixture *f = *state;
	size_t held = 0;
	collecting_limit(f, (struct collect_limits){ .max_bytes = 1000, .hard_bytes = 1 << 20 });
	for (uint32_t i = 0; i < 50; i++) {
		varied_request(f, 1, i ? 500 : 10);
		assert_int_equal(collecting_add(f), i ? COLLECT_FULL : COLLECT_ADDED);
		if (i == 2)
			held = collect_footprint(f->c);
	}
	assert_int_equal(collect_footprint(f->c), held);
}

static void requests_after_a_refused_one_are_collected_as_ever(void **state)
{
	struct fixture *f = *state;
	struct collect *without = collect_new(&collecting_wide);
	collecting_limit(f, (struct collect_limits){ .max_bytes = 1 << 20,
						     .max_samples = 3000,
						     .hard_bytes = 1 << 20 });
	uint32_t refused = 0;
	for (uint32_t i = 0; i < 40; i++) {
		varied_request(f, i, i % 3 ? 60 : 2500);
		if (collecting_add(f) == COLLECT_ADDED)
			assert_int_equal(collect_add(without, &f->p, false, &f->added, NULL),
					 COLLECT_ADDED);
		else
			refused++;
		assert_int_equal(collect_bytes(f->c), collect_bytes(without));
	}
	assert_in_range(refused, 5, 35);
	assert_seals_alike(f->c, without);
}

static void max_samples_counts_what_leaves(void **state)
{
	struct fixture *f = *state;
	collecting_limit(f, (struct collect_limits){ .max_bytes = 1 << 20,
						     .max_samples = 2,
						     .hard_bytes = 1 << 20 });
	for (int request = 0; request < 3; request++) {
		open_begin(&f->p, NULL);
		uint32_t stack = open_frame(&f->p, "main");
		collecting_changed_profile(f);
		for (int i = 0; i < 10; i++)
			open_value(&f->p, stack, NONE, 1); /* merge into one */
		assert_int_equal(collecting_add(f), request < 2 ? COLLECT_ADDED : COLLECT_FULL);
	}
	assert_int_equal(collect_samples(f->c), 2);
}

static void a_request_over_the_hard_limit_fails(void **state)
{
	struct fixture *f = *state;
	collecting_limit(f, (struct collect_limits){ .max_bytes = 1000, .hard_bytes = 2000 });
	varied_request(f, 1, 400);
	assert_int_equal(collecting_add(f), COLLECT_FAILED);
	assert_int_equal(f->err.kind, ERROR_TOO_LARGE);
	assert_true(collect_empty(f->c));
	varied_request(f, 1, 10);
	assert_int_equal(collecting_add(f), COLLECT_ADDED);
	varied_request(f, 1, 400);
	assert_int_equal(collecting_add(f), COLLECT_FULL);
	struct packet *packet = collect_seal(f->c);
	assert_null(oracle_breach(bytes_view(&packet->otlp)));
	packet_unref(&packet);
}

static void a_request_that_outgrows_what_is_allowed_leaves_no_trace(void **state)
{
	struct fixture *f = *state;
	struct collect *without = collect_new(&collecting_wide);
	collecting_limit(f, collecting_wide);
	for (uint32_t i = 0; i < 12; i++) {
		varied_request(f, i, 200);
		if (i % 3 == 1)
			open_resource(&f->p, LIST(open_attribute(&f->p, "service.name", "shop")));
		collect_allow(f->c, 300);
		assert_int_equal(collecting_add(f), COLLECT_OUTGROWN);
		assert_int_equal(collect_bytes(f->c), collect_bytes(without));
		collect_allow(f->c, i % 2 ? SIZE_MAX : 1 << 20);
		assert_int_equal(collecting_add(f), COLLECT_ADDED);
		assert_int_equal(collect_add(without, &f->p, false, &f->added, NULL),
				 COLLECT_ADDED);
	}
	assert_seals_alike(f->c, without);
}

/* References repeat a long string in a few bytes of input. The work is bounded, even if all copies
 * are equal. */
static void repeating_a_long_text_by_reference_is_refused(void **state)
{
	struct fixture *f = *state;
	struct profiles *p = &f->p;
	static char text[100001];
	memset(text, 't', sizeof text - 1);
	uint32_t value = open_text(p, text), key = open_text(p, "k");
	for (int i = 0; i < 1000; i++) {
		uint32_t a = profiles_attribute_new(p, (struct attribute){ .key = key,
									   .type = VALUE_STRING,
									   .string = value });
		open_resource(p, LIST(a));
		open_scope(p, "");
		open_profile(p, "cpu", "ns");
	}
	assert_int_equal(collecting_add(f), COLLECT_FAILED);
	assert_int_equal(f->err.kind, ERROR_TOO_LARGE);
	collecting_profile(f);
	open_begin(p, NULL);
	collecting_profile(f);
	for (int i = 0; i < 1000; i++) {
		uint32_t a =
			profiles_attribute_new(p,
					       (struct attribute){ .key = open_text(p, "k"),
								   .type = VALUE_STRING,
								   .string = open_text(p, text) });
		p->attributes.at[a].string = p->attributes.at[1].string;
		open_value(p, 0, LIST(a), 1);
	}
	assert_int_equal(collecting_add(f), COLLECT_FAILED);
}

/* ---- bookkeeping ---- */

static int done_calls, done_failed;

static void note_done(struct ack *ack, enum ack_outcome outcome)
{
	(void)ack;
	done_calls++;
	done_failed += outcome == ACK_FAILED;
}

static void contributions_tell_where_it_came_from(void **state)
{
	struct fixture *f = *state;
	struct request late = { .receiver = "otlp", .arrival = 200 },
		       early = { .receiver = "pprof", .arrival = 100 };
	open_begin(&f->p, &late);
	collecting_changed_profile(f);
	open_value(&f->p, 0, NONE, 1);
	open_value(&f->p, 0, NONE, 1);
	assert_int_equal(collecting_add(f), COLLECT_ADDED);
	open_begin(&f->p, &early);
	collecting_profile(f);
	open_value(&f->p, 0, NONE, 1);
	assert_int_equal(collecting_add(f), COLLECT_ADDED);
	struct packet *packet = collect_seal(f->c);
	assert_int_equal(packet->contribution_count, 2);
	assert_string_equal(packet->contributions[0].receiver, "otlp");
	assert_int_equal(packet->contributions[0].samples_in, 2);
	assert_int_equal(packet->contributions[0].samples_merged, 1);
	assert_string_equal(packet->contributions[1].receiver, "pprof");
	assert_int_equal(packet->contributions[1].profiles, 1);
	assert_int_equal(packet->samples, 2);
	assert_int_equal(packet->oldest_arrival, 100);
	assert_null(packet->contributions[0].ack);
	packet_unref(&packet);
}

static void collect_one_with_ack(struct fixture *f, struct ack *ack, bool hold)
{
	struct request request = { .receiver = "otlp", .ack = ack };
	done_calls = done_failed = 0;
	ack_init(ack, ACK_ENQUEUE, note_done);
	open_begin(&f->p, &request);
	collecting_profile(f);
	open_value(&f->p, 0, NONE, 1);
	assert_int_equal(collect_add(f->c, &f->p, hold, &f->added, &f->err), COLLECT_ADDED);
	ack_release(ack, ACK_TAKEN); /* the reference of the pipeline */
}

static void acks_wait_for_every_hold(void **state)
{
	struct fixture *f = *state;
	struct ack ack;
	collect_one_with_ack(f, &ack, true);
	struct packet *packet = collect_seal(f->c);
	packet_hold_acks(packet, ACK_MODE_ANY); /* the reference of a destination */
	packet_release_acks(packet, ACK_MODE_ANY, ACK_TAKEN);
	assert_int_equal(done_calls, 0);
	packet_release_acks(packet, ACK_MODE_ANY, ACK_TAKEN);
	assert_int_equal(done_calls, 1);
	assert_int_equal(done_failed, 0);
	packet_unref(&packet);
	assert_int_equal(done_calls, 1);
}

static void acks_tell_a_failure(void **state)
{
	struct fixture *f = *state;
	struct ack ack;
	collect_one_with_ack(f, &ack, true);
	struct packet *packet = collect_seal(f->c);
	packet_release_acks(packet, ACK_MODE_ANY, ACK_FAILED);
	assert_int_equal(done_failed, 1);
	packet_unref(&packet);
}

static void acks_that_nobody_waits_for_are_not_held(void **state)
{
	struct fixture *f = *state;
	struct ack ack;
	collect_one_with_ack(f, &ack, false);
	assert_int_equal(done_calls, 1);
}

static void a_discarded_collector_fails_its_acks(void **state)
{
	struct fixture *f = *state;
	struct ack ack;
	collect_one_with_ack(f, &ack, true);
	collect_unref(&f->c);
	assert_int_equal(done_failed, 1);
}

static void a_refused_request_holds_no_ack(void **state)
{
	struct fixture *f = *state;
	struct ack ack;
	struct request request = { .ack = &ack };
	collecting_limit(f, (struct collect_limits){ .max_bytes = 1000, .hard_bytes = 2000 });
	varied_request(f, 1, 400);
	f->p.request = &request;
	ack_init(&ack, ACK_ENQUEUE, note_done);
	assert_int_equal(collect_add(f->c, &f->p, true, &f->added, &f->err), COLLECT_FAILED);
	assert_int_equal(atomic_load(&ack.holds), 1);
}

static void shrinking_gives_memory_back(void **state)
{
	struct fixture *f = *state;
	size_t small = collect_footprint(f->c);
	varied_request(f, 1, 20000);
	assert_int_equal(collecting_add(f), COLLECT_ADDED);
	struct packet *packet = collect_seal(f->c);
	packet_unref(&packet);
	assert_true(collect_footprint(f->c) > small * 4);
	collect_shrink(f->c, 1 << 30);
	assert_true(collect_footprint(f->c) > small * 4);
	collect_shrink(f->c, small);
	assert_int_equal(collect_footprint(f->c), small);
	collecting_profile(f);
	assert_int_equal(collecting_add(f), COLLECT_ADDED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(refused_requests_leave_no_trace),
		TEST(refused_requests_keep_no_memory),
		TEST(requests_after_a_refused_one_are_collected_as_ever),
		TEST(max_samples_counts_what_leaves),
		TEST(a_request_over_the_hard_limit_fails),
		TEST(a_request_that_outgrows_what_is_allowed_leaves_no_trace),
		TEST(repeating_a_long_text_by_reference_is_refused),
		TEST(contributions_tell_where_it_came_from),
		TEST(acks_wait_for_every_hold),
		TEST(acks_tell_a_failure),
		TEST(acks_that_nobody_waits_for_are_not_held),
		TEST(a_discarded_collector_fails_its_acks),
		TEST(a_refused_request_holds_no_ack),
		TEST(shrinking_gives_memory_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
