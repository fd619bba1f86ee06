/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/otlp/decoder.h"
#include "profile/otlp/decode_layout.h"

#include <stdio.h>

static const char *const table_names[] = {
	[TABLE_MAPPING] = "mapping_table",   [TABLE_LOCATION] = "location_table",
	[TABLE_FUNCTION] = "function_table", [TABLE_LINK] = "link_table",
	[TABLE_STRING] = "string_table",     [TABLE_ATTRIBUTE] = "attribute_table",
	[TABLE_STACK] = "stack_table",
};

#define PLACE_SIZE 120

/* An index that no int32 can express. */
#define INDEX_NONE 0x7fffffffu

/* "resource_profiles[0].scope_profiles[0].profiles[2].samples[7].", to the current depth of the
 * decoder. */
static const char *place(const struct decoder *d, char text[static PLACE_SIZE])
{
	static const char *const names[] = { "resource_profiles", "scope_profiles", "profiles",
					     "samples" };
	const uint32_t at[] = { d->resource, d->scope, d->profile,
				d->p->samples.count - d->first_sample };
	text[0] = '\0';
	if (d->level == LEVEL_TABLE)
		snprintf(text, PLACE_SIZE, "%s[%u].", table_names[d->table], d->entry);
	for (int i = 0, len = 0; i < (int)d->level - (int)LEVEL_TABLE; i++)
		len += snprintf(text + len, PLACE_SIZE - (size_t)len, "%s[%u].", names[i], at[i]);
	return text;
}

bool decoder_malformed(struct decoder *d, const char *field, const char *what)
{
	char at[PLACE_SIZE];
	place(d, at);
	if (field)
		return error_set(d->err, ERROR_INVALID, "%s%s %s", at, field, what);
	if (at[0])
		at[strlen(at) - 1] = '\0';
	return error_set(d->err, ERROR_INVALID, "%s %s", at[0] ? at : "the request", what);
}

bool decoder_broken(struct decoder *d, struct wire w, uint32_t tag, const struct message *message)
{
	uint32_t number = tag >> 3;
	return decoder_malformed(d,
				 number && number < message->count ? message->names[number] : NULL,
				 wire_fault_text(w.fault));
}

/* Records the first fault of the dictionary, and the first fault of a Profile. */
static void note(struct decoder *d, const char *field, const char *what)
{
	char at[PLACE_SIZE];
	if (d->level == LEVEL_TABLE && !d->bad_entry[0])
		snprintf(d->bad_entry, sizeof d->bad_entry, "%s%s %s", place(d, at), field, what);
	else if (d->level != LEVEL_TABLE && !d->reason[0])
		snprintf(d->reason, sizeof d->reason, "%s%s %s", place(d, at), field, what);
}

enum fault decoder_bad_index(struct decoder *d, const char *field, enum table table, uint64_t index)
{
	char what[240];
	if (d->level == LEVEL_TABLE)
		d->bad[d->table] = true;
	if (index >= d->limit[table] && d->level == LEVEL_SAMPLE && table == TABLE_ATTRIBUTE)
		d->evidence |= SEEN_BEYOND;
	if (d->level == LEVEL_TABLE ? d->bad_entry[0] : d->reason[0])
		return FAULT_INDEX; /* only the first one is described */
	if (index >= INDEX_NONE)
		snprintf(what, sizeof what, "is out of range for %s (%u entries)",
			 table_names[table], d->limit[table]);
	else if (index >= d->limit[table])
		snprintf(what, sizeof what, "%u is out of range for %s (%u entries)",
			 (uint32_t)index, table_names[table], d->limit[table]);
	else
		snprintf(what, sizeof what,
			 "%u is invalid; first invalid "
			 "entry: %s",
			 (uint32_t)index, d->bad_entry);
	note(d, field, what);
	return FAULT_INDEX;
}

enum fault decoder_fault(struct decoder *d, enum fault fault, const char *field, const char *what)
{
	if (d->level == LEVEL_TABLE)
		d->bad[d->table] = true;
	note(d, field, what);
	return fault;
}

