/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_COMPRESS_OUTPUT_H
#define NET_COMPRESS_OUTPUT_H

#include "base/bytes.h"
#include "base/error.h"

/* What the codecs of net/compress share: output that grows towards its maximum, and the two errors
 * of a decoder. [any thread] */

/* Makes room for `guess` more bytes, or for as many as the maximum permits. Decoders require a
 * buffer: there is one afterwards, also of a maximum of 0. */
void compress_output_reserve(struct bytes *out, size_t guess);
/* Doubles the room after len; false at the maximum. */
bool compress_output_grow(struct bytes *out);
/* The first room for a stream that claims to decompress to `claimed` bytes, which is bounded by the
 * size of the stream. Never 0. */
size_t compress_output_guess(struct view in, uint64_t claimed);

/* Both return false. */
bool compress_output_exceeded(const struct bytes *out, struct error *err);
bool compress_output_damaged(const char *coding, size_t offset, struct error *err);

#endif
