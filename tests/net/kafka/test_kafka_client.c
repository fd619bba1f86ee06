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
		{ 31, KAFKA_PERMANENT, "permission_denied" },
		{ 44, KAFKA_PERMANENT, "invalid" },
		{ 87, KAFKA_PERMANENT, "invalid" },
		{ -192, KAFKA_RETRY, "timeout" },
		{ -195, KAFKA_RETRY, "unavailable" },
		{ -187, KAFKA_RETRY, "unavailable" },
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
		cmocka_unit_test(test_names_of_topics),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
