/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_FILE_LIST_H
#define PIPELINE_INTAKE_FILE_LIST_H

#include "base/bytes.h"
#include "base/error.h"
#include "config/table.h"

/* Regular files that match globs, and whether they have changed: for receivers that read files.
 * [pool thread] */
struct file_entry {
	char *name;
	uint64_t device, inode, size;
	int64_t modified; /* ns since the epoch */
};

struct file_list {
	struct file_entry *at; /* sorted by name, each name once */
	size_t count;
};

/* The files that match `include` and not `exclude` (NULL: none). Patterns are those of glob(7).
 * False: there are more than `max`, of which the first are returned. */
bool file_list_find(const struct strings *include, const struct strings *exclude, size_t max,
		    struct file_list *list);
void file_list_fini(struct file_list *list);
/* Same inode, size and time of modification. */
bool file_list_same(const struct file_entry *a, const struct file_entry *b);
/* Appends the content. Errors name neither the path nor the content; ERROR_TOO_LARGE or the error
 * of the buffer's meter if the buffer cannot grow. */
bool file_list_read(const char *name, struct bytes *out, struct error *err);

#endif
