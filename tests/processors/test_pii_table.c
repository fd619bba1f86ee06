/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory.h"
#include "processors/pii_scan.h"

/* Each row of the table of detectors, with no other detector at work. */
static struct pii_engine engine;
static struct pii_scratch *scratch;

static void open_alone(int detector)
{
	memset(&engine, 0, sizeof engine);
	engine.actions[ROLE_FILE][detector] = PII_MASK;
	assert_true(pii_engine_init(&engine, NULL, 0, NULL));
	scratch = memory_new(sizeof *scratch);
}

static void close_alone(void)
{
	pii_engine_fini(&engine);
	pii_scratch_fini(scratch);
	memory_free(scratch);
}

static unsigned examples_that_fail(const struct pii_detector_info *info, bool select)
{
	unsigned wrong = 0;
	for (const struct pii_example *e = info->examples; e->in; e++) {
		struct pii_verdict verdict =
			pii_scan_plain(&engine, scratch, ROLE_FILE, view_of(e->in), select);
		if (verdict.outcome == PII_CHANGED && view_is(verdict.text, e->out))
			continue;
		print_error("%s: %s -> %.*s, not %s\n", info->name, e->in, (int)verdict.text.len,
			    verdict.text.at ? (const char *)verdict.text.at : "", e->out);
		wrong++;
	}
	for (const char *const *other = info->others; *other; other++) {
		struct pii_verdict verdict =
			pii_scan_plain(&engine, scratch, ROLE_FILE, view_of(*other), select);
		if (verdict.outcome == PII_CLEAN)
			continue;
		print_error("%s: %s -> %.*s\n", info->name, *other, (int)verdict.text.len,
			    verdict.text.at);
		wrong++;
	}
	return wrong;
}

static void every_example_of_the_table_holds(void **state)
{
	(void)state;
	unsigned wrong = 0;
	for (int detector = 0; detector < PII_PATTERNS; detector++) {
		open_alone(detector);
		wrong += examples_that_fail(&pii_detectors[detector], true);
		wrong += examples_that_fail(&pii_detectors[detector], false);
		close_alone();
	}
	assert_int_equal(wrong, 0);
}

/* What docs/POLICY.md is made of: no row is empty, and every rule has a function. */
static void every_row_is_complete(void **state)
{
	(void)state;
	for (int detector = 0; detector < PII_PATTERNS; detector++) {
		const struct pii_detector_info *info = &pii_detectors[detector];
		assert_true(*info->name && *info->matches && *info->leaves && *info->checks);
		assert_true(info->rule_count > 0 || detector == PII_TOO_LONG);
		assert_true((info->examples->in && *info->others) || detector == PII_TOO_LONG);
		for (size_t i = 0; i < info->rule_count; i++)
			assert_true(info->rules[i].find && info->rules[i].needs.length);
	}
}

/* A string that selects rules of two words of the set is searched twice. Of the detectors that are
 * enabled by default, only rules of access keys are in the second word. */
static void the_rules_of_all_default_detectors_but_one_fit_one_word(void **state)
{
	(void)state;
	memset(&engine, 0, sizeof engine);
	for (int detector = 0; detector < PII_PATTERNS; detector++)
		if (pii_detectors[detector].on)
			engine.actions[ROLE_FILE][detector] = PII_MASK;
	assert_true(pii_engine_init(&engine, NULL, 0, NULL));
	assert_true(engine.rule_count > 64);
	for (size_t i = 64; i < engine.rule_count; i++)
		assert_int_equal(engine.rules[i].detector, PII_ACCESS_KEY);
	pii_engine_fini(&engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_example_of_the_table_holds),
		cmocka_unit_test(every_row_is_complete),
		cmocka_unit_test(the_rules_of_all_default_detectors_but_one_fit_one_word),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
