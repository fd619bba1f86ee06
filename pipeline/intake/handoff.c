/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/handoff.h"

enum {
	/* After this many bytes from all connections in one turn, the rest goes to workers. */
	TURN_BYTES = 524288,
	/* the least that a compressed body counts in a turn, whatever size it states */
	COMPRESSED_MIN = 16384
};

static bool is_small(struct io_thread *thread, enum coding coding, struct view body)
{
	if (coding == CODING_UNKNOWN || body.len > HANDOFF_INLINE_BYTES)
		return false;
	size_t size = compress_stated_size(coding, body);
	if (size > HANDOFF_INLINE_BYTES)
		return false;
	if (coding != CODING_IDENTITY)
		io_turn_count(thread, size > COMPRESSED_MIN ? size : COMPRESSED_MIN);
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
