/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_FILE_SPOOL_H
#define EXPORTERS_FILE_SPOOL_H

#include "exporters/file_disk.h"

/*
 * A directory in which every document is a file of its own. Names are the time of writing and a
 * counter (20260102T150405.123456789-000001.pb.gz): they sort by age and carry nothing of a sender.
 * A file appears under its name complete: it is written under another one and renamed.
 *
 * file_spool_begin, file_spool_add for each document, file_spool_end: either all of them stay, or,
 * after a failure, none. One thread at a time.
 */
struct file_spool_options {
	const char *directory; /* borrowed */
	uint64_t max_age_ns;   /* 0: any */
	int64_t max_files;     /* the oldest go, those of earlier runs too; 0: any number */
	/* together, likewise; passed only while a packet is written; 0: any */
	uint64_t max_bytes;
	bool local_time; /* in the names */
};

struct file_spool {
	struct file_spool_options options;
	int directory; /* open between begin and end, else -1 */
	uint32_t counter;
	uint64_t bytes;             /* in the directory at most, for others may remove files */
	struct file_pruned removed; /* by the last file_spool_end, or by the opening */
	struct bytes added;         /* names since begin, each with its NUL */
};

/* Removes what an earlier run left half-written. */
bool file_spool_open(struct file_spool *spool, const struct file_spool_options *options,
		     struct error *err);
void file_spool_close(struct file_spool *spool);

bool file_spool_begin(struct file_spool *spool, struct error *err);
bool file_spool_add(struct file_spool *spool, struct view document, struct error *err);
void file_spool_end(struct file_spool *spool, bool keep);

#endif
