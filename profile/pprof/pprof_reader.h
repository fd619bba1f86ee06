/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_PPROF_PPROF_READER_H
#define PROFILE_PPROF_PPROF_READER_H

#include "profile/memo.h"
#include "profile/pprof/pprof.h"
#include "profile/profiles.h"

/*
 * One pprof body while it is read into the open tables: what decode_pprof.c (messages) and
 * pprof_attach.c (attributes and links) share. Lives during one decode_pprof.
 *
 * Functions that return false have set r->err.
 */
struct pprof_label {
	uint64_t number;
	uint32_t key, text, unit; /* strings */
	uint32_t head;            /* 1: the first of its key */
	uint32_t next;            /* position of the next with the same key; 0: none */
	uint32_t spare;
};

enum pprof_memo { /* kinds of memo entries; first is an index */
		  PPROF_MEMO_FUNCTION,
		  PPROF_MEMO_MAPPING,
		  PPROF_MEMO_LOCATION,
		  PPROF_MEMO_LABELS,    /* first: index in label_sets + 1 */
		  PPROF_MEMO_ATTRIBUTE, /* first: of the attribute made of one label */
		  PPROF_MEMO_LINK,
		  /* first: the label set last seen with it; second: its last label
		   * there */
		  PPROF_MEMO_KEY
};

struct pprof_reader {
	struct profiles *p;
	struct view document; /* within p->input */
	struct error *err;
	/* Where this document's entries begin. Number n of the document is entry base + n of the
	 * tables that have an entry 0, which stays 0. */
	uint32_t string_base, base[PPROF_MEMO_LOCATION + 1];
	uint32_t first_profile, first_sample;
	struct memo memo;
	bool sparse[PPROF_MEMO_LOCATION + 1];  /* ids are not 1, 2, 3 ...: ask the memo */
	uint32_t count[PPROF_PROFILE_FIELDS];  /* of each repeated field */
	uint64_t number[PPROF_PROFILE_FIELDS]; /* of each plain one */
	struct value_kind period_type;
	bool has_period_type;
	uint32_t string_count, default_type;
	uint32_t keys[PPROF_KEY_COUNT]; /* strings, made at first use */
	uint32_t
		flags[PPROF_FLAG_COUNT + 1]; /* attributes: true; the last: has_functions = false */
	uint32_t folded;                     /* attribute */
	struct bytes labels;                 /* of the sample being read: struct pprof_label */
	struct bytes label_sets;             /* struct pprof_label_set */
	struct bytes comments;               /* uint32_t: strings */
	/* of tables and scratch together; what scratch has taken of it */
	size_t budget, scratch;
};

/* The Profiles of this document: one for each sample type. */
static inline uint32_t pprof_reader_types(const struct pprof_reader *r)
{
	return r->p->profiles.count - r->first_profile;
}

static inline struct profile *pprof_reader_profile(const struct pprof_reader *r, uint32_t type)
{
	return &r->p->profiles.at[r->first_profile + type];
}

/* Both set r->err and return false. */
bool pprof_reader_refuse(struct pprof_reader *r, const char *what);
bool pprof_reader_too_large(struct pprof_reader *r);

/* Where the Profile of the k-th sample type stands: the default comes first. */
static inline uint32_t pprof_reader_place(const struct pprof_reader *r, uint32_t type)
{
	return type == r->default_type ? 0 : type + (type < r->default_type);
}

#endif
