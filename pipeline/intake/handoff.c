/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/handoff.h"

enum {
	/* After this many bytes of requests from all connections in one turn, the rest goes to
	 * workers. A turn can complete many bodies that arrived before it. */
	TURN_BYTES = 524288,
	/* The least that a request counts in a turn: for what it costs apart from its bytes, and if
	 * it is compressed, because the size that it states may be wrong. */
	REQUEST_MIN = 4096,
	COMPRESSED_MIN = 16384
};

static size_t weight(enum coding coding, size_t size)
{
	size_t least = coding == CODING_IDENTITY ? REQUEST_MIN : COMPRESSED_MIN;
	return size > least ? size : least;
}

static bool is_small(struct io_thread *thread, enum coding coding, struct view body)
{
	if (coding == CODING_UNKNOWN || body.len > HANDOFF_INLINE_BYTES)
		return false;
	size_t size = compress_stated_size(coding, body);
	if (size > HANDOFF_INLINE_BYTES)
		return false;
	io_turn_count(thread, weight(coding, size));
	return io_turn_bytes(thread) <= TURN_BYTES;
}

/* Documents that are packed or many can be larger than the body states. */
static bool is_plain(const struct document_format *format)
{
	return !format->next && !format->packed;
}

void handoff_request(struct gate *gate, struct inbound *in, struct io_thread *thread,
		     const struct document_format *format, enum coding coding, struct view body)
{
	if (thread && is_plain(format) && is_small(thread, coding, body))
		gate_run_here(gate, in, io_thread_index(thread));
	else
		gate_submit(gate, in);
}
