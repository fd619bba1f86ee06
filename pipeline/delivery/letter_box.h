/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_LETTER_BOX_H
#define PIPELINE_DELIVERY_LETTER_BOX_H

#include <pthread.h>

#include "pipeline/delivery/letter.h"

/*
 * The directory of a destination's dead letters. It is bounded: when it is full, new letters are
 * refused, and those that are there stay, so what was counted as kept is kept until an operator
 * removes it. A directory has one box in the process, which an exporter and its successor after a
 * reload share. Others (`portcullis replay`) may remove letters at any time. So a box looks again:
 * when it is full at most once per second, otherwise once per minute. A look also removes what
 * letters that were never complete, or are done, have left (pipeline/delivery/letter_files.h),
 * after ten minutes.
 *
 * Adding and looking may block on the disk, and on another thread that does so. Opening only looks
 * at the directory itself.
 */
struct letter_box {
	struct letter_box *next; /* these three under the lock of all boxes */
	uint32_t users;
	char *key; /* its absolute path, which boxes are shared by */
	char *path;
	_Atomic uint64_t max_bytes, max_letters;
	pthread_mutex_t lock;            /* of whoever adds or looks */
	_Atomic uint64_t bytes, letters; /* at the last look, and what was added since then */
	uint64_t looked;                 /* clock_now of the last look; 0: none */
};

enum letter_result { LETTER_WRITTEN, LETTER_FULL, LETTER_FAILED };

/* Makes the directory (0700) if there is none. The bounds replace those of an earlier user. NULL:
 * err. */
struct letter_box *letter_box_open(const char *path, uint64_t max_bytes, uint64_t max_letters,
				   struct error *err);
void letter_box_unref(struct letter_box **box); /* accepts NULL */
/* Counts what is in it, if that was not done yet; takes as long as the disk needs for every file.
 */
void letter_box_look(struct letter_box *box);
/* A group of at most LETTER_GROUP_MAX, with a result for each. err: of one that failed. */
void letter_box_add(struct letter_box *box, const struct letter *letters, uint32_t count,
		    enum letter_result *results, struct error *err);

#endif
