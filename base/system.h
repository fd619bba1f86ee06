/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_SYSTEM_H
#define BASE_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Bytes of memory that this process may use: the smallest limit of its cgroup and of the cgroups
 * above it (v2: memory.max and memory.high; v1: memory.limit_in_bytes), else the machine's memory.
 * Reads files; for start-up.
 */
uint64_t system_memory(void);

/* Its resident size now. */
int64_t system_resident(void);
/* The bytes of malloc's heap that are in use, and the bytes that it has obtained from the
 * kernel. */
int64_t system_heap(int64_t *from_system);

/* Cores that it may use, at least 1: those of its affinity mask, or its cgroups' quotas, rounded
 * up. */
uint32_t system_cores(void);

/* The cgroups' parts of them: `groups` is as /proc/self/cgroup, `root` as /sys/fs/cgroup.
 * UINT64_MAX: no limit. */
uint64_t system_group_memory(const char *groups, const char *root);
uint64_t system_group_cores(const char *groups, const char *root);

/*
 * Opens a file, which is created if it does not exist, or a device or pipe. `how` is O_APPEND or
 * O_TRUNC. A symbolic link in place of the file is not followed unless path_is_device: in a
 * directory that others can write to, it could redirect the output. A pipe without a reader is an
 * error: the open does not block, because it may run on the loop. Writes block as usual. -1 with
 * ERROR_CONFIG, "cannot open PATH: REASON", and errno set.
 */
int system_open_output(const char *path, int how, struct error *err);

/* Creates the directory and those above it that are missing; mode as in chmod. They survive a power
 * cut. False, with errno set. */
bool system_make_directories(const char *path, unsigned mode);

#endif
