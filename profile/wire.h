/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_WIRE_H
#define PROFILE_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

/*
 * Bounded reader and small writers of the protobuf wire format (protobuf.dev, "Encoding"). No
 * allocation, no recursion; nothing is copied.
 *
 * Reading never checks each byte: the bytes must have BYTES_SLACK readable bytes behind their end,
 * as every struct bytes has. A read that runs past the end, or meets something malformed, leaves
 * `at` behind `end`, which ends every loop; wire_done tells afterwards whether all was well, and
 * wire_fault_text why not.
 *
 *	struct wire w = wire_of(message);
 *	while (wire_more(&w)) {
 *		uint32_t tag = wire_tag(&w);
 *		switch (tag) {
 *		case WIRE_TAG(1, WIRE_VARINT): number = wire_varint(&w); break;
 *		case WIRE_TAG(2, WIRE_LEN): text = wire_len(&w); break;
 *		default: wire_skip(&w, tag);
 *		}
 *	}
 *	return wire_done(&w);
 *
 * Groups (wire types 3 and 4) are refused, field number 0 and numbers above 2^29-1 too.
 */
enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LEN = 2, WIRE_FIXED32 = 5 };

#define WIRE_TAG(number, type) ((uint32_t)(number) << 3 | (type))

enum wire_fault {
	WIRE_OK,
	WIRE_TRUNCATED, /* something runs past the end of its message */
	WIRE_LONG,      /* a varint of more than 64 bits */
	WIRE_BAD_TAG,   /* a group, an unknown wire type, or a field number out of range */
	WIRE_MISMATCH   /* a known field with another wire type */
};

struct wire {
	const uint8_t *at, *end;
	enum wire_fault fault;
};

const char *wire_fault_text(enum wire_fault fault);

/* An empty view may have no address. */
static inline struct wire wire_of(struct view v)
{
	return (struct wire){ v.at, (const uint8_t *)((uintptr_t)v.at + v.len), WIRE_OK };
}

static inline bool wire_more(const struct wire *w)
{
	return w->at < w->end;
}

/* Ends the reading; the first reason stays. */
static inline void wire_fail(struct wire *w, enum wire_fault fault)
{
	if (!w->fault)
		w->fault = fault;
	w->at = w->end + 1;
}

/* True when everything was read and well-formed. */
static inline bool wire_done(struct wire *w)
{
	if (w->at != w->end && !w->fault)
		w->fault = WIRE_TRUNCATED;
	return !w->fault;
}

/* The same without recording the fault, for callers that then read the message again with full
 * checks. */
static inline bool wire_at_end(const struct wire *w)
{
	return w->at == w->end;
}

/* The 7-bit groups of up to 8 bytes (little-endian, continuation bits cleared) as one number. */
static inline uint64_t wire_squeeze(uint64_t x)
{
	x = (x & 0x007f007f007f007f) | (x & 0x7f007f007f007f00) >> 1;
	x = (x & 0x00003fff00003fff) | (x & 0x3fff00003fff0000) >> 2;
	return (x & 0x000000000fffffff) | (x & 0x0fffffff00000000) >> 4;
}

/* The other way: a number below 2^56. */
static inline uint64_t wire_spread(uint64_t x)
{
	x = (x & 0x000000000fffffff) | (x & 0x00fffffff0000000) << 4;
	x = (x & 0x00003fff00003fff) | (x & 0x0fffc0000fffc000) << 2;
	return (x & 0x007f007f007f007f) | (x & 0x3f803f803f803f80) << 1;
}

static inline uint64_t wire_load(const uint8_t *at)
{
	uint64_t word;
	memcpy(&word, at, sizeof word);
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap64(word) : word;
}

static inline void wire_store(uint8_t *at, uint64_t word)
{
	if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
		word = __builtin_bswap64(word);
	memcpy(at, &word, sizeof word);
}

/*
 * The hot readers are inlined and the rest takes and returns values, so that a reader's state stays
 * in registers.
 */
#define WIRE_HOT static inline __attribute__((always_inline))

/* A varint of three bytes and more, with the byte behind it; NULL if it has more than 64 bits. */
struct wire_long {
	uint64_t value;
	const uint8_t *end;
};

struct wire_long wire_varint_long(const uint8_t *at);

WIRE_HOT uint64_t wire_varint(struct wire *w)
{
	const uint8_t *at = w->at;
	uint64_t first = at[0];
	if (first < 0x80) {
		w->at = at + 1;
		return first;
	}
	if (at[1] < 0x80) {
		w->at = at + 2;
		return (first & 0x7f) | (uint64_t)at[1] << 7;
	}
	struct wire_long more = wire_varint_long(at);
	if (__builtin_expect(!more.end, 0))
		wire_fail(w, WIRE_LONG);
	else
		w->at = more.end;
	return more.value;
}

WIRE_HOT uint64_t wire_fixed64(struct wire *w)
{
	uint64_t value = wire_load(w->at);
	w->at += 8;
	return value;
}

WIRE_HOT uint32_t wire_fixed32(struct wire *w)
{
	uint32_t value = (uint32_t)wire_load(w->at);
	w->at += 4;
	return value;
}

/* A payload; empty, and the reader fails, if it would exceed the end. */
WIRE_HOT struct view wire_len(struct wire *w)
{
	uint64_t len = *w->at;
	if (len < 0x80)
		w->at++;
	else
		len = wire_varint(w);
	const uint8_t *at = w->at;
	if (__builtin_expect(len > INT32_MAX || at + len > w->end, 0)) {
		wire_fail(w, WIRE_TRUNCATED);
		return (struct view){ w->end, 0 };
	}
	w->at = at + len;
	return (struct view){ at, (size_t)len };
}

