/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_FILE_DISK_H
#define EXPORTERS_FILE_DISK_H

#include <sys/types.h>
#include <sys/uio.h>

#include "base/bytes.h"
#include "base/error.h"

/* Shared by the two modes of the `file` exporter (file_log.h, file_spool.h). Failures of the disk
 * are ERROR_BUSY, because they are temporary. The message contains the operator's path and the
 * system's reason. */

/* errno -> "cannot WHAT PATH: reason"; returns false, with errno as it was. */
bool file_failed(struct error *err, const char *what, const char *path);

/* Creates the directory and all missing parent directories; mode as in chmod. */
bool file_make_directories(const char *path, mode_t mode, struct error *err);

/* Writes everything, or returns false with errno set. Bytes that were written before the failure
 * stay in the file. Changes the vector. */
bool file_write(int fd, struct iovec *parts, int count);

/* Waits until the disk has the data, or the names in a directory. Pipes and devices have nothing to
 * wait for; a directory that cannot be read cannot be synced. False, with errno set. */
bool file_sync(int fd);
bool file_sync_directory(const char *path);

/* Names that contain a time: `digits` is a pattern of the middle in which each 0 stands for any
 * digit. */
struct file_names {
	const char *prefix, *digits, *suffix;
};

/* Does this string begin as the pattern says? */
bool file_digits_fit(const char *digits, const char *at);
bool file_name_fits(const struct file_names *names, const char *name);

struct file_keep {
	int64_t files;          /* the number of newest files, by name, to keep; 0: any number */
	uint64_t not_before_ns; /* wall clock: older files are removed; 0: any age */
	/* of all files; beyond it, the oldest are removed until a sixteenth is free; 0: any */
	uint64_t bytes;
};

enum file_surplus { FILE_KEPT, FILE_TOO_MANY, FILE_TOO_OLD, FILE_TOO_LARGE, FILE_SURPLUS_KINDS };

struct file_pruned {
	/* the number of files that were kept, and that were removed for each reason */
	uint64_t files[FILE_SURPLUS_KINDS];
	/* of the files that were kept, if keep->bytes is set; INT64_MAX: unknown */
	uint64_t bytes;
};

/* Removes files with these names that exceed the number, age or total size. The newest file is
 * never removed for its size. Files that cannot be removed are kept. */
struct file_pruned file_prune(const char *directory, const struct file_names *names,
			      const struct file_keep *keep);

struct tm file_time(uint64_t wall_ns, bool local);

#endif
