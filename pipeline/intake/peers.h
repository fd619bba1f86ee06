/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_PEERS_H
#define PIPELINE_INTAKE_PEERS_H

#include "net/peer_key.h"
#include "profile/request.h"

#include <pthread.h>
#include <stdatomic.h>

/*
 * The peers that have requests in progress, with any receiver: how much of the memory budget each
 * holds (pipeline/intake/gate.c), and which of its requests wait for a worker
 * (pipeline/intake/workers.c). A peer is the identity that authenticated the request (`subject`),
 * or else the address of the sender.
 *
 * The table contains only peers with requests in progress. Each request is charged, so the budget
 * bounds the table.
 */
struct inbound;

/* requests that wait for a worker, oldest first; guarded by the workers' lock */
struct peer_queue {
	struct inbound *head, **tail;
	uint32_t length;
	struct peer *next; /* the peer that has the next turn */
};

struct peer {
	struct hash128 key;
	struct peer *next;     /* in the same bucket [lock of the table] */
	uint32_t holds;        /* requests in progress [lock of the table] */
	_Atomic int64_t bytes; /* charged for its requests */
	_Atomic bool favoured; /* one of its requests is processed regardless of its share */
	struct peer_queue queue;
};

enum { PEERS_BUCKETS = 1024 };

struct peers {
	pthread_mutex_t lock;
	struct peer *buckets[PEERS_BUCKETS];
	uint32_t count;
};

void peers_init(struct peers *peers);
void peers_fini(struct peers *peers); /* no peer has a request in progress */
/* The peer of a request, held until peers_release. [any thread] */
struct peer *peers_hold(struct peers *peers, const struct request *request);
/* Releases one hold and sets the pointer to NULL; NULL is accepted. [any thread] */
void peers_release(struct peers *peers, struct peer **peer);

#endif
