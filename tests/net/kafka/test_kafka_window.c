/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kafka/kafka_window.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static struct kafka_window window(bool unlimited)
{
	return (struct kafka_window){
		.unlimited = unlimited, .batch_bytes = 1000, .batch_messages = 20, .linger_ns = 10
	};
}

/* How many of `count` messages are admitted at this time. */
static int admitted(struct kafka_window *w, int count, int64_t bytes, uint64_t now)
{
	int n = 0;
	while (n < count && kafka_window_admit(w, bytes, now))
		n++;
	return n;
}

static void release(struct kafka_window *w, int count)
{
	while (count--)
		kafka_window_release(w);
}

static void test_five_messages_of_any_size(void **state)
{
	struct kafka_window w = window(false);
	(void)state;
	assert_int_equal(admitted(&w, 100, 900, 0), 5);
	release(&w, 1);
	assert_int_equal(admitted(&w, 100, 900, 100), 1);
}

static void test_a_group_that_one_request_holds(void **state)
{
	struct kafka_window w = window(false);
	(void)state;
	assert_int_equal(admitted(&w, 100, 100, 0), 10); /* batch_bytes */
	release(&w, 10);
	assert_int_equal(admitted(&w, 100, 1, 100), 20); /* batch_messages */
	release(&w, 20);
	assert_int_equal(admitted(&w, 7, 1, 200), 7);
	assert_int_equal(admitted(&w, 100, 1, 205), 13);
	release(&w, 20);
	assert_int_equal(admitted(&w, 7, 1, 300), 7);
	assert_int_equal(admitted(&w, 100, 1, 306), 0); /* the request may be on its way */
}

static void test_a_new_group_begins_when_nothing_is_in_flight(void **state)
{
	struct kafka_window w = window(false);
	(void)state;
	assert_int_equal(admitted(&w, 8, 1, 0), 8);
	release(&w, 4);
	assert_int_equal(admitted(&w, 100, 1, 100), 1); /* four are in flight */
	release(&w, 5);
	assert_int_equal(admitted(&w, 100, 1, 100), 20);
}

static void test_a_client_that_is_not_idempotent_gets_everything(void **state)
{
	struct kafka_window w = window(true);
	(void)state;
	assert_int_equal(admitted(&w, 100, 900, 0), 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_five_messages_of_any_size),
		cmocka_unit_test(test_a_group_that_one_request_holds),
		cmocka_unit_test(test_a_new_group_begins_when_nothing_is_in_flight),
		cmocka_unit_test(test_a_client_that_is_not_idempotent_gets_everything),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
