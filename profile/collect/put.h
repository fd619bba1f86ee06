/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_COLLECT_PUT_H
#define PROFILE_COLLECT_PUT_H

#include "profile/wire.h"

/*
 * Writes messages through a plain pointer, above the writers of profile/wire.h. Each function
 * returns the end of what it wrote. The caller has reserved the room: PUT_MAX for each number or
 * header, plus the payload. Every destination has BYTES_SLACK writable bytes behind its room, every
 * source as many readable ones. `tag` is one byte: fields up to 15.
 */
#define PUT_VARINT(field) ((uint8_t)WIRE_TAG(field, WIRE_VARINT))
#define PUT_FIXED64(field) ((uint8_t)WIRE_TAG(field, WIRE_FIXED64))
#define PUT_LEN(field) ((uint8_t)WIRE_TAG(field, WIRE_LEN))

#define PUT_MAX 11 /* a tag and the longest varint */

/* An index: a varint, usually of one or two bytes. */
static inline uint8_t *put_index(uint8_t *at, uint32_t index)
{
	if (__builtin_expect(index >= 0x4000, 0))
		return wire_put_varint(at, index);
	/* written unconditionally: a branch would be unpredictable */
	uint32_t second = index >= 0x80;
	at[0] = (uint8_t)(index | second << 7);
	at[1] = (uint8_t)(index >> 7);
	return at + 1 + second;
}

/* The same, backwards from `end`; returns its start. */
static inline uint8_t *put_index_before(uint8_t *end, uint32_t index)
{
	if (__builtin_expect(index >= 0x4000, 0)) {
		uint8_t *at = end - wire_varint_len(index);
		wire_put_varint(at, index);
		return at;
	}
	uint32_t second = index >= 0x80;
	end[-2] = (uint8_t)(index | 0x80);
	end[-1] = (uint8_t)(second ? index >> 7 : index);
	return end - 1 - second;
}

/* A varint field; the default value is omitted. */
static inline uint8_t *put_number(uint8_t *at, uint8_t tag, uint64_t v)
{
	if (!v)
		return at;
	*at++ = tag;
	if (v >= 0x4000)
		return wire_put_long(at, v);
	at[0] = (uint8_t)v;
	if (v < 0x80)
		return at + 1;
	at[0] |= 0x80;
	at[1] = (uint8_t)(v >> 7);
	return at + 2;
}

static inline uint8_t *put_fixed64(uint8_t *at, uint8_t tag, uint64_t v)
{
	if (!v)
		return at;
	*at++ = tag;
	return wire_put_fixed64(at, v);
}

static inline uint8_t *put_header(uint8_t *at, uint8_t tag, size_t len)
{
	*at++ = tag;
	return wire_put_varint(at, len);
}

/* The same before its content; returns its start. */
static inline uint8_t *put_header_before(uint8_t *content, uint8_t tag, size_t len)
{
	uint8_t *at = content - wire_varint_len(len) - 1;
	put_header(at, tag, len);
	return at;
}

/* Short copies move 32 bytes through registers. They may overlap. */
static inline uint8_t *put_copy(uint8_t *at, const uint8_t *from, size_t len)
{
	if (len > 32)
		return (uint8_t *)memmove(at, from, len) + len;
	uint8_t low[16], high[16];
	memcpy(low, from, 16);
	memcpy(high, from + 16, 16);
	memcpy(at, low, 16);
	memcpy(at + 16, high, 16);
	return at + len;
}

/* A length-delimited field; omitted if empty. */
static inline uint8_t *put_bytes(uint8_t *at, uint8_t tag, struct view v)
{
	return v.len ? put_copy(put_header(at, tag, v.len), v.at, v.len) : at;
}

/* A submessage of unknown length is written behind a header of two bytes, and moved in the rare
 * case that its length needs more than one byte: reserve PUT_MAX for each. */
#define PUT_HEADER 2

static inline uint8_t *put_close(uint8_t *header, uint8_t tag, uint8_t *end)
{
	uint8_t *content = header + PUT_HEADER;
	size_t len = (size_t)(end - content);
	if (len >= 0x80) {
		size_t by = wire_varint_len(len) - 1;
		memmove(content + by, content, len);
		end += by;
	}
	put_header(header, tag, len);
	return end;
}

/* A submessage that is known to be shorter than 128 bytes. */
static inline uint8_t *put_close_short(uint8_t *header, uint8_t tag, uint8_t *end)
{
	header[0] = tag;
	header[1] = (uint8_t)(end - header - PUT_HEADER);
	return end;
}

/* One packed number; most lists of attributes have one. */
static inline uint8_t *put_packed_one(uint8_t *at, uint8_t tag, uint32_t number)
{
	return put_close_short(at, tag, put_index(at + PUT_HEADER, number));
}

/* Packed varints: reserve 5 bytes for each, plus PUT_MAX. */
static inline uint8_t *put_packed(uint8_t *at, uint8_t tag, const uint32_t *numbers, uint32_t count)
{
	if (!count)
		return at;
	uint8_t *end = at + PUT_HEADER;
	for (uint32_t i = 0; i < count; i++)
		end = put_index(end, numbers[i]);
	return put_close(at, tag, end);
}

#endif
