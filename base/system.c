/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/path.h"

#define GROUPS "/proc/self/cgroup"
#define ROOT "/sys/fs/cgroup"

/* The numbers in a file of a group; false: "max", none, or no file. */
static bool read_numbers(const char *group, const char *file, long long *first, long long *second)
{
	char path[PATH_MAX], text[64];
	snprintf(path, sizeof path, "%s/%s", group, file);
	FILE *stream = fopen(path, "re");
	if (!stream)
		return false;
	char *got = fgets(text, sizeof text, stream), *end = text;
	fclose(stream);
	*first = got ? strtoll(text, &end, 10) : 0;
	*second = got ? strtoll(end, NULL, 10) : 0;
	return end != text;
}

/* What a group allows; UINT64_MAX: no limit. */
typedef uint64_t read_limit(const char *group);

static uint64_t read_bytes(const char *group, const char *file)
{
	long long limit, none;
	return read_numbers(group, file, &limit, &none) ? (uint64_t)limit : UINT64_MAX;
}

/* Above memory.high the kernel slows the group down and reclaims its pages, without end. */
static uint64_t read_memory_v2(const char *group)
{
	uint64_t high = read_bytes(group, "memory.high"), max = read_bytes(group, "memory.max");
	return high < max ? high : max;
}

static uint64_t read_memory_v1(const char *group)
{
	return read_bytes(group, "memory.limit_in_bytes");
}

/* Whole cores: what is begun counts. */
static uint64_t cores_of(long long quota, long long period)
{
	return quota > 0 && period > 0 ? (uint64_t)((quota + period - 1) / period) : UINT64_MAX;
}

static uint64_t read_cores_v2(const char *group)
{
	long long quota, period;
	return read_numbers(group, "cpu.max", &quota, &period) ? cores_of(quota, period)
							       : UINT64_MAX;
}

static uint64_t read_cores_v1(const char *group)
{
	long long quota, period, none;
	return read_numbers(group, "cpu.cfs_quota_us", &quota, &none) &&
			       read_numbers(group, "cpu.cfs_period_us", &period, &none)
		       ? cores_of(quota, period)
		       : UINT64_MAX;
}

static const struct resource {
	const char *controller;
	read_limit *v1, *v2;
} memory = { "memory", read_memory_v1, read_memory_v2 },
  cores = { "cpu", read_cores_v1, read_cores_v2 };

/* The smallest limit from the group of this path up to the root. */
static uint64_t climb(const char *root, const char *controller, const char *group, read_limit *read)
{
	char path[PATH_MAX], below[PATH_MAX];
	uint64_t min = UINT64_MAX;
	snprintf(below, sizeof below, "%s", group);
	for (;;) {
		snprintf(path, sizeof path, "%s%s%s%s", root, *controller ? "/" : "", controller,
			 below);
		uint64_t limit = read(path);
		min = limit < min ? limit : min;
		char *slash = strrchr(below, '/');
		if (!slash)
			return min;
		*slash = '\0';
	}
}

static bool names(const char *controllers, const char *controller)
{
	for (const char *at = controllers; *at;) {
		size_t len = strcspn(at, ",");
		if (len == strlen(controller) && !memcmp(at, controller, len))
			return true;
		at += len + (at[len] == ',');
	}
	return false;
}

/* "0::/a/b" is the group of cgroup v2, "5:cpu,memory:/a" one of v1 (cgroups(7), "/proc files"). */
static uint64_t limit_of_line(char *line, const char *root, const struct resource *resource)
{
	line[strcspn(line, "\n")] = '\0';
	char *controllers = strchr(line, ':');
	char *group = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!group)
		return UINT64_MAX;
	*group++ = '\0';
	if (!*++controllers)
		return climb(root, "", group, resource->v2);
	return names(controllers, resource->controller)
		       ? climb(root, resource->controller, group, resource->v1)
		       : UINT64_MAX;
}

static uint64_t group_limit(const char *groups, const char *root, const struct resource *resource)
{
	uint64_t min = UINT64_MAX;
	char line[PATH_MAX];
	FILE *file = fopen(groups, "re");
	while (file && fgets(line, sizeof line, file)) {
		uint64_t limit = limit_of_line(line, root, resource);
		min = limit < min ? limit : min;
	}
	if (file)
		fclose(file);
	return min;
}

uint64_t system_group_memory(const char *groups, const char *root)
{
	return group_limit(groups, root, &memory);
}

uint64_t system_group_cores(const char *groups, const char *root)
{
	return group_limit(groups, root, &cores);
}

uint64_t system_memory(void)
{
	uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t group = system_group_memory(GROUPS, ROOT);
	return group < machine ? group : machine;
}

uint32_t system_cores(void)
{
	cpu_set_t set;
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	int allowed = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
								  : (int)(online > 0 ? online : 1);
	uint64_t group = system_group_cores(GROUPS, ROOT);
	return group < (uint64_t)allowed ? (uint32_t)group : (uint32_t)allowed;
}

static const char *reason_of(const char *path, int number)
{
	char target;
	return number == ELOOP && readlink(path, &target, 1) > 0 ? "it is a symbolic link, "
								   "which outputs do not follow"
								 : strerror(number);
}

int system_open_output(const char *path, int how, struct error *err)
{
	int follow = path_is_device(path) ? 0 : O_NOFOLLOW;
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | how | follow, 0640);
	if (fd < 0) {
		int reason = errno;
		error_set(err, ERROR_CONFIG, "cannot open %s: %s", path, reason_of(path, reason));
		errno = reason;
		return -1;
	}
	int flags = fcntl(fd, F_GETFL);
	if (flags >= 0)
		fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
	return fd;
}

/* After a power cut, a directory is there for sure if the one above it was synced. One that can be
 * written to, but not read, cannot be synced. */
static bool make_directory(const char *path, unsigned mode)
{
	if (mkdir(path, mode) != 0)
		return errno == EEXIST;
	char *above = memory_format("%s/..", path);
	int fd = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	memory_free(above);
	if (fd < 0)
		return errno == EACCES;
	bool ok = fsync(fd) == 0 || errno == EINVAL;
	int reason = errno;
	close(fd);
	errno = reason;
	return ok;
}

bool system_make_directories(const char *path, unsigned mode)
{
	char *copy = memory_text(path);
	bool ok = true, last = !*copy;
	for (char *at = copy + 1; ok && !last; at++) {
		char here = *at;
		last = here == '\0';
		if (here != '/' && !last)
			continue;
		*at = '\0';
		ok = make_directory(copy, mode);
		*at = here;
	}
	int reason = errno;
	memory_free(copy);
	errno = reason;
	return ok;
}

int64_t system_resident(void)
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

int64_t system_heap(int64_t *from_system)
{
	struct mallinfo2 info = mallinfo2();
	*from_system = (int64_t)(info.arena + info.hblkhd);
	return (int64_t)(info.uordblks + info.hblkhd);
}
