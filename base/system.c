/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
static uint64_t climb(const char *root, const char *controller, const char *file, const char *group)
{
	char path[PATH_MAX], below[PATH_MAX];
	uint64_t least = UINT64_MAX;
	snprintf(below, sizeof below, "%s", group);
	for (;;) {
		snprintf(path, sizeof path, "%s%s%s/%s", root, controller, below, file);
		uint64_t limit = read_limit(path);
		least = limit < least ? limit : least;
		char *slash = strrchr(below, '/');
		if (!slash)
			return least;
		*slash = '\0';
	}
}

/* "0::/a/b" is the group of cgroup v2, "5:cpu,memory:/a" one of v1 (cgroups(7), "/proc files"). */
static uint64_t limit_of_line(char *line, const char *root)
{
	line[strcspn(line, "\n")] = '\0';
	char *controllers = strchr(line, ':');
	char *group = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!group)
		return UINT64_MAX;
	*group++ = '\0';
	if (!controllers[1])
		return climb(root, "", "memory.max", group);
	if (strstr(controllers, "memory"))
		return climb(root, "/memory", "memory.limit_in_bytes", group);
	return UINT64_MAX;
}

uint64_t system_group_memory(const char *groups, const char *root)
{
	uint64_t least = UINT64_MAX;
	char line[PATH_MAX];
	FILE *file = fopen(groups, "re");
	while (file && fgets(line, sizeof line, file)) {
		uint64_t limit = limit_of_line(line, root);
		least = limit < least ? limit : least;
	}
	if (file)
		fclose(file);
	return least;
}

uint64_t system_memory(void)
{
	uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t group = system_group_memory("/proc/self/cgroup", "/sys/fs/cgroup");
	return group < machine ? group : machine;
}
