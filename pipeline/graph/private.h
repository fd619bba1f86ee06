/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_GRAPH_PRIVATE_H
#define PIPELINE_GRAPH_PRIVATE_H

#include "pipeline/graph/exporters.h"
#include "pipeline/graph/graph.h"
#include "pipeline/graph/inventory.h"
#include "pipeline/intake/gate.h"
#include "pipeline/intake/pipeline.h"
#include "pipeline/intake/workers.h"

/* Shared by the files of the graph: graph.c builds and starts it, graph_stop.c ends it, exporters.c
 * contains what graphs share. */

struct instance { /* an instance of a component */
	const struct declared *declared;
	void *self;
	struct host host;
	bool started; /* must be stopped; of an exporter: must be left, or is not gone yet */
	struct exporter *exporter; /* of an exporter: instead of self and host */
	struct gate *gate;         /* of a receiver */
	struct pipeline **paths;   /* of a receiver */
};

struct graph {
	struct graph_options options;
	struct inventory inventory;
	struct log log;
	/* in start order: extensions, exporters, processors, receivers */
	struct instance **instances;
	uint32_t instance_count;
	struct pipeline *paths;
	uint32_t pipeline_count, route_count; /* route_count: of all pipelines */
	struct budget *budget;
	struct peers peers;
	struct tenants *tenants; /* NULL: there are none */
	struct quotas *quotas;   /* NULL: there are none */
	struct error missing;    /* an authenticator that a component names does not exist */
	uint64_t check_interval_ns;
	struct loop_timer *check;
	struct scratch_slot *slots;
	uint32_t slot_count;
	struct workers *workers;
	struct io *io;
	struct worker **seats; /* one per I/O thread */
	/* While the graph stops. */
	struct loop_timer *deadline;
	/* the number of exporters of which it was the last user and that are not gone yet */
	uint32_t waiting_for;
	bool retiring; /* another graph listens on the same addresses */
	bool late;     /* the deadline has passed */
	void (*stopped)(void *argument);
	void *argument;
};

enum component_kind instance_kind(const struct instance *instance);

/* The start and end of each kind of component except exporters. NULL: there is nothing to do. A
 * graph that retires calls the `retire` of its receivers instead. */
struct activity {
	bool (*start)(void *self, struct error *err);
	void (*stop)(void *self);
};

/* Calls the factory's reopen, if it has one, and logs the result. */
void component_reopen(const struct component_factory *factory, void *self, const struct log *log);

struct activity instance_activity(const struct graph *graph, const struct instance *instance);

#endif
