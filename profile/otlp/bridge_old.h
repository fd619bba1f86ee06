/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_OTLP_BRIDGE_OLD_H
#define PROFILE_OTLP_BRIDGE_OLD_H

#include "profile/otlp/bridge_layouts.h"
#include "profile/otlp/bridge_private.h"

/*
 * Shared by the files that translate 1.3 to 1.7: bridge_old.c (requests), bridge_tables.c (tables),
 * bridge_profile.c, bridge_sample.c.
 *
 * Their tables belong to a Profile or to the request: its origin. They are appended to the tables
 * of the dictionary that is made, so that an index of the origin becomes another one by addition.
 * In these releases entry 0 is an entry like any other, except that of strings, which is "". In the
 * dictionary entry 0 means "none", so there the entries begin with 1.
 */

/* Buffers that are reused. All of them are charged. */
enum old_buffer {
	OLD_CACHE,        /* struct old_slot */
	OLD_STRINGS,      /* struct view: the strings of the origin, if their content is needed */
	OLD_UNITS,        /* struct old_slot: the unit of a key, by the key's hash */
	OLD_ENTRY,        /* a message in the making */
	OLD_LIST,         /* a packed list in the making */
	OLD_GATHERED,     /* a repeated field that came in several pieces */
	OLD_INDICES,      /* uint32_t: location_indices of the Profile */
	OLD_TYPES,        /* struct old_type */
	OLD_ATTRIBUTES,   /* packed: attribute_indices of the Profile that is made */
	OLD_RECORDS,      /* struct old_record */
	OLD_PARTS,        /* what the records refer to */
	OLD_LABELS,       /* struct old_label_set: the labels of a sample */
	OLD_LABEL_STAMPS, /* uint64_t for each string of the origin */
	OLD_BUFFERS
};

/* What was made of something, found by a keyed hash of it. A slot is used by one thing after the
 * other: what is no longer found is made again. */
struct old_slot {
	uint64_t hash; /* 0: free */
	uint32_t index, spare;
};

struct old_type {
	uint32_t type, unit; /* strings, moved */
	uint64_t temporality;
};

/* A sample that is moved; its lists are in OLD_PARTS. */
struct old_record {
	uint32_t stack, link;
	uint32_t attributes, attributes_len; /* packed */
	uint32_t values, values_len;         /* packed; the next one of the remaining */
	uint32_t times, times_len;           /* fixed64 */
	bool aligned;                        /* there is a value for each timestamp */
	bool bad;                            /* numbers are malformed */
};

struct old {
	struct bridge *b;
	const struct old_layout *layout;
	struct bytes buffer[OLD_BUFFERS];
	/* of the origin: what is added to an index, and the number of entries */
	uint32_t base[BRIDGE_TABLES], have[BRIDGE_TABLES];
	uint32_t units;
	bool has_first;  /* its first string has been seen */
	uint64_t serial; /* of a sample, for OLD_LABEL_STAMPS */
	uint32_t period_type, period_unit;
	bool has_period_type;
	uint64_t time, duration, period, dropped;
	uint32_t default_type;   /* the position of the default type */
	uint32_t default_string; /* its name; 0: there is no default */
	struct view id;
};

/* The end of a message: fails if it was malformed. */
static inline bool old_done(const struct old *o, struct old_reader *r)
{
	return wire_done(&r->w) ||
	       bridge_malformed(o->b, r->message->name, wire_fault_text(r->w.fault));
}

/* An index of the origin in the dictionary. */
static inline uint32_t old_move(const struct old *o, enum bridge_table table, uint64_t index)
{
	return index < o->have[table] ? o->base[table] + (uint32_t)index : BRIDGE_BEYOND;
}

static inline uint32_t old_move_string(const struct old *o, uint64_t index)
{
	return index ? old_move(o, BRIDGE_STRING, index) : 0;
}

/* Appends the packed numbers of a field, or the single one, each moved. What is malformed becomes
 * an index that is out of range. */
bool old_move_list(struct old *o, const struct wire_field *field, enum bridge_table table,
		   struct bytes *to);
/* The slot for a thing with this hash; its index counts if its hash is equal. */
struct old_slot *old_slot_of(struct old *o, uint64_t hash);

/* bridge_tables.c: the tables of the origin, which is `message`, or in 1.7 each occurrence of its
 * dictionary, go into the dictionary. */
bool old_tables(struct old *o, struct view message);
/* A KeyValue that is not in a table. */
bool old_inline_attribute(struct old *o, struct view message, uint32_t *index);

/* bridge_profile.c */
bool old_profile(struct old *o, struct view message);

/* bridge_sample.c: appends the samples of a Profile to OLD_RECORDS. */
bool old_samples(struct old *o, struct view profile);

#endif
