/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/memory.h"
#include "base/system.h"

#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

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
