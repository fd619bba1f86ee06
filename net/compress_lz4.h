/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_COMPRESS_LZ4_H
#define NET_COMPRESS_LZ4_H

#include "base/bytes.h"
#include "base/error.h"

/*
 * LZ4 frames for net/compress (LZ4 Frame Format 1.6.2). liblz4 decompresses the blocks directly
 * into the output. Its own reader of frames would allocate twice the block size that a frame
 * states, up to 8 MiB. Skippable frames are skipped. A frame that requires a dictionary is an
 * error. [any thread]
 */
bool compress_lz4_inflate(struct view in, struct bytes *out, struct error *err);
/* Returns the number of bytes written after out->len; 0: they do not fit. */
size_t compress_lz4_deflate(int level, struct view in, struct bytes *out);

#endif
