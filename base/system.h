/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_SYSTEM_H
#define BASE_SYSTEM_H

#include <stdint.h>

/*
 * Bytes of memory that this process may use: the smallest limit of its cgroup and of those above it (v2 or
 * v1), else what the machine has. Reads files; for start-up.
 */
uint64_t system_memory(void);

/* Cores that it may use, at least 1: those of its affinity, or what the quotas of its cgroups come to, rounded up. */
uint32_t system_cores(void);

/* The cgroups' parts of them: `groups` is as /proc/self/cgroup, `root` as /sys/fs/cgroup. UINT64_MAX: no limit. */
uint64_t system_group_memory(const char *groups, const char *root);
uint64_t system_group_cores(const char *groups, const char *root);

/* A file, made if it is missing and then added to, or a device or pipe. -1 with errno, ENXIO for a pipe that nobody reads:
 * the open waits for nobody, for it may be the loop's. Writes wait as usual. */
int system_open_output(const char *path);

#endif
