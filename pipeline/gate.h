/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_GATE_H
#define PIPELINE_GATE_H

#include "pipeline/gate_metrics.h"
#include "pipeline/pipeline.h"
#include "pipeline/workers.h"

/*
 * The way in for one receiver: admission from the headers, the budget, and the run of a request through
 * all paths of its receiver (the functions that receivers call are in pipeline/component.h).
 */
struct gate_options {
	const char *receiver;      /* component ID */
	struct pipeline **paths;       /* borrowed */
	uint32_t pipeline_count;
	struct memory *memory;
	struct workers **workers;  /* filled before the first request */
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
