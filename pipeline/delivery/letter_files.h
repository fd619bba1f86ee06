/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_LETTER_FILES_H
#define PIPELINE_DELIVERY_LETTER_FILES_H

#include "pipeline/delivery/letter.h"

/*
 * The files of dead letters in a directory: how they are written, listed and removed.
 *
 * A letter appears at once and complete: both files are written under another name and synced; the
 * request gets its name first, then the reason file, then the directory is synced. A letter is
 * removed in the same order. So a request without a reason file was never complete, and a reason
 * file without a request is the rest of a letter that is done.
 *
 * Letters are written in groups: the kernel begins to write all files of a group before the first
 * one is synced, and the directory is synced once.
 *
 * All calls may block on the disk. One thread at a time for a directory, except that letters may be
 * removed at any time.
 */
#define LETTER_REQUEST ".otlp"
#define LETTER_REASON ".json"
#define LETTER_PART ".part" /* behind the suffix, and a dot before the name: still being written */

enum { LETTER_GROUP_MAX = 32 };

/* A letter that is being written. */
struct letter_draft {
	const struct letter *letter; /* borrowed */
	struct bytes reason;
	char name[LETTER_NAME];
	int request_fd, reason_fd;
	int failure; /* errno; 0: it is complete */
};

/* The directory, which must not be writable by others; -1: err. */
int letter_directory(const char *path, struct error *err);

/* Encodes the reason file. letter_draft_fini in any case. */
bool letter_draft_init(struct letter_draft *draft, const struct letter *letter, struct error *err);
uint64_t letter_draft_bytes(const struct letter_draft *draft); /* of both files */
void letter_draft_fini(struct letter_draft *draft);
/* At most LETTER_GROUP_MAX; those that have a failure already are left out. Of a letter with a
 * failure, nothing is in the directory afterwards. */
void letter_drafts_write(int directory, struct letter_draft *drafts, uint32_t count);

struct letter_names {
	char (*at)[LETTER_NAME]; /* oldest first */
	size_t count;
	size_t others; /* files that are no letters, or are incomplete */
};

/* tidy: ends what a process that was killed has left half done: removes reason files without a
 * request, and completes letter_replace. Nobody else may do that at the same time. */
bool letter_list(int directory, bool tidy, struct letter_names *names, struct error *err);
void letter_names_fini(struct letter_names *names);
void letter_remove(int directory, const char *name);
/* Puts other letters in place of one: all of them, or (err) none. A process that is killed leaves
 * the old one, or the new ones as letter_list (tidy) finds them. */
bool letter_replace(int directory, const char *name, const struct letter *letters, size_t count,
		    struct error *err);

#endif
