/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_GRAPH_GRAPH_H
#define PIPELINE_GRAPH_GRAPH_H

#include "pipeline/budget.h"
#include "pipeline/component.h"

/*
 * The configuration, compiled: component instances and the paths between them. Built back to front
 * (exporters, processors, receivers), started in that order; extensions before all. Receivers and
 * exporters are one instance per ID, processors one per (pipeline, ID).
 *
 * Everything on the loop thread. Life: graph_build -> graph_start -> graph_ready -> graph_stop or
 * graph_retire -> graph_unref; graph_unref alone after graph_build (validate).
 *
 * A second graph can run beside the first: when it has started, it accepts from the same listening
 * sockets, and graph_retire lets the first one finish what it has accepted. Each graph has workers,
 * batches of its own; a request belongs to the graph that admitted it until its reply. Exporters,
 * with their queues, are shared (pipeline/graph/exporters.h).
 */
struct graph;

struct graph_options {
	const struct node *root;                          /* outlives the graph */
	const struct component_factory *const *factories; /* NULL-terminated */
	/* What outlives the graph: borrowed, and used by all graphs of the process. */
	struct loop *loop;
	struct metrics *metrics;
	struct budget *budget;   /* its limits are those of the first graph */
	struct sockets *sockets; /* the listening ones */
	struct exporters *exporters;
	const struct service_view *service;
	uint32_t workers; /* threads */
};

struct graph *graph_build(const struct graph_options *options, struct error *err);
/* io: the threads of connections; outlive the graph. */
bool graph_start(struct graph *graph, struct io *io, struct error *err);
/* SIGHUP: every component that has files or certificates opens them again, except exporters
 * (exporters_reopen). The log says which did; where that fails, the old state stays. */
void graph_reopen(struct graph *graph);
/* The budget has its baseline: what is above it is shared out. */
void graph_ready(struct graph *graph);
/*
 * Receivers, then workers, open batches, queues (each packet one more attempt), exporters,
 * extensions. Exporters that another graph uses continue, with their queues. grace_ns from now,
 * what still waits is dropped and counted. `stopped` runs on the loop thread when all is done.
 */
void graph_stop(struct graph *graph, uint64_t grace_ns, void (*stopped)(void *argument),
		void *argument);
/* The same while another graph listens on the same addresses: requests that still come on the
 * connections of this one are served. */
void graph_retire(struct graph *graph, uint64_t grace_ns, void (*stopped)(void *argument),
		  void *argument);
/* The deadline is now; only while stopping. */
void graph_hurry(struct graph *graph);
/* The program ends without waiting for the stop: says which exporters hold it up. */
void graph_log_stuck(const struct graph *graph);
void graph_unref(struct graph **graph);

/* The effective configuration (pipeline/graph/inventory.h): telemetry is that of
 * service::telemetry, printed alike. redact: without secrets and what ${...} brought. */
void graph_print(const struct graph *graph, bool redact, bool json, struct view telemetry,
		 struct bytes *out);

/* For `explain`: the processors of the first pipeline, run on one thread over p. False: refused. */
bool graph_process_once(struct graph *graph, struct profiles *p, struct error *err);

#endif
