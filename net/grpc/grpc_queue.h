/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_GRPC_GRPC_QUEUE_H
#define NET_GRPC_GRPC_QUEUE_H

#include <grpc/grpc.h>
#include <stdatomic.h>
#include <stdbool.h>

/*
 * The gRPC C core's completion queue and its thread: one of each for all clients. With two, core
 * passes the polling of sockets from thread to thread with every event, which costs more than a
 * small request.
 *
 * The thread reads the sockets of every connection, answers pings and opens windows: nothing that
 * runs on it may block, compress or decode.
 */
/* what the queue gives back; every batch that was started comes back exactly once */
struct grpc_tag {
	/* Written last and read first: core orders what it hands over by means that our thread
	 * sanitizer does not see. */
	void (*_Atomic happened)(void *owner, bool ok);
	void *owner;
};

static inline void grpc_tag_init(struct grpc_tag *tag, void (*happened)(void *owner, bool ok),
				 void *owner)
{
	tag->owner = owner;
	atomic_store(&tag->happened, happened);
}

/* The first hold initialises core and starts the thread, the last release ends both. Who releases
 * has got all of his tags back. [any thread but the queue's] */
grpc_completion_queue *grpc_queue_hold(void);
void grpc_queue_release(void);
bool grpc_queue_here(void); /* on the queue's thread? */

/* Something to look after: tick runs about twice a second on the queue's thread. The struct is the
 * caller's. */
struct grpc_tick {
	void (*tick)(void *context);
	void *context;
	struct grpc_tick *next;
};
void grpc_queue_tick(struct grpc_tick *tick);
/* On return it does not run, nor will it. [any thread but the queue's, holding no lock that tick
 * takes] */
void grpc_queue_untick(struct grpc_tick *tick);

#endif
