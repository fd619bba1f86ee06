/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_FILE_GROUPS_H
#define EXPORTERS_FILE_GROUPS_H

#include "base/array.h"
#include "exporters/file_log.h"
#include "profile/memo.h"

/*
 * The files of one exporter with `group_by` (file_place.h): each is a file_log. At most `max_open`
 * are open; the one that was not used for the longest time is closed first, and opened again when
 * it gets another record. At most `max_files` are created or continued: their names come from
 * senders.
 *
 * All functions except file_groups_reopen belong to one thread at a time.
 */
struct file_groups_options {
	struct file_log_options log; /* of each file; `shown` is set, and `path` is not used */
	char *directory;             /* of all of them; owned by the struct file_groups */
	mode_t mode;                 /* of folders that are created in it */
	bool create;                 /* the directory itself too */
	size_t max_open, max_files;
};

struct file_group {
	bool begun;    /* it has a record of this run: nothing in it is stale */
	bool whole;    /* it ended with a complete record when it was closed */
	uint32_t open; /* index in `open`, plus 1; 0: closed */
};

struct file_group_open {
	struct file_log log;
	char *path;
	uint32_t group;
	uint64_t used;
};

struct file_groups {
	struct file_groups_options options;
	struct memo known; /* path -> index in `groups`, plus 1 */
	ARRAY(struct file_group) groups;
	ARRAY(struct file_group_open) open;
	uint64_t uses;
	_Atomic bool stale; /* the open files are to be closed */
};

enum file_groups_result {
	FILE_GROUPS_OK,
	FILE_GROUPS_DISK,     /* as for a single file: it may work later */
	FILE_GROUPS_UNUSABLE, /* this path alone: what is there is no file that can be written */
	FILE_GROUPS_FULL      /* it would be one file more than max_files */
};

/* The directory must exist, or is created. */
bool file_groups_start(struct file_groups *groups, const struct file_groups_options *options,
		       struct error *err);
void file_groups_fini(struct file_groups *groups); /* also of zeroed memory */

/* Appends a record to the file with this path, which is in the directory. */
enum file_groups_result file_groups_add(struct file_groups *groups, const char *path,
					struct view record, struct error *err);

/* [any thread] The next record, and all later ones, go to the files that are then in place. False:
 * there is no directory for them, and the open files stay in use. */
bool file_groups_reopen(struct file_groups *groups, struct error *err);

#endif
