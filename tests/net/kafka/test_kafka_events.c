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

#ifndef __SANITIZE_THREAD__ /* ThreadSanitizer does not know the threads of librdkafka */
static void on_ready(void *loop, int fd, unsigned events)
{
	(void)events;
	assert_true(kafka_events_woken(fd));
	loop_stop(loop);
}

/* Nobody listens at the port. The error is there before the queue is watched. For ever, if it is
 * not noticed. */
static void an_error_of_the_first_moment_is_noticed(void **state)
{
	char text[64];
	struct kafka_events events;
	struct error err;
	struct loop *loop = loop_new(NULL);
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	(void)state;
	rd_kafka_conf_set(conf, "bootstrap.servers", "127.0.0.1:1", text, sizeof text);
	rd_kafka_conf_set(conf, "log_level", "0", text, sizeof text);
	rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_ERROR);
	rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text);
	rd_kafka_queue_t *queue = rd_kafka_queue_get_main(rk);
	while (!rd_kafka_queue_length(queue))
		usleep(1000);
	assert_true(kafka_events_open(&events, queue,
				      &(struct kafka_events_options){
					      .loop = loop, .ready = on_ready, .argument = loop },
				      &err));
	loop_run(loop);
	kafka_events_leave(&events);
	kafka_events_close(&events);
	rd_kafka_destroy(rk);
	loop_unref(&loop);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_that_alternate_are_logged_once),
#ifndef __SANITIZE_THREAD__
		cmocka_unit_test(an_error_of_the_first_moment_is_noticed),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
