/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_GRPC_GRPC_QUEUE_H
#define NET_GRPC_GRPC_QUEUE_H

#include <grpc/grpc.h>
#include <stdatomic.h>
#include <stdbool.h>

/*
 * The gRPC C core's completion queue and its thread: one of each for all clients. With two queues,
 * core would pass the polling of sockets from thread to thread with every event, which costs more
 * than a small request.
 *
 * The thread reads the sockets of every connection, answers pings and updates windows. Nothing that
 * runs on it may block, compress or decode.
 */
/* A tag of the queue. Every batch that was started returns its tag exactly once. */
struct grpc_tag {
	/* Written last and read first: core orders the hand-over by means that the thread sanitizer
	 * does not recognise. */
	void (*_Atomic happened)(void *owner, bool ok);
	void *owner;
};

static inline void grpc_tag_init(struct grpc_tag *tag, void (*happened)(void *owner, bool ok),
				 void *owner)
{
	tag->owner = owner;
	atomic_store(&tag->happened, happened);
}

/* The first hold initialises core and starts the thread; the last release ends both. Before a
 * release, all tags of the caller must have been returned. [any thread but the queue's] */
grpc_completion_queue *grpc_queue_hold(void);
void grpc_queue_release(void);
bool grpc_queue_here(void); /* Is this the thread of the queue? */

/* A periodic callback: tick runs about twice a second on the thread of the queue. The caller owns
 * the struct. */
struct grpc_tick {
	void (*tick)(void *context);
	void *context;
	struct grpc_tick *next;
};
void grpc_queue_tick(struct grpc_tick *tick);
/* After the return, tick does not run and will not run again. [any thread but the queue's, holding
 * no lock that tick takes] */
void grpc_queue_untick(struct grpc_tick *tick);

#endif
