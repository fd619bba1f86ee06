/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_PEERS_H
#define PIPELINE_INTAKE_PEERS_H

#include "net/peer_key.h"
#include "profile/request.h"

#include <pthread.h>
#include <stdatomic.h>

/*
 * The peers that have requests in progress, of all receivers: what each holds of the memory budget
 * (pipeline/intake/gate.c) and which of its requests wait for a worker (pipeline/intake/workers.c).
 * A peer is the identity that a request was authenticated with (`subject`), else the address that
 * it came from.
 *
 * A peer is in the table while it has a request in progress, and each of these is charged, so the
 * budget bounds the table.
 */
struct inbound;

/* requests that wait for a worker, oldest first; guarded by the workers' lock */
struct peer_queue {
	struct inbound *head, **tail;
	uint32_t length;
	struct peer *next; /* whose turn is after this one's */
};

struct peer {
	struct hash128 key;
	struct peer *next;     /* of the same bucket [lock of the table] */
	uint32_t holds;        /* requests in progress [lock of the table] */
	_Atomic int64_t bytes; /* charged for its requests */
	_Atomic bool favoured; /* one of its requests is processed without regard to its share */
	struct peer_queue queue;
};

enum { PEERS_BUCKETS = 1024 };

struct peers {
	pthread_mutex_t lock;
	struct peer *buckets[PEERS_BUCKETS];
	uint32_t count;
};

void peers_init(struct peers *peers);
void peers_fini(struct peers *peers); /* none has a request any more */
/* The peer of a request, held until peers_release. [any thread] */
struct peer *peers_hold(struct peers *peers, const struct request *request);
/* Gives one hold back and sets the pointer to NULL; NULL is accepted. [any thread] */
void peers_release(struct peers *peers, struct peer **peer);

#endif
