/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kafka/kafka_events.h"
#include "tests/pipeline/delivery/delivery_fixture.h"

/* Brokers that fail in different ways, again and again: each error once. */
static void errors_that_alternate_are_logged_once(void **state)
{
	struct log log = { 0 };
	char broker[] = "127.0.0.1:1", *brokers[] = { broker };
	struct kafka_client_config config = { .brokers = { brokers, 1 } };
	struct kafka_events events = { .options = { .log = &log, .config = &config } };
	(void)state;
	log_to_file();
	for (int i = 0; i < 10; i++) {
		kafka_events_log(&events, RD_KAFKA_RESP_ERR__SSL);
		kafka_events_log(&events, RD_KAFKA_RESP_ERR__TRANSPORT);
		kafka_events_log(&events, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN);
	}
	assert_int_equal(logged("The Kafka client reports an error."), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_that_alternate_are_logged_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
