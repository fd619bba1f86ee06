/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_FILE_SPOOL_H
#define EXPORTERS_FILE_SPOOL_H

#include "exporters/file_disk.h"

/*
 * A directory in which each document is a file. Names consist of the time of writing and a counter
 * (20260102T150405.123456789-000001.pb.gz). They sort by age and contain no data of a sender. A
 * file is complete when it appears under its name: it is written under another name and then
 * renamed.
 *
 * Call file_spool_begin, file_spool_add for each document, file_spool_sync and file_spool_end.
 * Either all documents stay, or, after a failure, none. One thread at a time.
 */
struct file_spool_options {
	const char *directory; /* borrowed */
	uint64_t max_age_ns;   /* 0: any age */
	/* the oldest files are removed, including those of earlier runs; 0: any number */
	int64_t max_files;
	/* of all files together, as above; exceeded only while a packet is written; 0: any */
	uint64_t max_bytes;
	bool local_time; /* in the names */
	bool sync;       /* file_spool_sync waits for the disk */
};

struct file_spool {
	struct file_spool_options options;
	int directory; /* open between begin and end; otherwise -1 */
	uint32_t counter;
	/* upper bound of the bytes in the directory, because others may remove files */
	uint64_t bytes;
	struct file_pruned removed; /* by the last file_spool_end, or by file_spool_open */
	struct bytes added;         /* the names added since begin, each with its NUL */
};

/* Removes incomplete files of an earlier run. */
bool file_spool_open(struct file_spool *spool, const struct file_spool_options *options,
		     struct error *err);
void file_spool_close(struct file_spool *spool);

bool file_spool_begin(struct file_spool *spool, struct error *err);
bool file_spool_add(struct file_spool *spool, struct view document, struct error *err);
/* After the last document, if the files are to stay. */
bool file_spool_sync(struct file_spool *spool, struct error *err);
void file_spool_end(struct file_spool *spool, bool keep);

#endif
