/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_PIPELINE_H
#define PIPELINE_INTAKE_PIPELINE_H

#include "pipeline/batcher.h"
#include "pipeline/component.h"
#include "pipeline/delivery/delivery.h"
#include "pipeline/ledger.h"

/*
 * One pipeline, compiled: an array of processors, then the routes: open batches and the
 * destinations that get them. What the processors left goes into the open batches of every route.
 * Built by the graph, read-only while it runs.
 */
struct stage { /* a processor in a pipeline */
	const struct processor_ops *ops;
	void *self;
	uint32_t scratch; /* its slot in a worker's scratch table */
	struct metric_series *incoming, *outgoing;
};

/* An exporter with sending_queue.batch has a route of its own; all others share one, batched as the
 * pipeline says. */
struct route {
	const struct pipeline *path;
	bool own; /* of one exporter */
	struct batch_settings settings;
	struct metric_series
		*batched; /* gauge: the pipeline's, or what is queued for the exporter */
	struct delivery **deliveries;
	uint32_t delivery_count;
	bool waits; /* some destination has wait_for_result, or no queue */
	struct batcher *batcher;
};

struct pipeline {
	const char *id; /* "profiles/x" */
	struct stage *stages;
	uint32_t stage_count;
	struct route *routes;
	uint32_t route_count;
	struct path_settings settings;
	struct ledger ledger;
	struct budget *budget;
};

extern const struct metric *const pipeline_metrics[]; /* for the manual; NULL-terminated */

void pipeline_stage_metrics(struct stage *stage, struct metrics *metrics, const char *processor,
			    const char *pipeline);

/* One exporter's, into path->routes, which has room for a route each, after settings and ledger are
 * there. A set: an exporter that is named twice gets everything once. `own`: how it batches for
 * itself; the text outlives the pipeline. */
void pipeline_add_destination(struct pipeline *path, struct delivery *delivery, const char *id,
			      const struct batch_settings *own);

/*
 * Takes a decoded request through processors, collect and fan-out, on a worker's thread. scratch is
 * the worker's table.
 * False: refused, err says why, and none of it left.
 */
bool pipeline_run(struct pipeline *path, struct profiles *profiles, void **scratch,
		  struct error *err);

/* The batcher's emit: hands the packet to every destination of the route and drops the caller's
 * reference. False: none had room. */
bool pipeline_emit(void *route, struct packet *packet);

/* Can any destination take more? Is there one for whose room senders must wait? */
bool pipeline_has_room(const struct pipeline *path);
bool pipeline_blocks(const struct pipeline *path);

/* Samples of Profiles that are neither faulty nor dropped. */
uint64_t pipeline_count(const struct profiles *profiles);

#endif
