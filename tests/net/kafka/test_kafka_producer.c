/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>
#include <cmocka.h>

#include "net/kafka/kafka_producer.h"
#include "tests/support/shell.h"
#include "tests/support/silent_broker.h"

#ifndef __SANITIZE_THREAD__ /* ThreadSanitizer does not know the threads of librdkafka */
enum { MESSAGES = 7 };      /* more than librdkafka gets at once */

static struct world {
	struct loop *loop;
	struct kafka_producer *producer;
	struct kafka_client_config config;
} world;

static void end(void *argument)
{
	(void)argument;
	kafka_producer_unref(&world.producer);
	loop_stop(world.loop);
}

static void on_last(void *argument)
{
	loop_work(world.loop, end, NULL, argument);
}

static void on_report(void *argument, struct kafka_result result)
{
	_Atomic int *left = argument;
	assert_int_equal(result.outcome, KAFKA_RETRY);
	assert_string_equal(result.reason, "cancelled");
	if (--*left == 0)
		loop_post(world.loop, on_last, NULL);
}

static void change_certificates(void *argument)
{
	struct error err;
	bool changed = false;
	(void)argument;
	assert_int_equal(shell("cp b.pem ca.pem"), 0);
	assert_true(kafka_producer_reopen(world.producer, &changed, &err));
	assert_true(changed);
}

static void begin(void *argument)
{
	const struct kafka_producer_options options = { .loop = world.loop,
							.log = &(struct log){ 0 },
							.config = &world.config,
							.acks = -1,
							.compression = "none",
							.compression_level = -1,
							.partitioner = "fnv1a_random",
							.max_message_bytes = 100000,
							.batch_messages = 10,
							.in_flight = MESSAGES,
							.replaced_ns = 1 };
	struct error err;
	world.producer = kafka_producer_new(&options, &err);
	assert_non_null(world.producer);
	for (int i = 0; i < MESSAGES; i++)
		kafka_producer_send(world.producer,
				    &(struct kafka_message){ .topic = "profiles",
							     .value = view_of("profile") },
				    on_report, argument);
	loop_work(world.loop, change_certificates, NULL, NULL);
}

/* Never, if what the replaced client holds has no end. */
static void a_replaced_client_without_a_timeout_ends(void **state)
{
	char broker[SILENT_BROKER_SIZE], ca[] = "ca.pem", *brokers[] = { broker };
	_Atomic int left = MESSAGES;
	int fd = silent_broker_open(broker);
	(void)state;
	world = (struct world){
		.loop = loop_new(NULL),
		.config = { .brokers = { brokers, 1 },
			    .tls = { .present.enabled = true, .ca_file = ca },
			    .metadata = { .refresh_interval.ns = 600000000000,
					  .retry.backoff.ns = 250000000 } },
	};
	loop_post(world.loop, begin, &left);
	loop_run(world.loop);
	loop_unref(&world.loop);
	assert_int_equal(left, 0);
	close(fd);
}

/* a.pem and b.pem in a new directory; ca.pem is the first. */
static int make_files(void **state)
{
	static char directory[] = "/tmp/portcullis-kafka-producer-XXXXXX";
	*state = directory;
	if (!mkdtemp(directory) || chdir(directory) != 0)
		return -1;
	return shell("for n in a b; do openssl req -x509 -newkey ec -pkeyopt "
		     "ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=$n -keyout $n.key -out "
		     "$n.pem 2>/dev/null || exit 1; done; cp a.pem ca.pem");
}

static int remove_files(void **state)
{
	return shell("rm -rf '%s'", (char *)*state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_replaced_client_without_a_timeout_ends),
	};
	return cmocka_run_group_tests(tests, make_files, remove_files);
}
#else
int main(void)
{
	return 0;
}
#endif
