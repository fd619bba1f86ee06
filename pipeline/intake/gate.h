/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_GATE_H
#define PIPELINE_INTAKE_GATE_H

#include "pipeline/intake/duplicates.h"
#include "pipeline/intake/gate_metrics.h"
#include "pipeline/intake/peers.h"
#include "pipeline/intake/pipeline.h"
#include "pipeline/intake/request_limits.h"
#include "pipeline/intake/screen.h"
#include "pipeline/intake/tenant.h"
#include "pipeline/intake/workers.h"

/*
 * The gate of one receiver: admits requests from their headers, charges the budget, and runs a
 * request through all paths of its receiver. The functions that receivers call are in
 * pipeline/inbound.h.
 *
 * The share of a peer: its requests may hold at most as much as would then be left for all; a
 * charge beyond that is refused. A peer that is alone gets half of the budget. If N peers want all
 * of it, each gets 1/(N+1). A peer that holds little always finds room, and the peer that holds the
 * most is refused first. The same rule bounds the requests that wait for a worker
 * (pipeline/intake/workers.h). One request of each peer at a time is processed regardless of the
 * share, so a request that fits into the budget is never too large for its peer.
 */
struct gate_options {
	const char *receiver;    /* component ID */
	struct pipeline **paths; /* borrowed */
	uint32_t pipeline_count;
	struct budget *budget;
	struct peers *peers;      /* of all gates */
	struct workers **workers; /* filled before the first request */
	/* by I/O thread: the worker of that thread, created there when first needed; unref'd there
	 * before workers_stop */
	struct worker **seats;
	struct tenants *tenants;       /* NULL: there are none */
	struct request_limits limits;  /* of documents; zeroed: none */
	enum ack_mode ack;             /* of all its requests */
	struct duplicates *duplicates; /* the receiver's; NULL: none */
	struct screen screen;          /* the kill switch and the quotas */
	struct metrics *metrics;
	struct ledger *ledger;
	struct log *log;
};

struct gate *gate_new(const struct gate_options *options);
/* Refuses all requests from now on, with a retry hint. [any thread] */
void gate_close(struct gate *gate);
/* One more request; entrance_take calls it. [any thread] */
void gate_take(struct gate *gate);
/* Waits until every request that took the gate has left it, at most for the time given. False:
 * there are some left. No further request may take it. [pool thread] */
bool gate_wait(struct gate *gate, uint64_t ns);
void gate_unref(struct gate **gate); /* no request has it */

/* For the option `run` of workers. */
void gate_run(struct worker *worker, struct inbound *in);

#endif
