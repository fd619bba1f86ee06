/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_FILE_DISK_H
#define EXPORTERS_FILE_DISK_H

#include <sys/types.h>
#include <sys/uio.h>

#include "base/bytes.h"
#include "base/error.h"

/*
 * What the `file` exporter's two ways of writing share (file_log.h, file_spool.h). Failures of the
 * disk are ERROR_BUSY, since they pass; the text has the operator's path and the system's reason.
 */

/* errno -> "cannot WHAT PATH: reason"; returns false. */
bool file_failed(struct error *err, const char *what, const char *path);

/* Makes the directory with all that are missing above it; mode as in chmod. */
bool file_make_directories(const char *path, mode_t mode, struct error *err);

/* Writes everything, or returns false with errno set; what was written stays. Changes the vector.
 */
bool file_write(int fd, struct iovec *parts, int count);

/* Names made of a time: `digits` is a picture of the middle in which each 0 stands for any digit.
 */
struct file_names {
	const char *prefix, *digits, *suffix;
};

bool file_name_fits(const struct file_names *names, const char *name);

struct file_keep {
	int64_t files;          /* the newest by name; 0: any number */
	uint64_t not_before_ns; /* wall clock: older ones go; 0: any age */
	/* together; beyond, the oldest go until a sixteenth is free; 0: any */
	uint64_t bytes;
};

enum file_surplus { FILE_KEPT, FILE_TOO_MANY, FILE_TOO_OLD, FILE_TOO_LARGE, FILE_SURPLUS_KINDS };

struct file_pruned {
	uint64_t files[FILE_SURPLUS_KINDS]; /* that stay, or were removed and why */
	/* of those that stay, where keep->bytes is set; INT64_MAX: unknown */
	uint64_t bytes;
};

/* Removes the files of these names that are too many, too old or together too large; the newest is
 * never too large. What cannot be removed stays. */
struct file_pruned file_prune(const char *directory, const struct file_names *names,
			      const struct file_keep *keep);

struct tm file_time(uint64_t wall_ns, bool local);

#endif
