/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_OTLP_DECODER_H
#define PROFILE_OTLP_DECODER_H

#include "profile/profiles.h"
#include "profile/wire.h"

/*
 * Shared by the files of the OTLP decoder: decode_otlp.c (requests, resources, scopes, Profiles),
 * decode_sample.c, decode_dictionary.c (the tables), decode_value.c (attributes), decode_layout.c
 * (older layouts). No other file includes this.
 *
 * There are two kinds of errors. Bytes that are not a message (truncated, invalid tags, wrong wire
 * types, nested too deeply) fail the request: decoder_malformed, and every caller returns false.
 * Well-formed but invalid content (an index out of range, an ID of a wrong length, numbers that do
 * not fill their packed field) is a fault of its entry: decoder_fault. The entry carries the fault
 * to everything that refers to it.
 *
 * Names and numbers of fields: opentelemetry-proto 1.10 and 1.11.
 */

/* The dictionary's tables by their field numbers. */
enum table {
	TABLE_NONE,
	TABLE_MAPPING,
	TABLE_LOCATION,
	TABLE_FUNCTION,
	TABLE_LINK,
	TABLE_STRING,
	TABLE_ATTRIBUTE,
	TABLE_STACK,
	TABLE_COUNT
};

/* The position of the decoder, for error messages. */
enum level { LEVEL_REQUEST, LEVEL_TABLE, LEVEL_RESOURCE, LEVEL_SCOPE, LEVEL_PROFILE, LEVEL_SAMPLE };

struct decoder {
	struct profiles *p;
	struct error *err;

	uint32_t limit[TABLE_COUNT]; /* valid indices are smaller; at least 1, for the zero entry */
	bool bad[TABLE_COUNT];       /* some entry of the table has a fault */

	enum level level;
	enum table table;
	uint32_t entry, resource, scope, profile, first_sample;

	const uint8_t *ascii; /* everything from the last string read up to this point is ASCII */
	uint32_t evidence;    /* of the layout (decode_layout.h) */
	char bad_entry[144];  /* describes the first faulty entry of the dictionary */
	char reason[360];     /* describes the first fault of a Profile */
};

/* The known fields of a message, for error messages and for detecting wrong wire types. */
struct message {
	uint32_t count; /* number of names, including that of field 0 */
	const char *const *names;
};

#define MESSAGE(name, ...) \
	static const char *const name##_names[] = { "", __VA_ARGS__ }; \
	static const struct message name = { sizeof name##_names / sizeof *name##_names, \
					     name##_names }

/* Fails the request for a malformed field (NULL: the message itself); returns false. */
bool decoder_malformed(struct decoder *d, const char *field, const char *what);

/* A field that no case handled: unknown fields are skipped, known ones have a wrong wire type. */
static inline void decoder_other(struct wire *w, uint32_t tag, const struct message *message)
{
	if (tag >> 3 && tag >> 3 < message->count)
		wire_fail(w, WIRE_MISMATCH);
	else
		wire_skip(w, tag);
}

/* The end of a message: true if it was well-formed. `tag` is the last one. */
bool decoder_broken(struct decoder *d, struct wire w, uint32_t tag, const struct message *message);

static inline bool decoder_end(struct decoder *d, struct wire *w, uint32_t tag,
			       const struct message *message)
{
	return __builtin_expect(wire_done(w), 1) || decoder_broken(d, *w, tag, message);
}

/* Records a fault at the decoder's position and returns it; the first is for an invalid index, the
 * second for anything else. */
enum fault decoder_bad_index(struct decoder *d, const char *field, enum table table,
			     uint64_t index);
enum fault decoder_fault(struct decoder *d, enum fault fault, const char *field, const char *what);

/* Over the cap; returns false. */
bool decoder_full(struct decoder *d);

/* Calls decode for each field with that number and wire type LEN, in a message that was found
 * well-formed before. */
bool decoder_each(struct decoder *d, struct view message, uint32_t number,
		  bool (*decode)(struct decoder *d, struct view value, void *context),
		  void *context);

/* The position of a view in the input. */
static inline struct span decoder_span(const struct decoder *d, struct view v)
{
	return v.len ? (struct span){ (uint32_t)(v.at - d->p->input.at), (uint32_t)v.len }
		     : (struct span){ 0 };
}

/* A reference into a table: the index, or 0 with the fault recorded. Does not check whether the
 * entry is faulty. */
static inline uint32_t decoder_index(struct decoder *d, const char *field, enum table table,
				     uint64_t index, uint8_t *fault)
{
	if (__builtin_expect(index < d->limit[table], 1))
		return (uint32_t)index;
	*fault = decoder_bad_index(d, field, table, index);
	return 0;
}

/* Appends packed indices to `indices`; false only if the tables are full. A fault is stored in
 * *fault. */
bool decoder_many_indices(struct decoder *d, const char *field, enum table table,
			  struct view packed, uint8_t *fault);

static inline bool decoder_indices(struct decoder *d, const char *field, enum table table,
				   struct view packed, uint8_t *fault)
{
	struct profiles *p = d->p;
	uint32_t index = packed.at[0], more = packed.at[1];
	if (packed.len == 2 && index >= 0x80 && more < 0x80)
		index = (index & 0x7f) | more << 7;
	else if (packed.len != 1 || index >= 0x80)
		return decoder_many_indices(d, field, table, packed, fault);
	if (index >= d->limit[table] || d->bad[table] || p->indices.count >= p->indices.room)
		return decoder_many_indices(d, field, table, packed, fault);
	p->indices.at[p->indices.count++] = index;
	return true;
}

/* The same for a single unpacked one. */
bool decoder_one_index(struct decoder *d, const char *field, enum table table, uint64_t index,
		       uint8_t *fault);

/* Creates a string for an inline one, repaired if it is not UTF-8; false only if the tables are
 * full. */
bool decoder_text(struct decoder *d, struct view text, uint32_t *string);
/* The same into a record of its own. */
bool decoder_string(struct decoder *d, struct view text, struct string *string);

/* decode_value.c: KeyValue (inline) and KeyValueAndUnit (in the table) -> attributes.at[slot]. */
bool decode_value_key_value(struct decoder *d, struct view message, uint32_t slot, unsigned depth);
bool decode_value_table_entry(struct decoder *d, struct view message, uint32_t slot);

/* decode_sample.c: the samples of a Profile that was found well-formed; their first fault is stored
 * in *fault. */
bool decode_samples(struct decoder *d, struct view profile, uint32_t count, uint8_t *fault);

/* decode_dictionary.c: all occurrences of the dictionary, as if they were one. */
#define DICTIONARIES_MAX 16
bool decode_dictionary(struct decoder *d, const struct view *dictionaries, uint32_t count);

#endif
