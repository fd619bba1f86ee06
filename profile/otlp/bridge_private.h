/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_OTLP_BRIDGE_PRIVATE_H
#define PROFILE_OTLP_BRIDGE_PRIVATE_H

#include "profile/otlp/bridge.h"
#include "profile/pprof_keys.h"
#include "profile/wire.h"

#include <assert.h>

/*
 * Shared by the files of the translation: bridge.c (resources, scopes, the dictionary that is
 * made), bridge_newer.c (1.8 and 1.9, whose dictionary is the current one), and those of 1.3 to 1.7
 * (bridge_old.h). No other file includes this.
 *
 * The functions return false when the request is malformed (err says where) or memory could not
 * grow (err is unchanged); every caller then returns false.
 */

/* The tables of the dictionary by their field numbers. */
enum bridge_table {
	BRIDGE_MAPPING = 1,
	BRIDGE_LOCATION,
	BRIDGE_FUNCTION,
	BRIDGE_LINK,
	BRIDGE_STRING,
	BRIDGE_ATTRIBUTE,
	BRIDGE_STACK,
	BRIDGE_TABLES
};

/* An index that is out of range for every table: the decoder rejects what refers to it. */
#define BRIDGE_BEYOND UINT32_C(0x7ffffffe)

struct bridge {
	struct bytes *out; /* resource_profiles */
	struct error *err;
	/* The entries of the dictionary that is made, with their tags, and their number together
	 * with those that the request brings in the current layout. */
	struct bytes table[BRIDGE_TABLES];
	uint32_t count[BRIDGE_TABLES];
	uint32_t key[PPROF_KEY_COUNT]; /* the strings of keys; 0: not made yet */
	uint32_t on[PPROF_KEY_COUNT];  /* the attributes with the value true; 0: not made yet */
	/* the position, for error messages, and whether it is in a Profile */
	uint32_t resource, scope, profile;
	bool in_profile;
	struct view scope_profiles; /* the one that is translated */
	size_t scope_start;         /* where it is open in `out`; 0: it is not */
	struct old *old;            /* of 1.3 to 1.7 */
};

/* Copies in steps of 16 bytes, which writes into the slack behind both; returns the end. */
static inline uint8_t *bridge_copy(uint8_t *to, const uint8_t *from, size_t len)
{
	if (len > 64) {
		memcpy(to, from, len);
		return to + len;
	}
	for (size_t i = 0; i < len; i += 16)
		memcpy(to + i, from + i, 16);
	return to + len;
}

/* The content of a message was written from `start` to `end`, where it has a byte for its length in
 * front and BRIDGE_WRAP bytes of room behind. Writes the length, for which a long message is moved;
 * returns the end. */
enum { BRIDGE_WRAP = 4 };

static inline uint8_t *bridge_wrap(uint8_t *start, uint8_t *end)
{
	size_t len = (size_t)(end - start), more;
	if (len < 0x80) {
		start[-1] = (uint8_t)len;
		return end;
	}
	assert(len <= INT32_MAX);
	more = wire_varint_len(len) - 1;
	memmove(start + more, start, len);
	wire_put_varint(start - 1, len);
	return end + more;
}

/* Buffers are charged with out's meter. */
void bridge_buffer(const struct bridge *b, struct bytes *buffer);

/* Fails for a message that is malformed; returns false. */
bool bridge_malformed(const struct bridge *b, const char *message, const char *what);

/* A message whose length is not known yet has a length of five bytes, which protobuf permits.
 * `start` is where its content begins. */
bool bridge_open(struct bytes *to, uint32_t number, size_t *start);
void bridge_close(struct bytes *to, size_t start);

/* New entries of the dictionary: the indices, or for false 0. */
bool bridge_string(struct bridge *b, struct view text, uint32_t *index);
bool bridge_key(struct bridge *b, enum pprof_key key, uint32_t *index);
/* value: an AnyValue */
bool bridge_attribute(struct bridge *b, uint32_t key, struct view value, uint32_t unit,
		      uint32_t *index);
/* The attribute with this key whose value is a string of the table. */
bool bridge_text_attribute(struct bridge *b, enum pprof_key key, uint32_t string, uint32_t *index);
/* The same with the strings of packed indices as an array. */
bool bridge_texts_attribute(struct bridge *b, enum pprof_key key, struct view strings,
			    uint32_t *index);
bool bridge_true_attribute(struct bridge *b, enum pprof_key key, uint32_t *index);
/* temporality: of the enumeration AggregationTemporality; index 0: unspecified */
bool bridge_temporality(struct bridge *b, uint64_t temporality, uint32_t *index);

/* Opens the ScopeProfiles of a Profile, if none is open; a new one ends the one that is. */
bool bridge_scope(struct bridge *b);
bool bridge_new_scope(struct bridge *b);
void bridge_end_scope(struct bridge *b);

/* Resources and scopes are the same in every generation. Calls `profile` for each Profile. */
bool bridge_resources(struct bridge *b, struct view request,
		      bool (*profile)(struct bridge *b, struct view message));

/* The generations. */
bool bridge_1_9(struct bridge *b, struct view request);
bool bridge_1_8(struct bridge *b, struct view request);
bool bridge_old(struct bridge *b, enum otlp_generation generation, struct view request);

#endif
