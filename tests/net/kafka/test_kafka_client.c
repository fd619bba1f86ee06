/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kafka/kafka_client.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Codes: kafka.apache.org/protocol, "Error Codes"; negative ones are librdkafka's own. */
static void test_each_code_has_one_meaning(void **state)
{
	static const struct row {
		int code;
		enum kafka_outcome outcome;
		const char *reason;
	} rows[] = {
		{ 0, KAFKA_OK, "ok" },
		{ 10, KAFKA_TOO_LARGE, "too_large" },
		{ 18, KAFKA_TOO_LARGE, "too_large" },
		{ 2, KAFKA_RETRY, "corrupt" },
		{ 3, KAFKA_RETRY, "unknown_topic" },
		{ 5, KAFKA_RETRY, "unavailable" },
		{ 6, KAFKA_RETRY, "unavailable" },
		{ 7, KAFKA_RETRY, "timeout" },
		{ 13, KAFKA_RETRY, "unavailable" },
		{ 19, KAFKA_RETRY, "not_enough_replicas" },
		{ 20, KAFKA_RETRY, "not_enough_replicas" },
		{ 45, KAFKA_RETRY, "producer_fenced" },
		{ 47, KAFKA_RETRY, "producer_fenced" },
		{ 56, KAFKA_RETRY, "disk" },
		{ 59, KAFKA_RETRY, "producer_fenced" },
		{ 89, KAFKA_RETRY, "resource_exhausted" },
		{ 17, KAFKA_PERMANENT, "invalid_topic" },
		{ 29, KAFKA_PERMANENT, "permission_denied" },
		{ 30, KAFKA_PERMANENT, "permission_denied" },
		{ 31, KAFKA_PERMANENT, "permission_denied" },
		{ 44, KAFKA_PERMANENT, "invalid" },
		{ 87, KAFKA_PERMANENT, "invalid" },
		{ -192, KAFKA_RETRY, "timeout" },
		{ -195, KAFKA_RETRY, "unavailable" },
		{ -187, KAFKA_RETRY, "unavailable" },
		{ -193, KAFKA_RETRY, "unresolved" },
		{ -181, KAFKA_RETRY, "tls" },
		{ -169, KAFKA_RETRY, "unauthenticated" },
		{ -184, KAFKA_RETRY, "queue_full" },
		{ -152, KAFKA_RETRY, "cancelled" },
		{ -151, KAFKA_RETRY, "cancelled" },
		{ -150, KAFKA_RETRY, "producer_fenced" },
		{ -199, KAFKA_RETRY, "invalid_response" },
		{ -155, KAFKA_RETRY, "invalid_response" },
		{ 12345, KAFKA_PERMANENT, "refused" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct kafka_result result = kafka_judge(rows[i].code);
		assert_int_equal(result.outcome, rows[i].outcome);
		assert_string_equal(result.reason, rows[i].reason);
	}
}

/* As librdkafka 2.0 words them. What a broker says selects at most among our own words. What is
 * noted counts only for failures of TLS that librdkafka's text does not explain. */
static const struct cause_row {
	int code, means;
	const char *text;
	struct cause cause;
	bool unnoted; /* else CAUSE_REVOKED is noted */
} cause_rows[] = {
	{ -169,
	  -169,
	  "SASL authentication error: invalid credentials of alice",
	  { CAUSE_SASL_REJECTED, 0 } },
	{ -169,
	  -169,
	  "SASL SCRAM-SHA-512 mechanism handshake failed: Broker: Unsupported SASL "
	  "mechanism: broker's supported mechanisms: secret",
	  { CAUSE_SASL_MECHANISM, 0 } },
	{ -181,
	  -181,
	  "SSL handshake failed: error:0A000086:SSL routines::certificate verify failed: "
	  "broker certificate could not be verified",
	  { CAUSE_REVOKED, 0 } },
	{ -195, -181, "SSL handshake failed: certificate verify failed", { CAUSE_REVOKED, 0 } },
	{ -195,
	  -181,
	  "SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker "
	  "listener? (after 5ms in state SSL_HANDSHAKE)",
	  { CAUSE_TLS_CLOSED, 0 } },
	{ -181,
	  -181,
	  "SSL handshake failed: error:0A00010B:SSL routines::wrong version number",
	  { CAUSE_NOT_TLS, 0 } },
	{ -195,
	  -181,
	  "Receive failed: error:0A00045C:SSL routines::tlsv13 alert certificate required: "
	  "SSL alert number 116",
	  { CAUSE_TLS_CLIENT_CERTIFICATE, 0 },
	  .unnoted = true },
	{ -195, -181, "Disconnected (after 4ms in state SSL_HANDSHAKE)", { CAUSE_TLS_CLOSED, 0 } },
	{ -195,
	  -181,
	  "SSL handshake failed: error:0A000410:SSL routines::sslv3 alert handshake "
	  "failure: SSL alert number 40 (after 5ms in state SSL_HANDSHAKE)",
	  { CAUSE_TLS_VERSION, 0 },
	  .unnoted = true },
	{ -195, -181, "SSL alert number 40", { CAUSE_REVOKED, 0 } },
	{ -195,
	  -181,
	  "SSL alert number 99999999999999999999999",
	  { CAUSE_TLS_REJECTED, 0 },
	  .unnoted = true },
	{ -181, -181, "certificate verify failed", { CAUSE_CERTIFICATE, 0 }, .unnoted = true },
	{ -195,
	  -181,
	  "Connection setup timed out in state SSL_HANDSHAKE",
	  { CAUSE_TLS_TIMEOUT, 0 } },
	{ -181, -181, "secret", { CAUSE_TLS_FAILED, 0 } },
	{ -195,
	  -195,
	  "Disconnected while requesting ApiVersion: might be caused by incorrect "
	  "security.protocol configuration (connecting to a SSL listener?)",
	  { CAUSE_CLOSED, 0 } },
	{ -195,
	  -195,
	  "Connect to ipv4#192.0.2.1:9092 failed: Connection refused (after 0ms in state "
	  "CONNECT)",
	  { CAUSE_REFUSED, ECONNREFUSED } },
	{ -195, -195, "Receive failed: Connection reset by peer", { CAUSE_RESET, ECONNRESET } },
	{ -195,
	  -195,
	  "Connection setup timed out in state CONNECT (after 30001ms in state CONNECT)",
	  { CAUSE_CONNECT_TIMEOUT, 0 } },
	{ -195, -195, "1 request(s) timed out: disconnect", { CAUSE_NO_RESPONSE, 0 } },
	{ -195,
	  -195,
	  "ApiVersionRequest failed: Local: Timed out: probably due to broker version",
	  { CAUSE_NO_RESPONSE, 0 } },
	{ -195, -195, "secret", { CAUSE_NO_CONNECTION, 0 } },
	{ -193, -193, NULL, { CAUSE_UNRESOLVED, 0 } },
	{ 30, 30, "secret", { CAUSE_GROUP_DENIED, 0 } },
	{ 3, 3, "in state SSL_HANDSHAKE", { CAUSE_TOPIC_MISSING, 0 } },
	{ 12345, 12345, "secret", { CAUSE_NONE, 0 } },
};

static void test_the_cause_of_an_error(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cause_rows / sizeof *cause_rows; i++) {
		struct kafka_result why =
			kafka_explain(cause_rows[i].code, cause_rows[i].text,
				      cause_rows[i].unnoted ? CAUSE_NONE : CAUSE_REVOKED);
		assert_int_equal(why.code, cause_rows[i].means);
		assert_int_equal(why.cause.kind, cause_rows[i].cause.kind);
		assert_int_equal(why.cause.os_error, cause_rows[i].cause.os_error);
		assert_string_equal(why.reason, kafka_judge(cause_rows[i].means).reason);
	}
}

static void test_names_of_topics(void **state)
{
	char longest[251];
	(void)state;
	memset(longest, 'a', sizeof longest);
	assert_true(kafka_topic_ok(view_of("otlp_profiles")));
	assert_true(kafka_topic_ok(view_of("a.B-9_")));
	assert_true(kafka_topic_ok((struct view){ (uint8_t *)longest, 249 }));
	assert_false(kafka_topic_ok((struct view){ (uint8_t *)longest, 250 }));
	assert_false(kafka_topic_ok(view_of("")));
	assert_false(kafka_topic_ok(view_of(".")));
	assert_false(kafka_topic_ok(view_of("..")));
	assert_false(kafka_topic_ok(view_of("a/b")));
	assert_false(kafka_topic_ok(view_of("a b")));
	assert_false(kafka_topic_ok((struct view){ (const uint8_t *)"a\0b", 3 }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_code_has_one_meaning),
		cmocka_unit_test(test_the_cause_of_an_error),
		cmocka_unit_test(test_names_of_topics),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
