/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <unistd.h>
#include <cmocka.h>

#include "net/kafka/kafka_question.h"
#include "tests/support/silent_broker.h"

#ifndef __SANITIZE_THREAD__ /* ThreadSanitizer does not know the threads of librdkafka */
enum { QUESTIONS = 5 };     /* more than the pool has threads */

static struct world {
	struct loop *loop;
	struct kafka_client_config config;
	uint64_t timeout_ns;
	int answers, answers_before; /* before the pool had done its work */
	bool worked;
} world;

static void work(void *argument)
{
	(void)argument;
}

static void stop_if_done(void)
{
	if (world.worked && world.answers == QUESTIONS)
		loop_stop(world.loop);
}

static void has_worked(void *argument)
{
	(void)argument;
	world.worked = true;
	world.answers_before = world.answers;
	stop_if_done();
}

static void on_answer(void *argument, struct kafka_result result)
{
	assert_ptr_equal(argument, &world);
	assert_int_equal(result.outcome, KAFKA_RETRY);
	world.answers++;
	stop_if_done();
}

static void begin(void *argument)
{
	(void)argument;
	for (int i = 0; i < QUESTIONS; i++)
		kafka_question_ask(&(struct kafka_question){ .loop = world.loop,
							     .config = &world.config,
							     .topic = "profiles",
							     .timeout_ns = world.timeout_ns },
				   on_answer, &world);
	loop_work(world.loop, work, has_worked, NULL);
}

static void run(uint64_t timeout_ns, char *broker)
{
	char *brokers[] = { broker };
	world = (struct world){
		.loop = loop_new(NULL),
		.config = { .brokers = { brokers, 1 },
			    .metadata = { .refresh_interval.ns = 600000000000,
					  .retry.backoff.ns = 250000000 } },
		.timeout_ns = timeout_ns,
	};
	loop_post(world.loop, begin, NULL);
	loop_run(world.loop);
	loop_unref(&world.loop);
	assert_int_equal(world.answers, QUESTIONS);
}

/* At the latest when there is more time, on a slow machine. */
static void the_pool_works_while_brokers_do_not_answer(void **state)
{
	char broker[SILENT_BROKER_SIZE];
	int fd = silent_broker_open(broker);
	(void)state;
	run(1000000000, broker);
	if (world.answers_before)
		run(10000000000, broker);
	assert_int_equal(world.answers_before, 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_pool_works_while_brokers_do_not_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
	return 0;
}
#endif
