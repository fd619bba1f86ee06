/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_FILE_TAIL_H
#define PIPELINE_INTAKE_FILE_TAIL_H

#include "base/bytes.h"
#include "base/error.h"
#include "config/table.h"

/*
 * The lines of files that grow and are rotated. A file is known by its device and inode, stays open
 * from when it was found, and is read to its end also when its name no longer matches. It is read
 * from the beginning again if it has become shorter than what was read of it, or if its beginning
 * is another one. How far a file was read is remembered only here.
 *
 * The calls: poll, then read until NONE; accept after each LINE. A line that was not accepted is
 * read again. One thread at a time; all calls block on the disk.
 */
struct file_tail;

struct file_tail_options {
	const struct strings *include, *exclude; /* globs; borrowed */
	size_t files_max;                        /* that are open */
	size_t fingerprint; /* the number of bytes that a file's beginning has */
	size_t line_max;    /* bytes */
	bool from_start;    /* of the files that the first poll finds; later ones always */
	bool replay;        /* each poll begins all files again */
};

enum file_tail_more {
	FILE_TAIL_LINE,
	FILE_TAIL_LONG, /* a line is longer than line_max, and is skipped */
	FILE_TAIL_FULL, /* the buffer could not grow for the line */
	FILE_TAIL_NONE  /* no whole line is left until the next poll */
};

struct file_tail *file_tail_new(const struct file_tail_options *options);
void file_tail_free(struct file_tail **tail);

/* Finds files that are new, changed or gone. False: more than files_max match; the first of them
 * are read. */
bool file_tail_poll(struct file_tail *tail);
/* Appends the next line to `line`, which is empty, without its end. Lines of white space are
 * skipped. What stands behind the last end of a line is a line when the file has not changed for 5
 * seconds. */
enum file_tail_more file_tail_read(struct file_tail *tail, struct bytes *line);
void file_tail_accept(struct file_tail *tail);
/* After FULL: the line is not read again. */
void file_tail_skip(struct file_tail *tail);

/* Where the last LINE or LONG began: valid until the next poll. */
const char *file_tail_name(const struct file_tail *tail);
uint64_t file_tail_offset(const struct file_tail *tail);

#endif
