/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include <stdbool.h>

/* The path without what says nothing: "./x/../a//b/" is "a/b". Looks at the text alone, not at the
 * disk (links are names like others). The caller frees it. */
char *path_normal(const char *path);

/* Is it the name of a device or of an open file: below /dev but not /dev/shm, or /proc/PID/fd/N?
 * Several may write to one place of that kind, and links there are the system's. Looks at the text
 * alone. */
bool path_is_device(const char *path);

#endif