bool decoder_each(struct decoder *d, struct view message, uint32_t number,
		  bool (*decode)(struct decoder *d, struct view value, void *context),
		  void *context)
{
	struct wire w = wire_of(message);
	while (wire_more(&w)) {
		uint32_t tag = wire_tag(&w);
		if (tag != WIRE_TAG(number, WIRE_LEN))
			wire_skip(&w, tag);
		else if (!decode(d, wire_len(&w), context))
			return false;
	}
	return true;
}

bool decoder_full(struct decoder *d)
{
	d->p->over_cap = true;
	return profiles_over_cap(d->p, d->err);
}

static bool entry_is_bad(const struct profiles *p, enum table table, uint32_t index)
{
	if (table == TABLE_ATTRIBUTE)
		return p->attributes.at[index].fault;
	return p->locations.at[index].fault;
}

/* The table has a faulty entry: checks whether the list that starts at `first` refers to one. */
static void reach_bad(struct decoder *d, const char *field, enum table table, uint32_t first,
		      uint8_t *fault)
{
	const struct profiles *p = d->p;
	for (uint32_t i = first; i < p->indices.count && !*fault; i++)
		if (entry_is_bad(p, table, p->indices.at[i]))
			*fault = decoder_bad_index(d, field, table, p->indices.at[i]);
}

/* An index is out of range: finds the first such index, and makes the whole list harmless. */
static void reach_beyond(struct decoder *d, const char *field, enum table table, uint32_t first,
			 uint8_t *fault)
{
	struct profiles *p = d->p;
	for (uint32_t i = first; i < p->indices.count; i++) {
		uint32_t *index = &p->indices.at[i];
		if (*index >= d->limit[table] && !*fault)
			*fault = decoder_bad_index(d, field, table, *index);
		if (*index >= d->limit[table])
			*index = 0;
	}
}

typedef uint8_t v8x8 __attribute__((vector_size(8)));
typedef uint32_t v32x8 __attribute__((vector_size(32)));
typedef uint16_t v16x4 __attribute__((vector_size(8)));
typedef uint32_t v32x4 __attribute__((vector_size(16)));

#define ENDS 0x8080808080808080u          /* the continuation bits */
#define ENDS_OF_PAIRS 0x0080008000800080u /* the continuation bits of four two-byte varints */

/* Four varints of two bytes each. */
static inline void four_pairs(uint32_t *out, uint64_t word)
{
	word = (word & 0x007f007f007f007f) | (word & 0x7f007f007f007f00) >> 1;
	v16x4 narrow;
	memcpy(&narrow, &word, sizeof narrow);
	v32x4 wide = __builtin_convertvector(narrow, v32x4);
	memcpy(out, &wide, sizeof wide);
}

/* Eight varints of one byte each. */
static inline void eight_single(uint32_t *out, uint64_t word)
{
	v8x8 narrow;
	memcpy(&narrow, &word, sizeof narrow);
	v32x8 wide = __builtin_convertvector(narrow, v32x8);
	memcpy(out, &wide, sizeof wide);
}

/* Four varints of one or two bytes each, which are the first 4 to 8 bytes of the word. Returns the
 * number of bytes. */
static inline size_t four_mixed(uint32_t *out, uint64_t word)
{
	size_t len = 4;
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		uint64_t more = word >> 7 & 1;
		out[i] = (uint32_t)((word & 0x7f) | (word >> 1 & 0x3f80 & -more));
		word >>= 8 + 8 * more;
		len += more;
	}
	return len;
}

/* A number that is negative or exceeds an int32 becomes INDEX_NONE. */
static inline uint32_t one_index(struct wire *w)
{
	const uint8_t *at = w->at;
	if (at[0] < 0x80) {
		w->at = at + 1;
		return at[0];
	}
	uint32_t index = (at[0] & 0x7fu) | (at[1] & 0x7fu) << 7;
	if (at[1] < 0x80) {
		w->at = at + 2;
		return index;
	}
	if (at[2] < 0x80) {
		w->at = at + 3;
		return index | (uint32_t)at[2] << 14;
	}
	uint64_t big = wire_varint(w);
	return big < INDEX_NONE ? (uint32_t)big : INDEX_NONE;
}

