/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/inflate.h"

/* The first charge, as a multiple of the compressed size, and the factor by which it grows. */
enum { RATIO = 8, LEAST = 1024 };

/* An empty buffer that may grow to max; it keeps the capacity of earlier requests. */
static void reuse(struct bytes *b, size_t max)
{
	b->len = 0;
	b->max = b->room > max ? b->room : max;
	bytes_reserve(b, 1);
}

static bool over(const struct size_limit *limit, size_t observed, struct error *err)
{
	return size_limit_exceeded(limit, "the decompressed body", observed, err);
}

bool inbound_inflate(struct inbound *in, enum coding coding, struct view raw,
		     const struct size_limit *limit, size_t *held, struct bytes *out,
		     struct error *err)
{
	size_t cap = limit->max, room = raw.len + LEAST;
	do {
		room = room > cap / RATIO ? cap : room * RATIO;
		if (!gate_charge(in->gate, in, *held + room, err))
			return false;
		reuse(out, room);
		if (compress_inflate(coding, raw, out, err)) {
			if (out->len > cap)
				return over(limit, out->len, err);
			error_clear(err); /* of an attempt with too small a buffer */
			*held += out->len;
			return gate_charge(in->gate, in, *held, err);
		}
	} while (err->kind == ERROR_TOO_LARGE && room < cap);
	return err->kind == ERROR_TOO_LARGE && over(limit, 0, err);
}
