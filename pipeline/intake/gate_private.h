/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_GATE_PRIVATE_H
#define PIPELINE_INTAKE_GATE_PRIVATE_H

#include "pipeline/intake/gate.h"

#include <pthread.h>

/* Inside the gate: gate.c admits, charges and answers; gate_run.c runs the documents of a request
 * through the paths. */
struct gate {
	struct gate_options options;
	uint32_t routes; /* the largest number of batches that a path adds a document to */
	bool required;   /* some path has a required destination */
	struct request_limiter limiter;
	struct ledger_row *row; /* of the receiver */
	_Atomic bool closed;
	_Atomic uint32_t takers; /* requests, and the graph until gate_wait */
	bool left;               /* gate_wait was called */
	pthread_mutex_t lock;    /* guards the creation of counters, and what follows */
	pthread_cond_t empty;
	bool is_empty;
	/* by transport; NULL: no request yet */
	struct gate_counters *_Atomic counters[TRANSPORT_COUNT];
};

/* The counters for the request's transport. [any thread] */
struct gate_counters *gate_counters_of(struct gate *gate, const struct inbound *in);
/* Sets the request's charge. False: nothing has changed. The rule is that of gate.h: the peer's
 * limit is the soft limit less what the peer would then hold. */
bool gate_charge_to(struct gate *gate, struct inbound *in, int64_t bytes);
/* Sets the error for a request that could not get `bytes` bytes in total. Until it is processed, a
 * request can have half of the budget, the share of a peer that is alone. */
bool gate_out_of_memory(const struct gate *gate, struct inbound *in, int64_t bytes,
			struct error *err);
/* Asks the quotas of the peer and of the tenant, as far as the headers give them. */
bool gate_within_quota(struct gate *gate, struct inbound *in, size_t bytes, struct error *err);
/* Does the path's answer matter to senders? */
bool gate_counts(const struct gate *gate, const struct pipeline *path);
/* In the receiver's row: samples of a document were decoded, or are not being processed any
 * more. */
void gate_count_in(struct gate *gate, uint64_t samples, enum ledger_column to);
void gate_count_end(struct gate *gate, uint64_t samples, enum ledger_column end);
/* Gives the request to a worker. */
void gate_enqueue(struct gate *gate, struct inbound *in);

#endif
