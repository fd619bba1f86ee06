/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/memory.h"
#include "pipeline/gate.h"
#include "tests/support/open.h"

/* A gate with real workers, one pipeline without destinations but a packet keeper, and a scripted receiver. */
struct fixture {
	struct loop *loop;
	struct metrics *metrics;
	struct log log;
	struct memory memory;
	struct pipeline pipeline;
	struct pipeline *pipelines[2];
	struct workers *workers;
	struct gate *gate;
	_Atomic uint32_t packets;
};

struct fake { /* a receiver's request */
	struct inbound in;
	size_t body;
	uint32_t bad; /* Profiles that the decoder rejects */
	enum error_kind fails;
	bool replied, refused;
	enum error_kind kind;
	uint32_t retry_after_ms, rejected;
};

static void keep(void *context, struct packet *packet)
{
	struct fixture *f = context;
	f->packets++;
	packet_unref(&packet);
}

static bool load(struct inbound *in, struct body *body, struct view *out, struct error *err)
{
	struct fake *fake = (struct fake *)in;
	bytes_init(&body->raw, 1 << 20);
	if (!bytes_reserve(&body->raw, fake->body) || !gate_charge(in->gate, in, fake->body, err))
		return false;
	body->raw.len = fake->body;
	*out = bytes_view(&body->raw);
	return true;
}

static bool decode(struct inbound *in, struct profiles *p, struct error *err)
{
	struct fake *fake = (struct fake *)in;
	if (fake->fails)
		return error_set(err, fake->fails, "scripted");
	uint32_t stack = open_frame(p, "main");
	open_resource(p, (struct list){ 0 });
	open_scope(p, "");
	open_profile(p, "cpu", "ns");
	open_value(p, stack, (struct list){ 0 }, 7);
	p->rejected_profiles = fake->bad;
	return true;
}

static void reply(struct inbound *in, const struct outcome *outcome)
{
	struct fake *fake = (struct fake *)in;
	fake->replied = true;
	fake->refused = outcome->error != NULL;
	fake->kind = outcome->error ? outcome->error->kind : ERROR_NONE;
	fake->retry_after_ms = outcome->error ? outcome->error->retry_after_ms : 0;
	fake->rejected = outcome->rejected_profiles;
}

static const struct inbound_ops ops = { .load = load, .decode = decode, .reply = reply };

static struct fake fake_request(size_t body)
{
	return (struct fake){ .in = { .ops = &ops, .request = { .transport = "grpc" } }, .body = body };
}

static int setup(void **state)
{
	struct fixture *f = memory_new(sizeof *f);
	f->loop = loop_new(NULL);
	f->metrics = metrics_new();
	memory_init(&f->memory, 8 << 20, 0);
	f->pipeline.id = "profiles";
	ledger_init(&f->pipeline.ledger, f->metrics, "profiles");
	f->pipeline.batcher = batcher_new(&(struct batcher_options){
		.settings = &f->pipeline.settings, .shards = 1, .loop = f->loop, .memory = &f->memory,
		.ledger = &f->pipeline.ledger, .emit = keep, .context = f });
	f->pipelines[0] = f->pipelines[1] = &f->pipeline;
	f->workers = workers_start(&(struct workers_options){
		.count = 2, .queue_max = 4, .memory = &f->memory, .run = gate_run }, NULL);
	*state = f;
	return 0;
}

/* pipelines 0: admission does not ask destinations, of which there are none here. */
static void open_gate(struct fixture *f, uint32_t pipelines)
{
	f->gate = gate_new(&(struct gate_options){
		.receiver = "fake", .paths = f->pipelines, .pipeline_count = pipelines, .memory = &f->memory,
		.workers = &f->workers, .metrics = f->metrics, .log = &f->log });
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	workers_stop(&f->workers);
	gate_unref(&f->gate);
	batcher_unref(&f->pipeline.batcher);
	assert_int_equal(f->memory.charged, 0);
	loop_unref(&f->loop);
	metrics_unref(&f->metrics);
	memory_free(f);
	return 0;
}

static void run(struct fixture *f, struct fake *fake)
{
	gate_submit(f->gate, &fake->in);
	workers_stop(&f->workers);
	assert_true(fake->replied);
}

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
	assert_int_equal(series_get(f->pipeline.ledger.in), 2);
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

static void memory_is_refused_before_the_body_with_a_retry_hint(void **state)
{
	struct fixture *f = *state;
	struct fake fake = fake_request(0);
	struct error err;
	open_gate(f, 0);
	assert_false(gate_admit(f->gate, &fake.in, 9 << 20, &err));
	assert_int_equal(err.kind, ERROR_BUSY);
	assert_in_range(err.retry_after_ms, 1000, 2000);
	assert_int_equal(f->memory.charged, 0);
}

static void what_was_admitted_is_charged_until_it_is_forgotten(void **state)
{
	struct fixture *f = *state;
	struct fake fake = fake_request(0), other = fake_request(0);
	struct error err;
	open_gate(f, 0);
	assert_true(gate_admit(f->gate, &fake.in, 6 << 20, &err));
	assert_false(gate_admit(f->gate, &other.in, 6 << 20, &err));
	gate_forget(f->gate, &fake.in, "grpc", "cancelled");
	assert_true(gate_admit(f->gate, &other.in, 6 << 20, &err));
	gate_forget(f->gate, &other.in, "grpc", NULL);
}

static void a_body_that_leaves_no_room_for_tables_is_refused_with_a_retry_hint(void **state)
{
	struct fixture *f = *state;
	struct fake fake = fake_request((1 << 20) - 1);
	open_gate(f, 1);
	memory_add(&f->memory, 6 << 20);
	run(f, &fake);
	memory_give(&f->memory, 6 << 20);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_request_is_answered_after_it_was_taken),
		TEST(a_request_goes_through_every_pipeline_of_its_receiver),
		TEST(what_cannot_be_decoded_is_told_and_nothing_leaves),
		TEST(bad_profiles_are_told_beside_success),
		TEST(memory_is_refused_before_the_body_with_a_retry_hint),
		TEST(what_was_admitted_is_charged_until_it_is_forgotten),
		TEST(a_body_that_leaves_no_room_for_tables_is_refused_with_a_retry_hint),
		TEST(a_closed_gate_refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
