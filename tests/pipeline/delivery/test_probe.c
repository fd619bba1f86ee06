/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/otlp/decode_otlp.h"
#include "tests/pipeline/delivery/delivery_fixture.h"

/* What the exporter was asked with, and what it answers. */
static struct asking {
	struct fixture *f;
	struct send_result answer;
	uint64_t timeout_ns;
	uint32_t member;
	bool valid, judged, takes;
	char text[sizeof((struct error){ 0 }).text];
} asking;

static bool is_valid(const struct packet *packet)
{
	struct profiles p = { 0 };
	bool ok = profiles_reset(&p, NULL, bytes_view(&packet->otlp), 1 << 20) &&
		  decode_otlp(&p, NULL) && p.resources.count == 1 && p.scopes.count == 1 &&
		  !p.profiles.count;
	profiles_fini(&p);
	return ok && packet->otlp.len && !packet->samples;
}

static void probe(void *self, const struct part *part, uint64_t timeout_ns, struct sending *sending)
{
	(void)self;
	asking.timeout_ns = timeout_ns;
	asking.member = part->group;
	asking.valid = is_valid(part->packet);
	sending_done(sending, &asking.answer);
}

static void judge(void *context, const struct send_result *result)
{
	struct error err;
	error_clear(&err);
	asking.judged = true;
	asking.takes = delivery_probe_judge(result, &err);
	snprintf(asking.text, sizeof asking.text, "%s", err.text);
	drain(context);
}

static void ask(void *argument)
{
	struct fixture *f = argument;
	assert_true(delivery_start(f->delivery, NULL));
	delivery_probe(f->delivery, asking.member, asking.timeout_ns, judge, f);
	assert_false(asking.judged); /* not before the caller is ready for it */
}

static void run(struct fixture *f, struct send_result answer)
{
	f->ops.probe = probe;
	asking.answer = answer;
	asking.judged = false;
	begin(f);
	loop_post(f->loop, ask, f);
	loop_run(f->loop);
	assert_true(asking.judged && asking.valid);
	assert_int_equal(f->sends, 0);
}

#define SAID "the destination does not accept data: "

static void test_results(void **state)
{
	static const struct {
		struct send_result result;
		const char *text; /* NULL: it would take data */
	} rows[] = {
		{ { .outcome = SEND_OK, .reason = "ok", .http_status = 200 }, NULL },
		{ { .outcome = SEND_PERMANENT, .reason = "invalid_argument", .grpc_status = 3 },
		  NULL },
		{ { .outcome = SEND_PERMANENT, .reason = "invalid", .http_status = 400 },
		  SAID "invalid (http_status 400)" },
		{ { .outcome = SEND_RETRY,
		    .reason = "unavailable",
		    .cause = { CAUSE_REFUSED, 111 },
		    .grpc_status = 14 },
		  SAID "connection refused (error unavailable, stage connect, errno ECONNREFUSED, "
		       "grpc_status 14)" },
		{ { .outcome = SEND_RETRY, .reason = "tls", .cause = { CAUSE_EXPIRED, 0 } },
		  SAID "certificate expired (error tls, stage tls_verify)" },
		{ { .outcome = SEND_RETRY, .reason = "auth" }, SAID "auth" },
	};
	asking.member = 7;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		run(*state, rows[i].result);
		assert_int_equal(asking.member, 7);
		assert_int_equal(asking.takes, !rows[i].text);
		assert_string_equal(asking.text, rows[i].text ? rows[i].text : "");
	}
}

static void test_timeouts(void **state)
{
	static const struct send_result ok = { .outcome = SEND_OK, .reason = "ok" };
	struct fixture *f = *state;
	f->config.timeout.ns = 5;
	asking.timeout_ns = 3;
	run(f, ok);
	assert_int_equal(asking.timeout_ns, 3);
	asking.timeout_ns = 0;
	run(f, ok);
	assert_int_equal(asking.timeout_ns, 5);
	f->config.timeout.ns = 0; /* none: but a question must end */
	asking.timeout_ns = 0;
	run(f, ok);
	assert_int_equal(asking.timeout_ns, 30000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_results, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timeouts, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