WIRE_HOT struct wire wire_sub(struct wire *w)
{
	return wire_of(wire_len(w));
}

/* The next tag; 0 when it is too large. One that is none is left to wire_skip, which refuses it. */
WIRE_HOT uint32_t wire_tag(struct wire *w)
{
	uint32_t first = *w->at;
	if (__builtin_expect(first < 0x80, 1)) {
		w->at++;
		return first;
	}
	uint64_t tag = wire_varint(w);
	return tag > UINT32_MAX ? 0 : (uint32_t)tag;
}

/* Is this tag, of one byte, the next one? Then it is read. */
WIRE_HOT bool wire_is(struct wire *w, uint32_t tag)
{
	if (w->at >= w->end || *w->at != tag)
		return false;
	w->at++;
	return true;
}

/*
 * The same without a look at the end: for who uses nothing of a message before wire_at_end says
 * that it was not passed. After two of them the third must look: no more fields than that may be
 * read in the slack.
 */
WIRE_HOT bool wire_seems(struct wire *w, uint32_t tag)
{
	if (*w->at != tag)
		return false;
	w->at++;
	return true;
}

/* Ends a case of a switch over tags, before that of the next field: writers send fields in their
 * order, and falling through to the next one saves its dispatch. */
#define WIRE_THEN(w, tag) \
	if (!wire_is(w, tag)) \
		break; \
	__attribute__((fallthrough))

/* Skips the value of an unknown field. */
struct wire wire_skipped(struct wire w, uint32_t tag);

static inline void wire_skip(struct wire *w, uint32_t tag)
{
	*w = wire_skipped(*w, tag);
}

/* After a field: is its tag the next one too? Then it is read. A tag of several bytes is left to
 * wire_tag. */
WIRE_HOT bool wire_is_again(struct wire *w, uint32_t tag)
{
	return tag < 0x80 && wire_is(w, tag);
}

/* Skips the value of an unknown field, and the fields with the same tag that follow: tables are
 * long. */
static inline void wire_skip_run(struct wire *w, uint32_t tag)
{
	if ((tag & 7) != WIRE_LEN || tag < 8) {
		wire_skip(w, tag);
		return;
	}
	do
		wire_len(w);
	while (wire_is_again(w, tag));
}

/* For cold messages: one field at a time, whatever its type. False at the end or on a fault. */
struct wire_field {
	uint32_t number;
	enum wire_type type;
	uint64_t value;   /* VARINT, FIXED64, FIXED32 */
	struct view view; /* LEN */
};

bool wire_next(struct wire *w, struct wire_field *field);

/* Are these only whole varints of at most 64 bits? `count` becomes their number. */
bool wire_packed_ok(struct view packed, uint32_t *count);

/* Is it valid UTF-8 (no surrogates, nothing overlong, at most U+10FFFF)? wire_utf8_ok reads into
 * the slack; the slow one does not. */
bool wire_utf8_slow(const uint8_t *at, size_t len);

static inline bool wire_utf8_ok(struct view text)
{
	const uint8_t *at = text.at;
	size_t len = text.len;
	uint64_t high = 0;
	for (; len >= 16; at += 16, len -= 16)
		high |= wire_load(at) | wire_load(at + 8);
	if (len >= 8) {
		high |= wire_load(at);
		at += 8;
		len -= 8;
	}
	if (len)
		high |= wire_load(at) << (64 - 8 * len);
	return __builtin_expect(!(high & 0x8080808080808080), 1) ||
	       wire_utf8_slow(text.at, text.len);
}

/* The number of bytes from `at` on that are known to be ASCII: a multiple of 64, not beyond the
 * end. */
const uint8_t *wire_ascii(const uint8_t *at, const uint8_t *end);

/* Appends the string with each maximal invalid part replaced by U+FFFD; false when out is full. */
bool wire_utf8_repair(struct bytes *out, struct view text);

/* Writers. `wire_put_*` write where there is room (10 bytes for a varint) and return the end. */
static inline size_t wire_varint_len(uint64_t value)
{
	return (size_t)((63 - __builtin_clzll(value | 1)) * 9 + 73) / 64; /* bits / 7, rounded up */
}

static inline size_t wire_len_len(uint32_t number, size_t len)
{
	return wire_varint_len(WIRE_TAG(number, 0)) + wire_varint_len(len) + len;
}

static inline uint8_t *wire_put_varint(uint8_t *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*at++ = (uint8_t)value;
	return at;
}

/* The same, faster for a long one; it may write into the bytes behind, ten in all. */
uint8_t *wire_put_long(uint8_t *at, uint64_t value);

static inline uint8_t *wire_put_tag(uint8_t *at, uint32_t number, enum wire_type type)
{
	return wire_put_varint(at, WIRE_TAG(number, type));
}

static inline uint8_t *wire_put_fixed64(uint8_t *at, uint64_t value)
{
	wire_store(at, value);
	return at + 8;
}

/* `wire_add_*` append one field to growing bytes; false when they are full. Zero is not left out.
 */
bool wire_add_varint(struct bytes *out, uint32_t number, uint64_t value);
bool wire_add_fixed64(struct bytes *out, uint32_t number, uint64_t value);
bool wire_add_len(struct bytes *out, uint32_t number, struct view payload);

#endif
