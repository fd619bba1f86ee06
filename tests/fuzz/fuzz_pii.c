/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "processors/pii_config.h"
#include "profile/wire.h"
#include "tests/processors/pii_reference.h"

#include <stdlib.h>

/* The selection of rules changes no verdict. A reference implementation made of regular expressions
 * finds the same. Masking keeps UTF-8 valid, and its output is bounded. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct pii_engine engine;
static struct pii_scratch *scratch;
static struct reference reference;
static struct bytes expected;

static void start(void)
{
	static struct pii_config config;
	if (!config_bind(&pii_config_table, NULL, "pii", &config, NULL) ||
	    !pii_config_engine(&config, &engine, NULL))
		abort();
	scratch = memory_new(sizeof *scratch);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static uint8_t first[1 << 20];
	struct view text = { data, len };
	if (len > REGEX_TEXT_MAX)
		return 0;
	if (!scratch)
		start();
	for (int i = 0; i < 2; i++) {
		enum site_role role = i ? ROLE_FILE : ROLE_VALUE;
		struct pii_verdict all = pii_scan_plain(&engine, scratch, role, text, false);
		size_t size = all.text.len;
		compare(role, text, &all);
		if (size > sizeof first || size > len + 21 * 512)
			abort();
		if (size)
			memcpy(first, all.text.at, size);
		if (size && wire_utf8_slow(data, len) && !wire_utf8_slow(first, size))
			abort();
		struct pii_verdict chosen = pii_scan(&engine, scratch, role, text);
		if (chosen.hits != all.hits || chosen.outcome != all.outcome ||
		    chosen.text.len != size || (size && memcmp(chosen.text.at, first, size) != 0))
			abort();
		if (all.hits && pii_known_clean(scratch, pii_key(engine.class_of[role], text)))
			abort();
	}
	return 0;
}
