/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_WORKERS_H
#define PIPELINE_WORKERS_H

#include "pipeline/component.h"
#include "pipeline/memory.h"

/*
 * N threads (= cores) on one bounded queue. Each takes a request and runs it to completion, and owns its open
 * tables, its buffers and its processors' scratch; nothing of it is shared.
 */
struct worker {
	struct profiles profiles;
	struct body body;
	void **scratch;      /* by stage.scratch */
	int64_t held;        /* capacity kept between requests, charged */
	struct workers *workers;
};

struct workers;

/* What a worker's scratch table is made of. */
struct scratch_slot {
	const struct component_factory *factory;
	void *self;
};

struct workers_options {
	uint32_t count;
	uint32_t queue_max;   /* requests waiting */
	const struct scratch_slot *slots; /* borrowed */
	uint32_t slot_count;
	struct memory *memory;
	size_t idle_bytes;    /* that all workers together may keep between requests */
	void (*run)(struct worker *worker, struct inbound *in);
};

struct workers *workers_start(const struct workers_options *options, struct error *err);
/* [any thread] False when the queue is full. */
bool workers_submit(struct workers *workers, struct inbound *in);
bool workers_full(struct workers *workers);
/* Runs what is queued, then ends the threads; nothing may be submitted any more. */
void workers_stop(struct workers **workers);

#endif
