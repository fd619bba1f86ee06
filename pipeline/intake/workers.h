/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_WORKERS_H
#define PIPELINE_INTAKE_WORKERS_H

#include "pipeline/budget.h"
#include "pipeline/component.h"
#include "pipeline/inbound.h"
#include "pipeline/intake/peers.h"
#include "pipeline/intake/screen.h"

/*
 * One thread per core, with one bounded queue. Each thread takes a request and runs it to
 * completion. It owns its open tables, its buffers and its processors' scratch memory; nothing of
 * this is shared.
 *
 * Peers take turns (round robin); the requests of one peer are run in order of arrival. The
 * requests that one peer has waiting therefore delay another peer by at most one request. A peer
 * may have at most as many requests waiting as there are places left for all.
 */

/* The memory for running requests; each thread that runs requests has one, which belongs to it. */
struct worker {
	struct profiles profiles;
	struct body body;
	void **scratch; /* by stage.scratch */
	struct screening screening;
	int64_t held; /* bytes of capacity that is kept between requests, charged */
	struct workers *workers;
};

struct workers;

/* One entry of a worker's scratch table. */
struct scratch_slot {
	const struct processor_ops *ops;
	void *self;
};

struct workers_options {
	uint32_t count;
	uint32_t queue_max;               /* requests waiting */
	const struct scratch_slot *slots; /* borrowed */
	uint32_t slot_count;
	struct budget *budget;
	size_t idle_bytes; /* capacity that all workers together may keep between requests */
	void (*run)(struct worker *worker, struct inbound *in);
};

struct workers *workers_start(const struct workers_options *options, struct error *err);
/* False if the queue is full, or the peer (in->peer) has its share of it. [any thread] */
bool workers_submit(struct workers *workers, struct inbound *in);
/* Would a request of the peer be accepted now? [any thread] */
bool workers_has_place(struct workers *workers, const struct peer *peer);
/* Requests that wait for a worker: all, and those of one peer; and their maximum. A peer may have
 * as many as there is room for others. [any thread] */
struct workers_load {
	uint32_t waiting, of_peer, max;
};
struct workers_load workers_load(struct workers *workers, const struct peer *peer);
/* Runs what is queued, then ends the threads. Nothing may be submitted any more, and the workers of
 * worker_new must have been freed. */
void workers_stop(struct workers **workers);

/* A worker for a thread of another owner (an I/O thread), which runs requests without the queue. It
 * shares idle_bytes with the others. Created, used and freed on that thread. */
struct worker *worker_new(struct workers *workers);
/* Runs the request to completion, then frees what is not kept for the next one. */
void worker_run(struct worker *worker, struct inbound *in);
void worker_unref(struct worker **worker);

#endif
