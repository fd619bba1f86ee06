/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_WORKERS_H
#define PIPELINE_INTAKE_WORKERS_H

#include "pipeline/budget.h"
#include "pipeline/component.h"
#include "pipeline/inbound.h"
#include "pipeline/intake/peers.h"

/*
 * N threads (= cores) on one bounded queue. Each takes a request and runs it to completion, and
 * owns its open tables, its buffers and its processors' scratch; nothing of it is shared.
 *
 * Requests are taken round robin over peers, each peer's in order of arrival, so what one has
 * waiting delays another's by one request at most for each peer. A peer may have at most as many
 * requests waiting as there are places left for all.
 */

/* What running requests takes: one for each thread that does. It belongs to that thread. */
struct worker {
	struct profiles profiles;
	struct body body;
	void **scratch; /* by stage.scratch */
	int64_t held;   /* capacity kept between requests, charged */
	struct workers *workers;
};

struct workers;

/* What a worker's scratch table is made of. */
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
	size_t idle_bytes; /* that all workers together may keep between requests */
	void (*run)(struct worker *worker, struct inbound *in);
};

struct workers *workers_start(const struct workers_options *options, struct error *err);
/* [any thread] False when the queue is full, or the peer (in->peer) has its share of it. */
bool workers_submit(struct workers *workers, struct inbound *in);
/* [any thread] Would a request of the peer be taken now? */
bool workers_has_place(struct workers *workers, const struct peer *peer);
bool workers_full(struct workers *workers);
/* Runs what is queued, then ends the threads; nothing may be submitted any more. Workers of others
 * are gone by then. */
void workers_stop(struct workers **workers);

/*
 * A worker for a thread of somebody else, who runs requests on it without the queue; it shares
 * idle_bytes with the others. Made, used and freed on that thread.
 */
struct worker *worker_new(struct workers *workers);
/* Runs the request to completion, then gives back what is not kept for the next. */
void worker_run(struct worker *worker, struct inbound *in);
void worker_unref(struct worker **worker);

#endif
