/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_COMPRESS_H
#define NET_COMPRESS_H

#include "base/bytes.h"
#include "base/coding.h"
#include "base/error.h"

/*
 * Compresses and decompresses whole bodies: libdeflate for gzip and zlib (all members), ISA-L for
 * writing gzip at level 1, libzstd, libsnappy and liblz4. The maximum of the output buffer is the
 * cap: a decompression bomb stops there with ERROR_TOO_LARGE, whatever sizes it claims. A corrupt
 * stream is ERROR_INVALID. [any thread; no state is shared]
 */
/* By the first bytes: 1F 8B gzip, 28 B5 2F FD zstd, FF 06 00 00 "sNaPpY" framed snappy, else
 * identity. */
enum coding compress_sniff(struct view body);
/* HTTP Content-Encoding / grpc-encoding token: "", identity, gzip, x-gzip, deflate and zlib (both
 * are CODING_ZLIB), zstd, snappy, x-snappy-framed, lz4. With the grpc-encoding `snappy`, grpc-go
 * sends CODING_SNAPPY_FRAMED. */
enum coding compress_named(const char *name);
/* The Content-Encoding token; "identity" for no compression. */
const char *compress_name(enum coding coding);

/* The decompressed size that the body states, which is only a claim. SIZE_MAX: it states none. */
size_t compress_stated_size(enum coding coding, struct view body);

/* BYTES_SLACK zeros follow the output, so that what a decoder says of it does not depend on what
 * was in the buffer. */
bool compress_inflate(enum coding coding, struct view in, struct bytes *out, struct error *err);
/* level 0: the default (1). gzip and zlib have 1 to 12, zstd 1 to 22, lz4 1 to 12; snappy has none.
 * `out` needs room for the worst case, in which the output is larger than the input. */
bool compress_deflate(enum coding coding, int level, struct view in, struct bytes *out,
		      struct error *err);

/* The boundaries between kinds of content in a body, ascending. One of them, but not the last, is
 * where the text begins. */
struct cuts {
	const size_t *at;
	size_t count, text;
};

/* Gzip at level 1, with Huffman codes chosen by the kinds of content. */
bool compress_gzip(struct view in, const struct cuts *cuts, struct bytes *out, struct error *err);

#endif
