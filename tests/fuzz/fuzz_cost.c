/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/digest.h"
#include "base/hash.h"
#include "base/memory.h"
#include "processors/pii_config.h"

/*
 * Searches for the string that costs the detectors most per byte. The cost is the number of loop
 * iterations, which is the same in every build and on every machine: the detectors are compiled
 * into this target a second time, with loops that count. A new maximum of the cost counts as new
 * coverage for libFuzzer, so the search climbs. The most expensive string is written to the file
 * that FUZZ_RECORD names, and its cost is printed.
 *
 * Fails above STEPS_MAX. tests/processors/test_pii_cost.py counts the instructions for the strings
 * among the seeds.
 */
#define STEPS_MAX 20 /* per byte */
#define TEXT_MIN 64  /* below, the fixed cost of a string exceeds the cost of its bytes */
#define LEVELS 4096
#define LEVELS_PER_STEP 64

static uint64_t steps;

#pragma GCC diagnostic ignored "-Wdangling-else"
/* clang-format off */
#define while(...) while ((__VA_ARGS__) && ++steps)
#define for(...) for (__VA_ARGS__) if (!++steps) {} else
/* clang-format on */

#include "processors/pii_detectors.c"
#include "processors/pii_engine.c"
#include "processors/pii_find_account.c"
#include "processors/pii_find_address.c"
#include "processors/pii_find_credential.c"
#include "processors/pii_find_key.c"
#include "processors/pii_find_login.c"
#include "processors/pii_find_number.c"
#include "processors/pii_find_path.c"
#include "processors/pii_find_place.c"
#include "processors/pii_find_secret.c"
#include "processors/pii_found.c"
#include "processors/pii_scan.c"
#include "processors/pii_text.c"

#undef while
#undef for

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t levels[LEVELS];

static struct pii_engine engine;
static struct pii_scratch *scratch;

static void start(void)
{
	static struct pii_config config;
	if (!config_bind(&pii_config_table, NULL, "pii", &config, NULL) ||
	    !pii_config_engine(&config, &engine, NULL))
		abort();
	scratch = memory_new(sizeof *scratch);
}

static void record(const uint8_t *data, size_t len, uint64_t level)
{
	static uint64_t highest;
	const char *path = getenv("FUZZ_RECORD");
	if (level <= highest || !path)
		return;
	highest = level;
	FILE *file = fopen(path, "wb");
	if (!file || fwrite(data, 1, len, file) != len || fclose(file))
		abort();
	fprintf(stderr,
		"most expensive: %.2f steps per "
		"byte, %zu bytes\n",
		(double)level / LEVELS_PER_STEP, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len < TEXT_MIN || len > REGEX_TEXT_MAX)
		return 0;
	if (!scratch)
		start();
	steps = 0;
	pii_scan_plain(&engine, scratch, ROLE_FILE, (struct view){ data, len }, true);
	uint64_t level = steps * LEVELS_PER_STEP / len;
	levels[level < LEVELS ? level : LEVELS - 1] = 1;
	record(data, len, level);
	if (level > STEPS_MAX * LEVELS_PER_STEP)
		abort();
	return 0;
}
