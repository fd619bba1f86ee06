/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/http_sender.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* This file replaces pipeline/delivery/sending.c. */
void sending_done(struct sending *sending, const struct send_result *result)
{
	*(struct send_result *)sending = *result;
}

static const struct row {
	struct http_result result;
	enum send_outcome outcome;
	const char *reason;
	int64_t retry_after_ms;
} rows[] = {
	{ { .status = 200, .retry_after_ms = -1 }, SEND_OK, "ok", -1 },
	{ { .status = 204, .retry_after_ms = -1 }, SEND_OK, "ok", -1 },
	/* It is unknown whether the request was processed. */
	{ { .status = 200, .failure = "cut", .retry_after_ms = -1 }, SEND_RETRY, "cut", -1 },
	{ { .failure = "unavailable", .retry_after_ms = -1 }, SEND_RETRY, "unavailable", -1 },
	{ { .status = 301, .retry_after_ms = -1 }, SEND_PERMANENT, "refused", -1 },
	{ { .status = 400, .retry_after_ms = 7000 }, SEND_PERMANENT, "invalid", -1 },
	{ { .status = 401, .retry_after_ms = -1 }, SEND_PERMANENT, "unauthenticated", -1 },
	{ { .status = 418, .retry_after_ms = -1 }, SEND_PERMANENT, "refused", -1 },
	{ { .status = 429, .retry_after_ms = 7000 }, SEND_RETRY, "resource_exhausted", 7000 },
	{ { .status = 500, .retry_after_ms = -1 }, SEND_PERMANENT, "internal", -1 },
	{ { .status = 502, .retry_after_ms = 7000 }, SEND_RETRY, "bad_gateway", -1 },
	{ { .status = 503, .retry_after_ms = 7000 }, SEND_RETRY, "unavailable", 7000 },
	{ { .status = 504, .retry_after_ms = -1 }, SEND_RETRY, "gateway_timeout", -1 },
	/* The status is used even if the reply is incomplete. */
	{ { .status = 400, .failure = "cut", .retry_after_ms = -1 },
	  SEND_PERMANENT,
	  "invalid",
	  -1 },
};

static void answers_are_classified_as_in_the_collector(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct send_result verdict = http_sender_judge(&rows[i].result);
		if (verdict.outcome != rows[i].outcome || strcmp(verdict.reason, rows[i].reason) ||
		    verdict.retry_after_ms != rows[i].retry_after_ms)
			fail_msg("%d: %d, %s, %lld", rows[i].result.status, verdict.outcome,
				 verdict.reason, (long long)verdict.retry_after_ms);
	}
}

static const struct http_service service = { "a/b", NULL };
static const struct http_sender_config config;
static const struct host host;

/* Without a client: it was never started, or it was stopped. */
static struct send_result send_with(const struct metadatum *headers)
{
	struct http_sender sender;
	struct send_result result = { 0 };
	struct packet *packet = packet_new(10, 0);
	http_sender_init(&sender, &config, "http://localhost:1//", "/path", &service, NULL, &host);
	assert_string_equal(sender.url, "http://localhost:1/path");
	http_sender_send(&sender,
			 &(struct http_sending){ .packet = packet,
						 .body = bytes_view(&packet->otlp),
						 .headers = headers },
			 0, (struct sending *)&result);
	assert_int_equal(packet->refs, 1);
	packet_unref(&packet);
	http_sender_fini(&sender);
	return result;
}

static void a_send_after_stop_may_be_tried_again(void **state)
{
	(void)state;
	struct send_result result = send_with(NULL);
	assert_int_equal(result.outcome, SEND_RETRY);
	assert_string_equal(result.reason, "stopped");
}

static void headers_that_cannot_be_sent_fail_permanently(void **state)
{
	(void)state;
	struct send_result result =
		send_with((const struct metadatum[]){ { "X-A", "b\r\nX-C: d" }, { 0 } });
	assert_int_equal(result.outcome, SEND_PERMANENT);
	assert_string_equal(result.reason, "headers");
}

static void only_trailing_slashes_before_a_path_are_cut(void **state)
{
	(void)state;
	struct http_sender sender;
	http_sender_init(&sender, &config, "http://localhost:1/a/", "", &service, NULL, &host);
	assert_string_equal(sender.url, "http://localhost:1/a/");
	assert_string_equal(sender.address, "localhost");
	assert_string_equal(sender.port, "1");
	http_sender_fini(&sender);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_classified_as_in_the_collector),
		cmocka_unit_test(a_send_after_stop_may_be_tried_again),
		cmocka_unit_test(headers_that_cannot_be_sent_fail_permanently),
		cmocka_unit_test(only_trailing_slashes_before_a_path_are_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
