/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_KAFKA_KAFKA_WINDOW_H
#define NET_KAFKA_KAFKA_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How much an idempotent client of librdkafka is given at once.
 *
 * librdkafka sends nothing more to a partition that has five messages in flight
 * (RD_KAFKA_IDEMP_MAX_INFLIGHT). While more messages wait there and their linger time is over, the
 * thread of the broker calls poll() without a pause (rd_kafka_toppar_producer_serve, the same in
 * versions 1.9.2 and 2.3.0): a slow broker would cost a whole processor. The window admits what is
 * sent without such a wait: five messages, or, from an idle client on, a group that one request
 * can hold.
 *
 * The caller provides the mutual exclusion.
 */
struct kafka_window {
	bool unlimited;                      /* the client is not idempotent */
	int64_t batch_bytes, batch_messages; /* limits of one request */
	uint64_t linger_ns;
	int64_t in_flight;       /* messages */
	int64_t bytes, messages; /* of the group */
	uint64_t until_ns;       /* when the group is complete */
};

/* May a message of this size (with all that it takes in a request) be handed over now? If so, it is
 * counted. */
bool kafka_window_admit(struct kafka_window *window, int64_t bytes, uint64_t now_ns);
/* The message has been reported. */
void kafka_window_release(struct kafka_window *window);

#endif
