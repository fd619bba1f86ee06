/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_FILE_LOG_H
#define EXPORTERS_FILE_LOG_H

#include <stdatomic.h>

#include "exporters/file_disk.h"

/*
 * A file to which complete records are appended. It is rotated by size, and can be opened again
 * after it was moved away. A record is written completely or not at all: the rest of a failed write
 * is truncated. If an earlier run left an incomplete record, the file is renamed, as in a rotation,
 * before the first record is added.
 *
 * All functions except file_log_reopen belong to one thread at a time.
 */
enum file_frame {
	FRAME_LINE,  /* the record and a newline */
	FRAME_LENGTH /* the length in 4 bytes, big-endian, then the record */
};

struct file_log_options {
	const char *path;  /* borrowed */
	const char *shown; /* borrowed; what messages contain instead of the path; NULL: the path */
	enum file_frame frame;
	bool append;         /* keep what is in the file */
	bool whole;          /* with append: it is known to end with a complete record */
	uint64_t max_bytes;  /* the file is rotated before it exceeds this size; 0: never */
	uint64_t max_age_ns; /* of rotated files; 0: any age */
	int64_t max_backups; /* the number of rotated files; 0: any number */
	bool local_time;     /* in the names of rotated files */
	bool sync;           /* a record is on the disk before file_log_add returns */
};

struct file_log_next {
	int fd, rotations;
};
#define FILE_LOG_NONE ((struct file_log_next){ .fd = -1 })

struct file_log {
	struct file_log_options options;
	int fd;      /* -1: closed */
	int64_t cut; /* the offset of an incomplete record that must be truncated; -1: none */
	/* opened by file_log_reopen, not in use yet, with the number of rotations before that: it
	 * may be what a later one has set aside; FILE_LOG_NONE: none */
	_Atomic(struct file_log_next) next;
	_Atomic int rotations;
	/* the data of an earlier run is removed when the first record arrives: a start that fails
	 * must not remove the data of another process that runs */
	bool stale;
	char *directory;
	/* of the file's name; its backups are NAME-2026-01-02T15-04-05.000.EXT */
	char *stem, *extension;
};

bool file_log_open(struct file_log *log, const struct file_log_options *options, struct error *err);
void file_log_close(struct file_log *log); /* also after a failed open */
bool file_log_add(struct file_log *log, struct view record, struct error *err);
/* Could this be the name of a rotated file? */
bool file_log_is_backup(const char *name);
/* The file was removed: data written now would be lost. */
bool file_log_removed(const struct file_log *log);
/* [any thread] Opens the path again; the next record goes to that file. */
bool file_log_reopen(struct file_log *log, struct error *err);

#endif
