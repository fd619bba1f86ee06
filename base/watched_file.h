/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_WATCHED_FILE_H
#define BASE_WATCHED_FILE_H

#include <pthread.h>

#include "base/bytes.h"
#include "base/error.h"

/*
 * A small file that is read again when it has changed: tokens, passwords. Its user asks each time
 * that it needs the content; the file's metadata is looked at once a second at most, unless
 * look_every_ns is changed after init. There is no thread and no timer. Any thread may ask; only
 * one of them reads.
 */
struct watched_file {
	const char *path; /* borrowed; NULL: there is no file */
	uint64_t look_every_ns;
	pthread_mutex_t lock; /* of all that follows */
	uint64_t look_next;   /* clock_now */
	bool seen, failed;
	bool missing;                           /* of a failure: there is no such file */
	uint64_t device, inode, size, modified; /* ns */
};

enum { WATCHED_FILE_MAX = 1 << 20 }; /* bytes */

void watched_file_init(struct watched_file *file, const char *path);
void watched_file_fini(struct watched_file *file);

/* Reads the file whatever its age. `out` is emptied first; its maximum is WATCHED_FILE_MAX. */
bool watched_file_read(struct watched_file *file, struct bytes *out, struct error *err);

enum watched_state {
	WATCHED_SAME,
	WATCHED_CHANGED, /* `out` has the content */
	WATCHED_FAILED   /* it has become unreadable; reported once until it changes */
};
enum watched_state watched_file_look(struct watched_file *file, struct bytes *out,
				     struct error *err);

#endif
