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

bool inbound_inflate(struct inbound *in, enum coding coding, struct view raw, size_t cap,
		     size_t *held, struct bytes *out, struct error *err)
{
	size_t room = raw.len + LEAST;
	do {
		room = room > cap / RATIO ? cap : room * RATIO;
		if (!gate_charge(in->gate, in, *held + room, err))
			return false;
		reuse(out, room);
		if (compress_inflate(coding, raw, out, err)) {
			if (out->len > cap)
				return error_set(err, ERROR_TOO_LARGE,
						 "the decompressed body exceeds %zu bytes", cap);
			error_clear(err); /* of an attempt with too small a buffer */
			*held += out->len;
			return gate_charge(in->gate, in, *held, err);
		}
	} while (err->kind == ERROR_TOO_LARGE && room < cap);
	return false;
}
