/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kafka/kafka_window.h"

enum { MESSAGES_IN_FLIGHT = 5 };

/* librdkafka sends when the linger time of the first message is over. Messages that arrive within
 * half of it are surely there by then. */
static void begin_group(struct kafka_window *w, uint64_t now_ns)
{
	w->bytes = w->messages = 0;
	w->until_ns = now_ns + w->linger_ns / 2;
}

static bool completes_group(const struct kafka_window *w, int64_t bytes, uint64_t now_ns)
{
	return now_ns <= w->until_ns && w->bytes + bytes <= w->batch_bytes &&
	       w->messages < w->batch_messages;
}

bool kafka_window_admit(struct kafka_window *w, int64_t bytes, uint64_t now_ns)
{
	if (!w->in_flight)
		begin_group(w, now_ns);
	if (!w->unlimited && w->in_flight >= MESSAGES_IN_FLIGHT &&
	    !completes_group(w, bytes, now_ns))
		return false;
	w->in_flight++;
	w->messages++;
	w->bytes += bytes;
	return true;
}

void kafka_window_release(struct kafka_window *w)
{
	w->in_flight--;
}
