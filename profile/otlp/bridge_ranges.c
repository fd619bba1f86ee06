/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The locations of a Profile of 1.3 to 1.7. Each sample has a range of them: as a rule the ranges
 * follow each other, so that the end of one is the begin of the next, and nothing needs to be
 * unpacked to find it. For any other range, blocks of bytes have the number of locations that end
 * before them.
 */
#include "profile/otlp/bridge_old.h"

#define ENDS UINT64_C(0x8080808080808080)

enum { BLOCK = 128 };

/* The number of bytes in the word that end a varint; ends: their highest bits. */
static inline uint32_t count_of(uint64_t ends)
{
	return (uint32_t)((ends >> 7) * UINT64_C(0x0101010101010101) >> 56);
}

typedef int8_t v8x16 __attribute__((vector_size(16)));

/* In a whole block: for each of 16 columns a number of at most BLOCK / 16. */
static inline uint32_t count_block(const uint8_t *at)
{
	v8x16 counts = { 0 };
	for (int i = 0; i < BLOCK; i += 16) {
		v8x16 bytes;
		memcpy(&bytes, at + i, sizeof bytes);
		counts -= bytes >= 0;
	}
	uint64_t sums[2];
	memcpy(sums, &counts, sizeof sums);
	return (uint32_t)((sums[0] + sums[1]) * UINT64_C(0x0101010101010101) >> 56);
}

static uint32_t count_ends(const uint8_t *at, size_t len)
{
	uint32_t count = 0;
	for (; len >= 8; at += 8, len -= 8)
		count += count_of(~wire_load(at) & ENDS);
	return len ? count + count_of(~wire_load(at) & ENDS & ~(UINT64_MAX << 8 * len)) : count;
}

/* Behind the varint that is the nth to end from here on; n > 0, and there are that many. */
static const uint8_t *behind(const uint8_t *at, uint64_t n)
{
	uint64_t ends = ~wire_load(at) & ENDS;
	for (uint32_t count; (count = count_of(ends)) < n; n -= count) {
		at += 8;
		ends = ~wire_load(at) & ENDS;
	}
	while (--n)
		ends &= ends - 1;
	return at + (__builtin_ctzll(ends) >> 3) + 1;
}

void old_ranges_begin(struct old *o)
{
	o->ranges = (struct old_ranges){ { NULL, 0 }, 0, 0, NULL };
	o->buffer[OLD_INDICES].len = 0;
}

/* Several pieces are joined. One that ends within a varint gets a location that is out of range in
 * its place. */
static bool join(struct old *o, struct view piece)
{
	static const uint8_t none[] = { 0xff, 0xff, 0xff, 0xff, 0x07 };
	struct bytes *all = &o->buffer[OLD_INDICES];
	struct view before = o->ranges.packed;
	if (before.at != all->at && !bytes_add(all, before.at, before.len))
		return false;
	bool cut = all->len && all->at[all->len - 1] >= 0x80;
	while (all->len && all->at[all->len - 1] >= 0x80)
		all->len--;
	if ((cut && !bytes_add(all, none, sizeof none)) || !bytes_add(all, piece.at, piece.len))
		return false;
	o->ranges.packed = bytes_view(all);
	return true;
}

bool old_ranges_add(struct old *o, const struct wire_field *field)
{
	uint8_t number[10];
	struct view piece = field->view;
	if (field->type == WIRE_VARINT)
		piece = (struct view){ number,
				       (size_t)(wire_put_varint(number, field->value) - number) };
	if (field->type == WIRE_VARINT || o->ranges.packed.len)
		return join(o, piece);
	o->ranges.packed = piece;
	return true;
}

bool old_ranges_end(struct old *o)
{
	struct view packed = o->ranges.packed;
	struct bytes *blocks = &o->buffer[OLD_BLOCKS];
	uint32_t count = 0;
	blocks->len = 0;
	if (!bytes_reserve(blocks, (packed.len / BLOCK + 1) * sizeof count))
		return false;
	for (size_t done = 0; done < packed.len; done += BLOCK) {
		size_t left = packed.len - done;
		memcpy(blocks->at + blocks->len, &count, sizeof count);
		blocks->len += sizeof count;
		count += left < BLOCK ? count_ends(packed.at + done, left)
				      : count_block(packed.at + done);
	}
	o->ranges.count = count;
	o->ranges.next_at = packed.at;
	return true;
}

/* Where the location begins: behind the one before it. */
static const uint8_t *place_of(const struct old *o, uint64_t index)
{
	const uint32_t *blocks = (const uint32_t *)o->buffer[OLD_BLOCKS].at;
	size_t low = 0, high = o->buffer[OLD_BLOCKS].len / sizeof *blocks;
	if (index == o->ranges.next)
		return o->ranges.next_at;
	if (!index)
		return o->ranges.packed.at;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (blocks[middle] < index)
			low = middle;
		else
			high = middle;
	}
	return behind(o->ranges.packed.at + low * BLOCK, index - blocks[low]);
}

bool old_range(struct old *o, uint64_t start, uint64_t length, struct view *range)
{
	uint64_t count = o->ranges.count;
	*range = (struct view){ NULL, 0 };
	if (!length)
		return true;
	if (start > count || length > count - start)
		return false;
	const uint8_t *at = place_of(o, start), *end = behind(at, length);
	o->ranges.next = start + length;
	o->ranges.next_at = end;
	*range = (struct view){ at, (size_t)(end - at) };
	return true;
}
