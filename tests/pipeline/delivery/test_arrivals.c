/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "pipeline/delivery/arrivals.h"

enum { COUNT = 300, STEPS = 20000 };

struct waiting {
	uint64_t time;
	uint32_t place;
};

static uint64_t earliest_of(const struct waiting *all)
{
	uint64_t earliest = 0;
	for (size_t i = 0; i < COUNT; i++)
		if (all[i].place && (!earliest || all[i].time < earliest))
			earliest = all[i].time;
	return earliest;
}

static void the_earliest_is_known_whoever_comes_and_goes(void **state)
{
	static struct waiting all[COUNT];
	struct arrivals a = { 0 };
	uint32_t random = 1;
	(void)state;
	assert_int_equal(arrivals_earliest(&a), 0);
	for (int i = 0; i < STEPS; i++) {
		random = random * 1664525 + 1013904223;
		struct waiting *w = &all[(random >> 8) % COUNT];
		if (w->place) {
			arrivals_remove(&a, &w->place);
		} else {
			w->time = 1 + (random >> 20) % 500; /* some are equal */
			arrivals_add(&a, w->time, &w->place);
		}
		assert_int_equal(arrivals_earliest(&a), earliest_of(all));
	}
	for (size_t i = 0; i < COUNT; i++) {
		arrivals_remove(&a, &all[i].place); /* also of those that are not there */
		assert_int_equal(all[i].place, 0);
		assert_int_equal(arrivals_earliest(&a), earliest_of(all));
	}
	assert_int_equal(a.heap.count, 0);
	arrivals_fini(&a);
}

static void test_orders(void **state)
{
	static struct waiting all[COUNT];
	struct arrivals a = { 0 };
	(void)state;
	for (size_t order = 0; order < 2; order++) {
		for (size_t i = 0; i < COUNT; i++) {
			all[i].time = order ? COUNT - i : i + 1;
			arrivals_add(&a, all[i].time, &all[i].place);
		}
		for (size_t i = 0; i < COUNT; i++) {
			assert_int_equal(arrivals_earliest(&a), i + 1);
			arrivals_remove(&a, &all[order ? COUNT - 1 - i : i].place);
		}
	}
	arrivals_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_earliest_is_known_whoever_comes_and_goes),
		cmocka_unit_test(test_orders),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
