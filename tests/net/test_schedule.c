/* SPDX-License-Identifier: Apache-2.0 */
#include "net/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"

enum { ENTRIES = 1000 };

struct scene {
	struct loop *loop;
	struct schedule *schedule;
	struct schedule_entry entries[ENTRIES];
	uint32_t fired, wanted;
	uint64_t last;
	bool again; /* the first entry adds itself again, once */
};

static void fire(void *context, struct schedule_entry *entry)
{
	struct scene *s = context;
	assert_int_equal(entry->place, 0);
	assert_true(entry->due >= s->last);
	assert_true(entry->due <= clock_now());
	s->last = entry->due;
	if (s->again) {
		s->again = false;
		schedule_add(s->schedule, entry, entry->due);
		return;
	}
	if (++s->fired == s->wanted)
		loop_stop(s->loop);
}

static int begin(void **state)
{
	struct scene *s = calloc(1, sizeof *s);
	s->loop = loop_new(NULL);
	s->schedule = schedule_new(s->loop, fire, s);
	*state = s;
	return 0;
}

static int end(void **state)
{
	struct scene *s = *state;
	schedule_unref(&s->schedule);
	loop_unref(&s->loop);
	free(s);
	return 0;
}

static void entries_fire_in_the_order_of_their_deadlines(void **state)
{
	struct scene *s = *state;
	uint64_t now = clock_now();
	uint32_t random = 1;
	for (int i = 0; i < ENTRIES; i++) {
		random = random * 1664525 + 1013904223;
		schedule_add(s->schedule, &s->entries[i], now + random % 50000000);
	}
	s->wanted = ENTRIES;
	s->again = true;
	loop_run(s->loop);
	assert_int_equal(s->fired, ENTRIES);
}

static void a_removed_entry_does_not_fire_and_a_moved_one_fires_once(void **state)
{
	struct scene *s = *state;
	uint64_t now = clock_now();
	for (int i = 0; i < ENTRIES; i++)
		schedule_add(s->schedule, &s->entries[i], now + 1000000 * (uint64_t)(i % 37));
	for (int i = 0; i < ENTRIES; i += 2)
		schedule_remove(s->schedule, &s->entries[i]);
	for (int i = 1; i < ENTRIES; i += 4)
		schedule_add(s->schedule, &s->entries[i], now + 5000000);
	schedule_remove(s->schedule, &s->entries[0]); /* is not waiting */
	s->wanted = ENTRIES / 2;
	loop_run(s->loop);
	assert_int_equal(s->fired, ENTRIES / 2);
	for (int i = 0; i < ENTRIES; i++)
		assert_int_equal(s->entries[i].place, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(entries_fire_in_the_order_of_their_deadlines),
		TEST(a_removed_entry_does_not_fire_and_a_moved_one_fires_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
