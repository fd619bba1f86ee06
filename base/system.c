/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROOT "/sys/fs/cgroup"

/* The number in a file; "max", none, or no file: no limit. */
static uint64_t read_limit(const char *path)
{
	char text[32];
	FILE *file = fopen(path, "re");
	if (!file)
		return UINT64_MAX;
	char *got = fgets(text, sizeof text, file);
	fclose(file);
	char *end = text;
	uint64_t limit = got ? strtoull(text, &end, 10) : 0;
	return end == text ? UINT64_MAX : limit;
}

/* The smallest limit from the group of this path up to the root. */
static uint64_t climb(const char *root, const char *file, const char *group)
{
	char path[PATH_MAX], below[PATH_MAX];
	uint64_t least = UINT64_MAX;
	snprintf(below, sizeof below, "%s", group);
	for (;;) {
		snprintf(path, sizeof path, "%s%s/%s", root, below, file);
		uint64_t limit = read_limit(path);
		least = limit < least ? limit : least;
		char *slash = strrchr(below, '/');
		if (!slash)
			return least;
		*slash = '\0';
	}
}

/* "0::/a/b" is the group of cgroup v2, "5:cpu,memory:/a" one of v1 (cgroups(7), "/proc files"). */
static uint64_t limit_of_line(char *line)
{
	line[strcspn(line, "\n")] = '\0';
	char *controllers = strchr(line, ':');
	char *group = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!group)
		return UINT64_MAX;
	*group++ = '\0';
	if (!controllers[1])
		return climb(ROOT, "memory.max", group);
	if (strstr(controllers, "memory"))
		return climb(ROOT "/memory", "memory.limit_in_bytes", group);
	return UINT64_MAX;
}

uint64_t system_memory(void)
{
	uint64_t least = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	char line[PATH_MAX];
	FILE *file = fopen("/proc/self/cgroup", "re");
	while (file && fgets(line, sizeof line, file)) {
		uint64_t limit = limit_of_line(line);
		least = limit < least ? limit : least;
	}
	if (file)
		fclose(file);
	return least;
}
