/* SPDX-License-Identifier: Apache-2.0 */
#include "net/compress_output.h"

/* A first guess of the decompressed size never exceeds this many times the body. */
enum { GUESS_RATIO = 32, GUESS_MIN = 1024 };

void compress_output_reserve(struct bytes *out, size_t guess)
{
	size_t left = out->max - out->len, more = guess < left ? guess : left;
	if (!out->at || more > out->room - out->len)
		bytes_enlarge_raw(out, more);
}

bool compress_output_grow(struct bytes *out)
{
	if (out->room == out->max)
		return false;
	size_t have = out->room - out->len;
	compress_output_reserve(out, have < GUESS_MIN ? GUESS_MIN : 2 * have);
	return true;
}

size_t compress_output_guess(struct view in, uint64_t claimed)
{
	uint64_t max = (uint64_t)in.len * GUESS_RATIO + GUESS_MIN;
	return !claimed ? 1 : claimed < max ? claimed : max;
}

bool compress_output_exceeded(const struct bytes *out, struct error *err)
{
	return error_set(err, ERROR_TOO_LARGE, "the decompressed body exceeds %zu bytes", out->max);
}

bool compress_output_damaged(const char *coding, size_t offset, struct error *err)
{
	return error_set(err, ERROR_INVALID,
			 "the %s stream at byte %zu of the body is corrupt or truncated", coding,
			 offset);
}
