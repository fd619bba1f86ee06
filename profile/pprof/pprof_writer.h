/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_PPROF_PPROF_WRITER_H
#define PROFILE_PPROF_PPROF_WRITER_H

#include "profile/memo.h"
#include "profile/pprof/pprof.h"
#include "profile/profiles.h"

/*
 * The pprofs of one packet being written: what encode_pprof.c (runs and tables) and
 * encode_pprof_labels.c (attributes as labels) share. Lives during one encode_pprof. Each table of
 * the pprof grows in wire format; an entry gets its number, and is written, when it is first used.
 *
 * Nothing here returns an error: what does not fit sets `full`, which is looked at once per sample.
 */
struct pprof_number { /* of an entry of the open tables */
	uint32_t run; /* the number is of this run */
	uint32_t number;
};

struct pprof_writer {
	const struct profiles *p;
	uint32_t run; /* from 1 */
	bool full, signs_apart;
	uint64_t cpu_period; /* of this run: each sample gets its count times this, too; 0: not */
	struct bytes table[PPROF_PROFILE_FIELDS]; /* by field; [0] is the whole */
	struct bytes part, packed, text;          /* scratch: a nested message, numbers, a text */
	uint32_t string_count, function_count, mapping_count, location_count, blank;
	struct pprof_number *strings, *functions, *mappings, *locations;
	uint32_t *used_mappings; /* by number - 1 */
	bool *main_mappings;     /* by index; NULL: none says that it is its program's own */
	uint8_t *mapping_flags;  /* by number - 1: what its locations show */
	struct memo texts;       /* first: number; second: run */
};

/* A message of plain fields; zeros are left out, as proto3 does. */
struct pprof_plain {
	uint8_t at[160];
	size_t len;
};

void pprof_put(struct pprof_plain *message, uint32_t number, uint64_t value);

/* The number of a text in the string table of this run. */
uint32_t pprof_text(struct pprof_writer *w, struct view text);
uint32_t pprof_string(struct pprof_writer *w, uint32_t string);

/* Appends the labels of the sample's attributes and link to w->part. */
void pprof_add_labels(struct pprof_writer *w, const struct sample *sample);

#endif
