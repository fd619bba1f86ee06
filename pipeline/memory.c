/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/memory.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int64_t read_number(const char *path)
{
	FILE *file = fopen(path, "re");
	char text[64] = "";
	if (!file)
		return -1;
	bool got = fgets(text, sizeof text, file);
	fclose(file);
	if (!got || text[0] < '0' || text[0] > '9')
		return -1; /* "max" */
	return strtoll(text, NULL, 10);
}

/* The lowest memory.max on the way from our cgroup (v2) up to the root. */
static int64_t cgroup_limit(void)
{
	char line[512], path[600];
	int64_t lowest = -1;
	FILE *file = fopen("/proc/self/cgroup", "re");
	while (file && fgets(line, sizeof line, file)) {
		if (strncmp(line, "0::", 3) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		for (char *end = line + strlen(line); end >= line + 3; end--) {
			if (*end != '/' && *end != '\0')
				continue;
			*end = '\0';
			snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", line + 3);
			int64_t limit = read_number(path);
			if (limit > 0 && (lowest < 0 || limit < lowest))
				lowest = limit;
		}
	}
	if (file)
		fclose(file);
	int64_t v1 = read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes");
	return lowest < 0 || (v1 > 0 && v1 < lowest) ? v1 : lowest;
}

int64_t memory_ceiling(void)
{
	int64_t machine = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	int64_t limit = cgroup_limit();
	if (limit <= 0 || limit > machine)
		limit = machine;
	return limit / 5 * 4;
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
	atomic_store(&m->baseline, memory_resident());
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
