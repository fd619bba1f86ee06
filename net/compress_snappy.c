/* SPDX-License-Identifier: Apache-2.0 */
#include "net/compress_snappy.h"

#include <isa-l/crc.h>
#include <snappy-c.h>

#include "net/compress_output.h"

#define IDENTIFIER "\xff\x06\0\0sNaPpY"

enum {
	IDENTIFIER_BYTES = 10,
	HEADER = 4,        /* of a chunk: type, and length in three bytes */
	CHECKSUM = 4,      /* of the decompressed data of a chunk */
	CHUNK_MAX = 65536, /* decompressed */
	/* Three bytes make at most 64, so no block decompresses to more than this many times its
	 * size. */
	RATIO_MAX = 22,
	CHUNK_COMPRESSED = 0x00,
	CHUNK_PLAIN = 0x01,
	CHUNK_SKIPPABLE = 0x80, /* and all above it */
	CHUNK_IDENTIFIER = 0xff
};

static uint32_t get_le(const uint8_t *at, unsigned bytes)
{
	uint32_t value = 0;
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint32_t)at[i] << 8 * i;
	return value;
}

static void put_le(uint8_t *at, uint32_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

/* CRC-32C, rotated and offset as the format prescribes (section 3). */
static uint32_t checksum(const uint8_t *at, size_t len)
{
	uint32_t crc = ~crc32_iscsi((unsigned char *)at, (int)len, ~0u);
	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static bool is_framed(struct view in)
{
	return in.len >= IDENTIFIER_BYTES && !memcmp(in.at, IDENTIFIER, IDENTIFIER_BYTES);
}

size_t compress_snappy_stated_size(struct view block)
{
	size_t size;
	if (is_framed(block) ||
	    snappy_uncompressed_length((const char *)block.at, block.len, &size) != SNAPPY_OK)
		return SIZE_MAX;
	return size;
}

static bool inflate_block(struct view in, size_t offset, size_t max, struct bytes *out,
			  struct error *err)
{
	size_t size;
	if (snappy_uncompressed_length((const char *)in.at, in.len, &size) != SNAPPY_OK ||
	    size / RATIO_MAX > in.len || size > max)
		return compress_output_damaged("snappy", offset, err);
	if (size > out->max - out->len)
		return compress_output_exceeded(out, err);
	compress_output_reserve(out, size ? size : 1);
	char *to = (char *)out->at + out->len;
	if (snappy_uncompress((const char *)in.at, in.len, to, &size) != SNAPPY_OK)
		return compress_output_damaged("snappy", offset, err);
	out->len += size;
	return true;
}

bool compress_snappy_inflate(struct view in, struct bytes *out, struct error *err)
{
	return is_framed(in) ? compress_snappy_inflate_framed(in, out, err)
			     : inflate_block(in, 0, SIZE_MAX, out, err);
}

static bool inflate_data(uint8_t type, struct view chunk, size_t offset, struct bytes *out,
			 struct error *err)
{
	size_t before = out->len;
	if (chunk.len < CHECKSUM)
		return compress_output_damaged("snappy", offset, err);
	struct view data = { chunk.at + CHECKSUM, chunk.len - CHECKSUM };
	if (type == CHUNK_COMPRESSED) {
		if (!inflate_block(data, offset, CHUNK_MAX, out, err))
			return false;
	} else if (data.len > CHUNK_MAX) {
		return compress_output_damaged("snappy", offset, err);
	} else if (!bytes_add(out, data.at, data.len)) {
		return compress_output_exceeded(out, err);
	}
	return checksum(out->at + before, out->len - before) == get_le(chunk.at, CHECKSUM) ||
	       compress_output_damaged("snappy", offset, err);
}

static bool inflate_chunk(uint8_t type, struct view chunk, size_t offset, struct bytes *out,
			  struct error *err)
{
	if (type == CHUNK_COMPRESSED || type == CHUNK_PLAIN)
		return inflate_data(type, chunk, offset, out, err);
	if (type == CHUNK_IDENTIFIER)
		return (chunk.len == IDENTIFIER_BYTES - HEADER &&
			!memcmp(chunk.at, IDENTIFIER + HEADER, chunk.len)) ||
		       compress_output_damaged("snappy", offset, err);
	return type >= CHUNK_SKIPPABLE || compress_output_damaged("snappy", offset, err);
}

bool compress_snappy_inflate_framed(struct view in, struct bytes *out, struct error *err)
{
	if (!is_framed(in))
		return compress_output_damaged("snappy", 0, err);
	compress_output_reserve(out, compress_output_guess(in, (uint64_t)in.len * 4));
	for (size_t at = IDENTIFIER_BYTES, len; at < in.len; at += HEADER + len) {
		if (in.len - at < HEADER)
			return compress_output_damaged("snappy", at, err);
		len = get_le(in.at + at + 1, HEADER - 1);
		if (len > in.len - at - HEADER)
			return compress_output_damaged("snappy", at, err);
		struct view chunk = { in.at + at + HEADER, len };
		if (!inflate_chunk(in.at[at], chunk, at, out, err))
			return false;
	}
	return true;
}

size_t compress_snappy_deflate(struct view in, struct bytes *out)
{
	size_t made = snappy_max_compressed_length(in.len);
	if (!bytes_reserve(out, made))
		return 0;
	char *to = (char *)out->at + out->len;
	return snappy_compress((const char *)in.at, in.len, to, &made) == SNAPPY_OK ? made : 0;
}

/* Data that snappy cannot make smaller is sent as it is. */
static size_t put_chunk(struct view data, uint8_t *to)
{
	size_t made = snappy_max_compressed_length(data.len);
	uint8_t *body = to + HEADER + CHECKSUM;
	bool smaller = snappy_compress((const char *)data.at, data.len, (char *)body, &made) ==
			       SNAPPY_OK &&
		       made < data.len;
	if (!smaller) {
		memcpy(body, data.at, data.len);
		made = data.len;
	}
	to[0] = smaller ? CHUNK_COMPRESSED : CHUNK_PLAIN;
	put_le(to + 1, (uint32_t)(CHECKSUM + made), HEADER - 1);
	put_le(to + HEADER, checksum(data.at, data.len), CHECKSUM);
	return HEADER + CHECKSUM + made;
}

/* A chunk that was written is never larger than its data; one that is being written may be. */
static size_t framed_bound(size_t len)
{
	size_t chunks = len / CHUNK_MAX + 1, largest = len < CHUNK_MAX ? len : CHUNK_MAX;
	return IDENTIFIER_BYTES + chunks * (HEADER + CHECKSUM) + len +
	       snappy_max_compressed_length(largest) - largest;
}

size_t compress_snappy_deflate_framed(struct view in, struct bytes *out)
{
	if (!bytes_reserve(out, framed_bound(in.len)))
		return 0;
	uint8_t *to = out->at + out->len;
	size_t made = IDENTIFIER_BYTES;
	memcpy(to, IDENTIFIER, IDENTIFIER_BYTES);
	for (size_t at = 0; at < in.len; at += CHUNK_MAX) {
		size_t len = in.len - at < CHUNK_MAX ? in.len - at : CHUNK_MAX;
		made += put_chunk((struct view){ in.at + at, len }, to + made);
	}
	return made;
}
