/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_COMPRESS_SNAPPY_H
#define NET_COMPRESS_SNAPPY_H

#include "base/bytes.h"
#include "base/error.h"

/*
 * Snappy for net/compress: raw blocks by libsnappy, and the framing format around them (Snappy
 * framing format description of 2013-10-25). Both are limited by the maximum of `out`. [any thread]
 */

/* The decompressed size that a raw block states; SIZE_MAX: it states none. */
size_t compress_snappy_stated_size(struct view block);
/* A raw block, or frames if the body begins with their identifier. */
bool compress_snappy_inflate(struct view in, struct bytes *out, struct error *err);
bool compress_snappy_inflate_framed(struct view in, struct bytes *out, struct error *err);
/* Return the number of bytes written after out->len; 0: they do not fit. */
size_t compress_snappy_deflate(struct view in, struct bytes *out);
size_t compress_snappy_deflate_framed(struct view in, struct bytes *out);

#endif
