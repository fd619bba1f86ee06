/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PROCESSORS_POLICY_FIXTURE_H
#define TESTS_PROCESSORS_POLICY_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/support/policy.h"

/* A processor and the tables that it runs on, one of each in a test program. */
static struct policy policy;
static struct profiles p;

/* With a resource, a scope, a Profile and two samples. */
static inline void open_processor(const struct component_factory *factory, const char *yaml)
{
	policy_must_open(&policy, factory, yaml);
	tables_init(&p, NULL, 2);
}

static inline int close_policy(void **state)
{
	(void)state;
	policy_close(&policy);
	profiles_fini(&p);
	return 0;
}

#endif
