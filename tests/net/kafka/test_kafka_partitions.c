/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kafka/kafka_partitions.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { MESSAGES = 4 };

struct fixture {
	struct kafka_partitions all;
	struct kafka_partition *partition;
	struct kafka_message_in *messages[MESSAGES];
};

/* The offsets begin at 10. Any address is an event. */
static struct fixture fixture(void)
{
	struct fixture f = { 0 };
	f.partition = kafka_partitions_add(&f.all, NULL, "topic", 3);
	for (int i = 0; i < MESSAGES; i++) {
		const rd_kafka_message_t record = { .offset = 10 + i };
		f.messages[i] = kafka_partition_push(f.partition, &record, (void *)&f);
	}
	return f;
}

static bool finish(struct fixture *f, int i)
{
	f->messages[i]->event = NULL;
	return kafka_partition_settle(f->partition);
}

static bool abandon(struct fixture *f, int i)
{
	f->messages[i]->abandoned = true;
	return finish(f, i);
}

static void what_precedes_an_unfinished_message_is_committed(void **state)
{
	struct fixture f = fixture();
	(void)state;
	assert_false(finish(&f, 1));
	assert_true(finish(&f, 0));
	assert_int_equal(f.partition->committable, 12);
	assert_false(finish(&f, 3));
	assert_true(finish(&f, 2));
	assert_int_equal(f.partition->committable, 14);
	kafka_partitions_remove(&f.all, f.partition);
}

/* It is read again, and what follows it too. What precedes it is not. */
static void what_precedes_an_abandoned_message_is_committed(void **state)
{
	struct fixture f = fixture();
	(void)state;
	assert_false(abandon(&f, 2));
	assert_false(finish(&f, 1));
	assert_true(finish(&f, 0));
	assert_int_equal(f.partition->committable, 12);
	assert_false(finish(&f, 3));
	kafka_partitions_remove(&f.all, f.partition);
}

static void a_partition_that_is_gone_waits_for_its_messages(void **state)
{
	struct fixture f = fixture();
	(void)state;
	kafka_partitions_remove(&f.all, f.partition);
	assert_null(kafka_partitions_find(&f.all, "topic", 3));
	for (int i = 0; i < MESSAGES; i++)
		assert_false(finish(&f, i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_precedes_an_unfinished_message_is_committed),
		cmocka_unit_test(what_precedes_an_abandoned_message_is_committed),
		cmocka_unit_test(a_partition_that_is_gone_waits_for_its_messages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
