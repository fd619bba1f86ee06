/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_PPROF_PPROF_WRITER_H
#define PROFILE_PPROF_PPROF_WRITER_H

#include "profile/memo.h"
#include "profile/pprof/pprof.h"
#include "profile/profiles.h"
#include "profile/wire.h"

/*
 * The pprofs of one packet while they are written: what encode_pprof.c (samples, the profile's own
 * fields), pprof_tables.c (mappings, locations, functions) and pprof_labels.c (attributes as
 * labels) share. Lives during one encode_pprof. Each table of a pprof grows in wire format; an
 * entry gets its number, and is written, when it is first used.
 *
 * Nothing here returns an error: what does not fit sets `full`, which is checked once per sample.
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
	struct bytes part, packed, text;          /* scratch: a nested message, numbers, a string */
	uint32_t string_count, function_count, mapping_count, location_count, blank;
	struct pprof_number *strings, *functions, *mappings, *locations;
	uint32_t *used_mappings; /* by number - 1 */
	bool *main_mappings;     /* by index; NULL: none says that it is its program's own */
	uint8_t *mapping_flags;  /* by number - 1: what its locations show */
	struct memo texts;       /* first: number; second: run */
};

/* `p` must outlive the writer. */
void pprof_writer_init(struct pprof_writer *w, const struct profiles *p, bool signs_apart);
void pprof_writer_fini(struct pprof_writer *w);
/* Empties the tables for the next run. */
void pprof_writer_begin(struct pprof_writer *w);
/* Joins the tables to the whole pprof in table[0]; false: it is full. */
bool pprof_writer_join(struct pprof_writer *w);

/* The number of a string in the string table of this run. */
uint32_t pprof_writer_text(struct pprof_writer *w, struct view text);
uint32_t pprof_writer_string(struct pprof_writer *w, uint32_t string);

/* A message of plain fields; zeros are left out, as proto3 does. */
struct pprof_plain {
	uint8_t at[160];
	size_t len;
};

static inline void pprof_writer_put(struct pprof_plain *message, uint32_t number, uint64_t value)
{
	if (!value)
		return;
	uint8_t *end = wire_put_tag(message->at + message->len, number, WIRE_VARINT);
	message->len = (size_t)(wire_put_varint(end, value) - message->at);
}

/* Appends the message as the field `number` to `out`. */
void pprof_writer_add(struct pprof_writer *w, struct bytes *out, uint32_t number,
		      const struct pprof_plain *message);

#endif
