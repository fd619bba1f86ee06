/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CODING_H
#define BASE_CODING_H

/* How a body is compressed. net/compress.h compresses and decompresses. */
enum coding {
	CODING_IDENTITY,
	CODING_GZIP,
	CODING_ZLIB, /* RFC 1950; also reads RFC 1951 that cannot be RFC 1950 */
	CODING_ZSTD,
	CODING_SNAPPY, /* a raw block; also reads frames, by their first bytes */
	CODING_SNAPPY_FRAMED,
	CODING_LZ4, /* frames */
	CODING_UNKNOWN,
	CODING_COUNT = CODING_UNKNOWN
};

#endif