/* Unpacks to `out`, which has room for one number per byte and seven more; returns the end. Most
 * indices have one or two bytes. */
static inline uint32_t *unpack(uint32_t *out, struct wire *w)
{
	while (w->end - w->at >= 8) {
		uint64_t word = wire_load(w->at), more = word & ENDS;
		if (!more) {
			eight_single(out, word);
			out += 8;
			w->at += 8;
		} else if (more == ENDS_OF_PAIRS) {
			four_pairs(out, word);
			out += 4;
			w->at += 8;
		} else if (more & more >> 8) {
			*out++ = one_index(w);
			if (wire_more(w))
				*out++ = one_index(w);
		} else {
			w->at += four_mixed(out, word);
			out += 4;
		}
	}
	if (!wire_more(w))
		return out;
	size_t left = (size_t)(w->end - w->at);
	uint64_t mask = ~(UINT64_MAX << 8 * left), word = wire_load(w->at) & mask;
	if (!(word & ENDS)) {
		eight_single(out, word);
		out += left;
		w->at += left;
	} else if (!(left & 1) && (word & ENDS) == (ENDS_OF_PAIRS & mask)) {
		four_pairs(out, word);
		out += left / 2;
		w->at += left;
	}
	while (wire_more(w))
		*out++ = one_index(w);
	return out;
}

/* Is any index equal to limit or larger? Writes three zeros after the end. */
static inline bool any_beyond(uint32_t *at, uint32_t *end, uint32_t limit)
{
	v32x4 lasts = { limit - 1, limit - 1, limit - 1, limit - 1 }, signs = { 0 };
	memset(end, 0, 3 * sizeof *end);
	for (; at < end; at += 4) {
		v32x4 four;
		memcpy(&four, at, sizeof four);
		signs |= lasts - four; /* negative if the index is out of range */
	}
	return (signs[0] | signs[1] | signs[2] | signs[3]) >> 31;
}

bool decoder_many_indices(struct decoder *d, const char *field, enum table table,
			  struct view packed, uint8_t *fault)
{
	struct profiles *p = d->p;
	if (!profiles_room(p, &p->indices, packed.len + 7))
		return decoder_full(d);
	uint32_t first = p->indices.count, *start = p->indices.at + first;
	struct wire w = wire_of(packed);
	uint32_t *end = unpack(start, &w);
	if (__builtin_expect(!wire_done(&w), 0)) {
		*fault = decoder_fault(d, FAULT_VALUE, field, wire_fault_text(w.fault));
		return true;
	}
	p->indices.count = (uint32_t)(end - p->indices.at);
	if (__builtin_expect(any_beyond(start, end, d->limit[table]), 0))
		reach_beyond(d, field, table, first, fault);
	if (__builtin_expect(d->bad[table], 0))
		reach_bad(d, field, table, first, fault);
	return true;
}

bool decoder_one_index(struct decoder *d, const char *field, enum table table, uint64_t index,
		       uint8_t *fault)
{
	struct profiles *p = d->p;
	if (!profiles_room(p, &p->indices, 1))
		return decoder_full(d);
	p->indices.at[p->indices.count++] = decoder_index(d, field, table, index, fault);
	if (d->bad[table])
		reach_bad(d, field, table, p->indices.count - 1, fault);
	return true;
}

bool decoder_string(struct decoder *d, struct view text, struct string *string)
{
	struct profiles *p = d->p;
	*string = (struct string){ .text = decoder_span(d, text) };
	if (__builtin_expect(wire_utf8_ok(text), 1))
		return true;
	size_t at = p->added.len;
	if (!wire_utf8_repair(&p->added, text))
		return decoder_full(d);
	string->text.at = (uint32_t)at | SPAN_ADDED;
	string->text.len = (uint32_t)(p->added.len - at);
	string->repaired = 1;
	p->repaired_strings++;
	return true;
}

bool decoder_text(struct decoder *d, struct view text, uint32_t *string)
{
	struct profiles *p = d->p;
	*string = 0;
	if (!text.len)
		return true;
	if (!profiles_room(p, &p->strings, 1))
		return decoder_full(d);
	*string = p->strings.count++;
	return decoder_string(d, text, &p->strings.at[*string]);
}
