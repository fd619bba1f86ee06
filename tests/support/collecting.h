/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_COLLECTING_H
#define TESTS_SUPPORT_COLLECTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/memory.h"
#include "profile/collect/collect.h"
#include "tests/support/open.h"
#include "tests/support/oracle.h"

/* Shared by the tests of profile/collect: open tables, a collector, and an independent judge of the
 * output. */
#define NONE ((struct list){ 0 })
#define LIST(...) open_list(&f->p, __VA_ARGS__, OPEN_END)
#define TIMES(...) ((const int64_t[]){ __VA_ARGS__, -1 })

struct fixture {
	struct profiles p;
	struct collect *c;
	struct collect_added added;
	struct error err;
};

extern const struct collect_limits collecting_wide;

int collecting_setup(void **state);
int collecting_teardown(void **state);

/* Replaces the collector by an empty one. */
void collecting_limit(struct fixture *f, struct collect_limits limits);

enum collect_result collecting_add(struct fixture *f);

/* Seals what was collected, which must be valid, and compares it. */
void assert_leaves(struct fixture *f, const char *expected);
void assert_collects(struct fixture *f, const char *expected);

/* The first Profile of a resource and scope without attributes, and its expected text. */
void collecting_profile(struct fixture *f);
#define HEAD "resource\n scope\n  profile type=cpu/ns\n"

/* The same, changed by a processor. */
void collecting_changed_profile(struct fixture *f);

#define TEST(name) cmocka_unit_test_setup_teardown(name, collecting_setup, collecting_teardown)

#endif
