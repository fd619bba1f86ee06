/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_OTLP_BRIDGE_OLD_H
#define PROFILE_OTLP_BRIDGE_OLD_H

#include "profile/otlp/bridge_layouts.h"
#include "profile/otlp/bridge_private.h"

/*
 * Shared by the files that translate 1.3 to 1.7: bridge_old.c (requests), bridge_tables.c (strings,
 * attributes, the walk over tables), bridge_entries.c (the other tables), bridge_profile.c,
 * bridge_ranges.c (locations of samples), bridge_sample.c.
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
	OLD_INDICES,      /* packed: location_indices of the Profile, if they came in pieces */
	OLD_BLOCKS,       /* uint32_t: the number of those that end before a block of bytes */
	OLD_TYPES,        /* struct old_type */
	OLD_ATTRIBUTES,   /* packed: attribute_indices of the Profile that is made */
	OLD_RECORDS,      /* struct old_record */
	OLD_PARTS,        /* what the records refer to */
	OLD_LABELS,       /* struct old_label_set: the labels of a sample */
	OLD_LABEL_STAMPS, /* uint64_t for each string of the origin */
	OLD_BUFFERS
};

/* What was made of something, found by what it is and a keyed hash of it. A slot is used by one
 * thing after the other: what is no longer found is made again. */
enum old_kind {
	OLD_NOTHING,
	OLD_KEY_STRING,
	OLD_KEY_UNIT,
	OLD_LABEL_ATTRIBUTE,
	OLD_STACK /* and more: the serial number of its origin, whose indices it has */
};

struct old_slot {
	uint64_t hash;
	uint32_t index, kind; /* enum old_kind; OLD_NOTHING: free */
};

static inline bool old_slot_is(const struct old_slot *slot, uint32_t kind, uint64_t hash)
{
	return slot->kind == kind && slot->hash == hash;
}

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

/* location_indices of a Profile, not moved. */
struct old_ranges {
	struct view packed;
	uint32_t count;
	/* the end of the last range: its number, and where it is */
	uint64_t next;
	const uint8_t *next_at;
};

/* The part of the origin that has the entries of a table; others may lie between them. */
struct old_extent {
	const uint8_t *from, *to;
};

struct old {
	struct bridge *b;
	const struct old_layout *layout;
	struct bytes buffer[OLD_BUFFERS];
	/* of the origin: what is added to an index, and the number of entries */
	uint32_t base[BRIDGE_TABLES], have[OLD_UNIT + 1];
	struct old_extent extent[OLD_UNIT + 1];
	struct old_extent samples; /* of the Profile */
	uint32_t origin;
	uint64_t passed, passed_max; /* bytes of ranges that samples refer to */
	struct old_ranges ranges;
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
/* Writes the numbers of a packed list, each moved, where there is room for five times its length
 * and 5 bytes; returns the end. */
uint8_t *old_put_moved(const struct old *o, struct view packed, enum bridge_table table,
		       uint8_t *at);

/* The slot for a thing with this hash; its index counts if old_slot_is. */
static inline struct old_slot *old_slot_of(struct old *o, uint64_t hash)
{
	struct bytes *cache = &o->buffer[OLD_CACHE];
	return (struct old_slot *)cache->at + (hash & (cache->len / sizeof(struct old_slot) - 1));
}

/* bridge_tables.c: the tables of the origin, which is `message`, or in 1.7 each occurrence of its
 * dictionary, go into the dictionary. */
bool old_tables(struct old *o, struct view message);
/* A KeyValue that is not in a table. */
bool old_inline_attribute(struct old *o, struct view message, uint32_t *index);
/* The content of a string of the origin; only while its tables are moved. */
struct view old_string_at(const struct old *o, uint64_t index);

/* bridge_entries.c: move an entry of the table into the dictionary. */
bool old_move_mapping(struct old *o, struct view entry);
bool old_move_location(struct old *o, struct view entry);
bool old_move_function(struct old *o, struct view entry);
bool old_move_link(struct old *o, struct view entry);

/* bridge_profile.c */
bool old_profile(struct old *o, struct view message);

/* bridge_ranges.c: location_indices of a Profile: first all of them, in any number of fields, then
 * ranges of them, packed and not moved. False without an error: out of range. */
void old_ranges_begin(struct old *o);
bool old_ranges_add(struct old *o, const struct wire_field *field);
bool old_ranges_end(struct old *o);
bool old_range(struct old *o, uint64_t start, uint64_t length, struct view *range);

/* A message without what is before and behind the extent. */
static inline struct view old_part(struct view message, struct old_extent extent)
{
	const uint8_t *end = message.at + message.len;
	const uint8_t *from = extent.from > message.at ? extent.from : message.at;
	const uint8_t *to = extent.to < end ? extent.to : end;
	return from < to ? (struct view){ from, (size_t)(to - from) }
			 : (struct view){ message.at, 0 };
}

/* bridge_sample.c: calls `take` for each sample of a Profile that was found well-formed. */
bool old_samples(struct old *o, struct view profile,
		 bool (*take)(struct old *o, const struct old_record *record));

#endif
