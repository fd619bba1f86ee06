/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_GATE_H
#define PIPELINE_INTAKE_GATE_H

#include "pipeline/intake/gate_metrics.h"
#include "pipeline/intake/peers.h"
#include "pipeline/intake/pipeline.h"
#include "pipeline/intake/workers.h"

/*
 * The way in for one receiver: admission from the headers, the budget, and the run of a request
 * through all paths of its receiver (the functions that receivers call are in
 * pipeline/inbound.h).
 *
 * A peer may hold at most as much as is left for all: a charge is refused when its requests would
 * then hold more than what would then be free. So a peer alone gets half of the budget, each of N
 * that want all of it a share of 1/(N+1), and one that holds little always finds room; who holds
 * most is refused first. The same rule bounds the requests that wait for a worker
 * (pipeline/intake/workers.h). Of each peer one request at a time is processed without regard to
 * the share, so that a request that fits into the budget is never too large for its peer.
 */
struct gate_options {
	const char *receiver;    /* component ID */
	struct pipeline **paths; /* borrowed */
	uint32_t pipeline_count;
	struct budget *budget;
	struct peers *peers;      /* of all gates */
	struct workers **workers; /* filled before the first request */
	/* by I/O thread: made when first needed, there; unref there before workers_stop */
	struct worker **seats;
	struct metrics *metrics;
	struct log *log;
};

struct gate *gate_new(const struct gate_options *options);
/* [any thread] From now on everything is refused with a retry hint. */
void gate_close(struct gate *gate);
void gate_unref(struct gate **gate);

/* The workers' run. */
void gate_run(struct worker *worker, struct inbound *in);

#endif
