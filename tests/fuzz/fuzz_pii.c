/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "processors/pii_config.h"
#include "profile/wire.h"
#include "tests/processors/pii_reference.h"

#include <stdlib.h>

/* The selection of rules changes no verdict, neither with the detectors of the default
 * configuration nor with all of them. Of the first, a reference implementation made of regular
 * expressions finds the same. With the limit of effort, a string has that verdict too or is
 * replaced as a whole. Masking keeps UTF-8 valid, and its output is bounded. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define UNLIMITED 1000000
static struct pii_engine engine, all_engine;
static struct pii_scratch *scratch, *all_scratch;
static struct reference reference;
static struct bytes expected;

static void start(void)
{
	static struct pii_config config;
	for (int role = ROLE_KEY + 1; role < ROLE_COUNT; role++)
		memset(all_engine.actions[role], PII_MASK, PII_PATTERNS);
	if (!config_bind(&pii_config_table, NULL, "pii", &config, NULL) ||
	    !pii_config_engine(&config, &engine, NULL) ||
	    !pii_engine_init(&all_engine, NULL, 0, NULL))
		abort();
	engine.effort = all_engine.effort = UNLIMITED;
	scratch = memory_new(sizeof *scratch);
	all_scratch = memory_new(sizeof *all_scratch);
	bytes_init(&expected, 1 << 20);
	if (!reference_open(&reference))
		abort();
}

/* Only for strings that the reference implementation supports. */
static void compare(enum site_role role, struct view text, const struct pii_verdict *verdict)
{
	uint64_t hits = reference_mask(&reference, engine.actions[role], text, &expected);
	if (reference.overflowed)
		return;
	if (hits != verdict->hits || !view_equal(bytes_view(&expected), verdict->text))
		abort();
}

static bool is_same(const struct pii_verdict *a, const struct pii_verdict *b,
		    const uint8_t *text_of_b)
{
	return a->hits == b->hits && a->outcome == b->outcome && a->text.len == b->text.len &&
	       (!a->text.len || memcmp(a->text.at, text_of_b, a->text.len) == 0);
}

static void scan_both_ways(struct pii_engine *by, struct pii_scratch *with, enum site_role role,
			   struct view text)
{
	static uint8_t first[1 << 20];
	struct pii_verdict all = pii_scan_plain(by, with, role, text, false);
	size_t size = all.text.len;
	if (by == &engine)
		compare(role, text, &all);
	if (size > sizeof first || size > text.len + 21 * 512)
		abort();
	if (size)
		memcpy(first, all.text.at, size);
	if (size && wire_utf8_slow(text.at, text.len) && !wire_utf8_slow(first, size))
		abort();
	struct pii_verdict chosen = pii_scan(by, with, role, text);
	if (!is_same(&chosen, &all, first))
		abort();
	if (all.hits && pii_known_clean(with, pii_key(by->class_of[role], text)))
		abort();
	by->effort = PII_EFFORT;
	struct pii_verdict limited = pii_scan_plain(by, with, role, text, true);
	by->effort = UNLIMITED;
	if (limited.hits >> PII_TOO_LONG & 1 ? !view_is(limited.text, PII_MASK_TEXT)
					     : !is_same(&limited, &all, first))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct view text = { data, len };
	if (len > REGEX_TEXT_MAX)
		return 0;
	if (!scratch)
		start();
	scan_both_ways(&engine, scratch, ROLE_VALUE, text);
	scan_both_ways(&engine, scratch, ROLE_FILE, text);
	scan_both_ways(&all_engine, all_scratch, ROLE_FILE, text);
	return 0;
}
