/* SPDX-License-Identifier: Apache-2.0 */
#include "net/compress_lz4.h"

#include <lz4.h>
#include <lz4frame.h>

#include "base/hash.h"
#include "net/compress_output.h"

enum {
	MAGIC = 0x184d2204,
	SKIPPABLE = 0x184d2a50, /* and the 15 numbers above it */
	WINDOW = 65536,
	/* No block decompresses to more than this many times its size. */
	RATIO_MAX = 255,
	/* FLG */
	VERSION = 0xc0,
	VERSION_1 = 0x40,
	INDEPENDENT = 0x20,
	BLOCK_CHECKSUMS = 0x10,
	CONTENT_SIZE = 0x08,
	CONTENT_CHECKSUM = 0x04,
	RESERVED = 0x02,
	DICTIONARY = 0x01
};

#define PLAIN_BLOCK 0x80000000u

/* What is left to read of the body. */
struct reader {
	struct view in;
	size_t at;
};

struct frame {
	uint8_t flags;
	size_t block_max;
	uint64_t content_size;
	size_t begin; /* of its content in the output */
};

static bool damaged(const struct reader *r, struct error *err)
{
	return compress_output_damaged("lz4", r->at, err);
}

static const uint8_t *take(struct reader *r, size_t len)
{
	const uint8_t *at = r->in.at + r->at;
	if (len > r->in.len - r->at)
		return NULL;
	r->at += len;
	return at;
}

static uint64_t get_le(const uint8_t *at, unsigned bytes)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)at[i] << 8 * i;
	return value;
}

static bool take_word(struct reader *r, uint32_t *word)
{
	const uint8_t *at = take(r, 4);
	if (at)
		*word = (uint32_t)get_le(at, 4);
	return at != NULL;
}

/* Is the next word the checksum of these bytes? */
static bool take_checksum(struct reader *r, const uint8_t *of, size_t len)
{
	uint32_t stated;
	return take_word(r, &stated) && stated == hash_xxh32(of, len);
}

static bool take_descriptor(struct reader *r, struct frame *f)
{
	struct view head = { r->in.at + r->at, 0 };
	const uint8_t *fixed = take(r, 2), *size = NULL, *checksum;
	if (!fixed || (fixed[0] & (VERSION | RESERVED | DICTIONARY)) != VERSION_1 ||
	    fixed[1] & 0x8f || fixed[1] >> 4 < 4)
		return false;
	f->flags = fixed[0];
	f->block_max = (size_t)1 << (8 + 2 * (fixed[1] >> 4));
	if (f->flags & CONTENT_SIZE && !(size = take(r, 8)))
		return false;
	f->content_size = size ? get_le(size, 8) : 0;
	head.len = size ? 10 : 2;
	checksum = take(r, 1);
	return checksum && *checksum == (uint8_t)(hash_xxh32(head.at, head.len) >> 8);
}

/* A block refers to at most the 64 KiB before it: of its frame, or of nothing. */
static int inflate_into(const struct frame *f, struct view block, struct bytes *out, size_t room)
{
	size_t before = f->flags & INDEPENDENT ? 0 : out->len - f->begin;
	const char *to = (const char *)out->at + out->len;
	before = before < WINDOW ? before : WINDOW;
	return LZ4_decompress_safe_usingDict((const char *)block.at, (char *)out->at + out->len,
					     (int)block.len, (int)room, to - before, (int)before);
}

/* liblz4 does not say whether a block is corrupt or the room too small. */
static bool inflate_block(const struct reader *r, const struct frame *f, struct view block,
			  struct bytes *out, struct error *err)
{
	size_t most = block.len * RATIO_MAX < f->block_max ? block.len * RATIO_MAX : f->block_max;
	compress_output_reserve(out, most < block.len * 4 ? most : block.len * 4);
	for (;;) {
		size_t left = out->room - out->len, room = left < most ? left : most;
		int made = out->at ? inflate_into(f, block, out, room) : -1;
		if (made >= 0) {
			out->len += (size_t)made;
			return true;
		}
		if (room == most)
			return damaged(r, err);
		if (!compress_output_grow(out))
			return compress_output_exceeded(out, err);
	}
}

static bool read_block(struct reader *r, const struct frame *f, uint32_t word, struct bytes *out,
		       struct error *err)
{
	size_t len = word & ~PLAIN_BLOCK;
	const uint8_t *at = len <= f->block_max ? take(r, len) : NULL;
	if (!at || (f->flags & BLOCK_CHECKSUMS && !take_checksum(r, at, len)))
		return damaged(r, err);
	if (word & PLAIN_BLOCK)
		return bytes_add(out, at, len) || compress_output_exceeded(out, err);
	return inflate_block(r, f, (struct view){ at, len }, out, err);
}

static bool read_frame(struct reader *r, struct bytes *out, struct error *err)
{
	struct frame f = { .begin = out->len };
	uint32_t word;
	if (!take_descriptor(r, &f))
		return damaged(r, err);
	if (f.content_size > out->max - out->len)
		return compress_output_exceeded(out, err);
	for (;;) {
		if (!take_word(r, &word))
			return damaged(r, err);
		if (!word)
			break;
		if (!read_block(r, &f, word, out, err))
			return false;
	}
	size_t made = out->len - f.begin;
	bool sound = (!(f.flags & CONTENT_SIZE) || made == f.content_size) &&
		     (!(f.flags & CONTENT_CHECKSUM) || take_checksum(r, out->at + f.begin, made));
	return sound || damaged(r, err);
}

bool compress_lz4_inflate(struct view in, struct bytes *out, struct error *err)
{
	struct reader r = { in, 0 };
	compress_output_reserve(out, 1);
	do {
		uint32_t magic, len;
		if (!take_word(&r, &magic))
			return damaged(&r, err);
		if ((magic & ~15u) == SKIPPABLE) {
			if (!take_word(&r, &len) || !take(&r, len))
				return damaged(&r, err);
		} else if (magic != MAGIC) {
			return damaged(&r, err);
		} else if (!read_frame(&r, out, err)) {
			return false;
		}
	} while (r.at < in.len);
	return true;
}

size_t compress_lz4_deflate(int level, struct view in, struct bytes *out)
{
	LZ4F_preferences_t preferences = {
		.frameInfo = { .contentSize = in.len,
			       .contentChecksumFlag = LZ4F_contentChecksumEnabled },
		.compressionLevel = level,
	};
	if (!bytes_reserve(out, LZ4F_compressFrameBound(in.len, &preferences)))
		return 0;
	size_t made = LZ4F_compressFrame(out->at + out->len, out->room - out->len, in.at, in.len,
					 &preferences);
	return LZ4F_isError(made) ? 0 : made;
}
