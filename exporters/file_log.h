/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_FILE_LOG_H
#define EXPORTERS_FILE_LOG_H

#include <stdatomic.h>

#include "exporters/file_disk.h"

/*
 * One file that grows by whole records, is rotated by size, and can be opened again after somebody
 * moved it away. A record is there whole or not at all: what a failed write left is cut off, and a
 * file that an earlier run left torn is set aside, as in a rotation, before the first record is
 * added.
 *
 * All functions but file_log_reopen belong to one thread at a time.
 */
enum file_frame {
	FRAME_LINE,  /* the record and a newline */
	FRAME_LENGTH /* its length in 4 bytes, big-endian, and the record */
};

struct file_log_options {
	const char *path; /* borrowed */
	enum file_frame frame;
	bool append;         /* keep what an earlier run wrote */
	uint64_t max_bytes;  /* rotate before it grows beyond; 0: never */
	uint64_t max_age_ns; /* of rotated files; 0: any */
	int64_t max_backups; /* rotated files; 0: any number */
	bool local_time;     /* in their names */
};

struct file_log {
	struct file_log_options options;
	int fd;           /* -1: closed */
	_Atomic int next; /* opened by file_log_reopen, not yet in use; -1: none */
	int64_t cut;      /* where a torn record still is to be cut off; -1: none */
	/* what an earlier run wrote goes when the first record comes: a start that
	 * fails must take nothing from another that runs */
	bool stale;
	char *directory;
	/* of the file's name: NAME-2026-01-02T15-04-05.000.EXT are its
	 * backups */
	char *stem, *extension;
};

bool file_log_open(struct file_log *log, const struct file_log_options *options, struct error *err);
void file_log_close(struct file_log *log); /* also after a failed open */
bool file_log_add(struct file_log *log, struct view record, struct error *err);
/* Somebody removed the file: what is written now would be lost. */
bool file_log_removed(const struct file_log *log);
/* [any thread] The next record goes to a file opened now under the path. */
bool file_log_reopen(struct file_log *log, struct error *err);

#endif
