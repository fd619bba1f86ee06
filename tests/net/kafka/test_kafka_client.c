/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kafka/kafka_client.h"
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
		{ 12345, KAFKA_PERMANENT, "refused" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct kafka_result result = kafka_judge(rows[i].code);
		assert_int_equal(result.outcome, rows[i].outcome);
		assert_string_equal(result.reason, rows[i].reason);
	}
}

/* As librdkafka 2.0 words them. What a broker says selects at most among our own words. */
static void test_the_cause_of_an_error(void **state)
{
	static const struct row {
		int code, means;
		const char *text, *cause;
	} rows[] = {
		{ -169, -169, "SASL authentication error: invalid credentials of alice",
		  "the password" },
		{ -169, -169,
		  "SASL SCRAM-SHA-512 mechanism handshake failed: Broker: Unsupported SASL "
		  "mechanism: broker's supported mechanisms: secret",
		  "auth::sasl::mechanism" },
		{ -181, -181,
		  "SSL handshake failed: error:0A000086:SSL routines::certificate verify failed: "
		  "broker certificate could not be verified",
		  "tls::ca_file" },
		{ -195, -181,
		  "SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker "
		  "listener? (after 5ms in state SSL_HANDSHAKE)",
		  "does not speak TLS" },
		{ -195, -181, "SSL handshake failed: certificate verify failed", "tls::ca_file" },
		{ -181, -181,
		  "SSL handshake failed: error:0A00010B:SSL routines::wrong version number",
		  "does not speak TLS" },
		{ -195, -181,
		  "Receive failed: error:0A00045C:SSL routines::tlsv13 alert certificate required: "
		  "SSL alert number 116",
		  "client certificate" },
		{ -195, -195,
		  "Disconnected while requesting ApiVersion: might be caused by incorrect "
		  "security.protocol configuration (connecting to a SSL listener?)",
		  "may require TLS" },
		{ -195, -181, "Disconnected (after 4ms in state SSL_HANDSHAKE)",
		  "may not speak TLS" },
		{ -195, -181,
		  "SSL handshake failed: error:0A000410:SSL routines::sslv3 alert handshake "
		  "failure: SSL alert number 40 (after 5ms in state SSL_HANDSHAKE)",
		  "client certificate" },
		{ -181, -181, "secret", "the TLS handshake failed" },
		{ -195, -195, "secret", "a connection to a broker failed" },
		{ -193, -193, NULL, "has no address" },
		{ 30, 30, "secret", "group_id" },
		{ 3, 3, "secret", "Unknown topic or partition" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int code = rows[i].code;
		const char *cause = kafka_explain(&code, rows[i].text);
		assert_int_equal(code, rows[i].means);
		assert_non_null(strstr(cause, rows[i].cause));
		assert_null(strstr(cause, "secret"));
		assert_null(strstr(cause, "alice"));
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
