/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/memory.h"
#include "base/system.h"

#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

static const struct metric charged_bytes = {
	"otelcol_memory_charged_bytes", METRIC_GAUGE, "By",
	"Bytes charged for requests, batches and queues; with what was resident at the start, they stay below the soft limit."
};
static const struct metric soft_limit_bytes = {
	"otelcol_memory_soft_limit_bytes", METRIC_GAUGE, "By", "Above it requests are refused: the hard limit less the spike."
};
static const struct metric resting_bytes = {
	"otelcol_memory_resting_bytes", METRIC_GAUGE, "By", "Resident memory when the program became ready."
};

const struct metric *const memory_metrics[] = { &charged_bytes, &soft_limit_bytes, &resting_bytes, NULL };

int64_t memory_ceiling(void)
{
	return (int64_t)(system_memory() / 5 * 4);
}

int64_t memory_resident(void)
{
	long total = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "re");
	if (!file)
		return 0;
	if (fscanf(file, "%ld %ld", &total, &resident) != 2)
		resident = 0;
	fclose(file);
	return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

void memory_init(struct memory *m, int64_t limit, int64_t spike)
{
	*m = (struct memory){ .limit = limit, .soft = limit - spike };
}

void memory_ready(struct memory *m)
{
	/* Receivers may have begun: what is charged already counts once. */
	int64_t resident = memory_resident(), charged = atomic_load(&m->charged);
	atomic_store(&m->baseline, resident > charged ? resident - charged : 0);
}

void memory_check(struct memory *m)
{
	int64_t resident = memory_resident();
	if (resident > m->soft) {
		malloc_trim(0);
		resident = memory_resident();
	}
	atomic_store(&m->over, resident > m->limit);
}

bool memory_take(struct memory *m, int64_t bytes, int64_t soft)
{
	int64_t before = atomic_fetch_add(&m->charged, bytes);
	if (bytes <= 0)
		return true;
	if (!atomic_load(&m->over) && before + bytes + atomic_load(&m->baseline) <= soft)
		return true;
	atomic_fetch_sub(&m->charged, bytes);
	return false;
}

void memory_add(struct memory *m, int64_t bytes)
{
	atomic_fetch_add(&m->charged, bytes);
}

void memory_give(struct memory *m, int64_t bytes)
{
	atomic_fetch_sub(&m->charged, bytes);
}

static void refresh(void *argument)
{
	struct memory *m = argument;
	series_set(m->charged_now, atomic_load(&m->charged));
	series_set(m->at_rest, atomic_load(&m->baseline));
}

void memory_show(struct memory *m, struct metrics *metrics)
{
	m->charged_now = metrics_series(metrics, &charged_bytes, NULL);
	m->at_rest = metrics_series(metrics, &resting_bytes, NULL);
	series_set(metrics_series(metrics, &soft_limit_bytes, NULL), m->soft);
	metrics_on_scrape(metrics, refresh, m);
}

void memory_hide(struct memory *m, struct metrics *metrics)
{
	metrics_off_scrape(metrics, m);
}
