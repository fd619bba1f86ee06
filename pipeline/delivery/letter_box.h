/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_LETTER_BOX_H
#define PIPELINE_DELIVERY_LETTER_BOX_H

#include "pipeline/delivery/letter.h"

/*
 * The directory of a destination's dead letters. It is bounded: when it is full, new letters are
 * refused, and those that are there stay, so what was counted as kept is kept until an operator
 * removes it. Others (`portcullis replay`) may remove letters at any time, and another box may add
 * some (an exporter and its successor after a reload). So a box looks again: when it is full at
 * most once per second, otherwise once per minute.
 *
 * A letter appears at once and complete: both files are written under another name and synced; the
 * request gets its name first, then the reason file, then the directory is synced. A letter is
 * removed in the same order. So a request without a reason file was never complete, and a reason
 * file without a request is the rest of a letter that is done; after ten minutes, both are removed.
 *
 * One thread at a time. All calls may block on the disk.
 */
struct letter_box {
	const char *path; /* borrowed */
	uint64_t max_bytes, max_letters;
	uint64_t bytes, letters; /* at the last look, and what was added since then */
	uint64_t looked;         /* clock_now of the last look; 0: none */
};

enum letter_result { LETTER_WRITTEN, LETTER_FULL, LETTER_FAILED };

/* Makes the directory (0700) if there is none. */
bool letter_box_open(struct letter_box *box, struct error *err);
/* Counts what is in it; takes as long as the disk needs for every file. */
void letter_box_look(struct letter_box *box);
enum letter_result letter_box_add(struct letter_box *box, const struct letter *letter,
				  struct error *err);

/* ---- for those who read one */

/* The directory, which must not be writable by others; -1: err. */
int letter_directory(const char *path, struct error *err);

struct letter_names {
	char (*at)[LETTER_NAME]; /* oldest first */
	size_t count;
	size_t others; /* files that are no letters, or are incomplete */
};

/* tidy: removes reason files without a request. Their letters are done, and whoever removed them
 * was ended in between. */
bool letter_list(int directory, bool tidy, struct letter_names *names, struct error *err);
void letter_names_fini(struct letter_names *names);
void letter_remove(int directory, const char *name);
/* Replaces the reason file of a letter. */
bool letter_rewrite(int directory, const char *name, const struct letter *letter,
		    struct error *err);

#endif
