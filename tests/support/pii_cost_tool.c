/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/callgrind.h>

#include "base/memory.h"
#include "processors/pii_config.h"

/*
 * What it costs to scan texts with every detector, for callgrind (--collect-atstart=no):
 *
 *	pii_cost_tool <TEXTS
 *
 * TEXTS are groups: a line "NAME COUNT", then COUNT times a line with a length and that many bytes.
 * Each group's cost is dumped under its name; its bytes are printed. Verdicts are not remembered;
 * buffers are warmed up by a first scan.
 */
static struct pii_engine engine;
static struct pii_scratch *scratch;

static void start(void)
{
	static struct pii_config config;
	struct error err;
	if (!config_bind(&pii_config_table, NULL, "pii", &config, &err) ||
	    !pii_config_engine(&config, &engine, &err)) {
		fprintf(stderr, "pii_cost_tool: %s\n", err.text);
		exit(1);
	}
	scratch = memory_new(sizeof *scratch);
}

static struct view read_text(void)
{
	size_t len = 0;
	if (scanf("%zu", &len) != 1 || getchar() != '\n')
		exit(1);
	uint8_t *at = memory_array(len + BYTES_SLACK, 1);
	if (fread(at, 1, len, stdin) != len)
		exit(1);
	return (struct view){ at, len };
}

static void scan_all(const struct view *texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		pii_scan_plain(&engine, scratch, ROLE_FILE, texts[i], true);
}

static void run_group(const char *name, size_t count)
{
	struct view *texts = memory_array(count, sizeof *texts);
	size_t bytes = 0;
	for (size_t i = 0; i < count; i++) {
		texts[i] = read_text();
		bytes += texts[i].len;
	}
	scan_all(texts, count);
	CALLGRIND_TOGGLE_COLLECT;
	scan_all(texts, count);
	CALLGRIND_TOGGLE_COLLECT;
	CALLGRIND_DUMP_STATS_AT(name);
	printf("%s %zu %zu\n", name, count, bytes);
	for (size_t i = 0; i < count; i++)
		memory_free((void *)texts[i].at);
	memory_free(texts);
}

int main(void)
{
	char name[64];
	size_t count;
	start();
	while (scanf("%63s %zu", name, &count) == 2)
		run_group(name, count);
	return 0;
}
