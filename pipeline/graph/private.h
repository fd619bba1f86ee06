/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_GRAPH_PRIVATE_H
#define PIPELINE_GRAPH_PRIVATE_H

#include "pipeline/graph/exporters.h"
#include "pipeline/graph/graph.h"
#include "pipeline/graph/inventory.h"
#include "pipeline/graph/named_auths.h"
#include "pipeline/intake/entrance.h"
#include "pipeline/intake/pipeline.h"
#include "pipeline/intake/workers.h"

/* Shared by the files of the graph: graph.c builds and starts it, graph_stop.c ends it,
 * graph_memory.c divides the memory, connect.c joins pipelines, succession.c passes components from
 * one graph to the next, exporters.c contains what graphs share, lone.c uses one exporter without
 * the rest. */

/* An instance of a component. Receivers and extensions with the same configuration pass from one
 * graph to the next. For that time both graphs have the instance. */
struct instance {
	uint32_t graphs;     /* that have it */
	uint32_t borrowers;  /* lone exporters that have it started (lone.c) */
	struct declared own; /* of receivers and extensions, which may outlive the inventory */
	const struct declared *declared;
	struct named_auths auths;
	void *self;
	struct host host;
	/* the number of the graph that stops it */
	_Atomic uint64_t owner;
	bool started; /* must be stopped; of an exporter: must be left, or is not gone yet */
	struct exporter *exporter;     /* of an exporter: instead of self and host */
	struct entrance *entrance;     /* of a receiver */
	struct duplicates *duplicates; /* of a receiver; NULL: none */
};

/* What a receiver leads to in one graph. */
struct reception {
	struct instance *receiver;
	struct gate *gate;
	struct pipeline **paths;
};

/* An extension that a component names does not exist. */
struct missing {
	const char *reason;     /* NULL: all exist */
	const char *key, *what; /* of the component that names it; before its ID in the error */
	char id[PATH_TEXT];     /* as far as it fits */
};

struct graph {
	struct graph_options options;
	struct inventory inventory;
	struct log log;
	/* in start order: extensions, exporters, processors, receivers */
	struct instance **instances;
	uint32_t instance_count;
	struct reception *receptions;
	uint32_t reception_count;
	struct pipeline *paths;
	uint32_t pipeline_count, route_count; /* route_count: of all pipelines */
	int64_t memory_limit, memory_spike;   /* as configured */
	struct budget *budget;
	struct peers peers;
	struct tenants *tenants; /* NULL: there are none */
	struct quotas *quotas;   /* NULL: there are none */
	/* read when the graph starts, and in force when it succeeds; without a predecessor, at
	 * once */
	struct kill_change *kills;
	struct missing missing;
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
	bool ends;     /* also that of the program */
	void (*stopped)(void *argument);
	void *argument;
};

/* succession.c: the predecessor's instance of the same component with the same configuration, NULL:
 * there is none. Then: the instances that both graphs have belong to this one, or again to the
 * predecessor. */
struct instance *succession_find(struct graph *graph, const struct declared *declared,
				 struct authenticators authenticators);
void succession_own(struct graph *graph);
void succession_return(struct graph *graph);

/* resolve.c: the storage of an exporter's queue. NULL: the queue is not on disk, or
 * graph->missing says why there is none. */
struct delivery_config;
struct storage *graph_storage(struct graph *graph, const struct delivery_config *config);
/* The extensions that are authenticators; those that do not exist are noted. */
struct authenticators graph_authenticators(struct graph *graph);
/* A component was created. Has it found the authenticators that it names? */
bool graph_resolved(struct graph *graph, const struct declared *declared, struct error *err);
/* Reports the extensions that components with an error name, as far as they do not exist. Those
 * without an error have been built. */
void graph_check_names(struct graph *g, struct problems *problems);
/* A new instance that only this graph has: a processor of a path, or a connector (path NULL). */
struct instance *graph_add(struct graph *graph, const struct declared *declared,
			   const struct pipeline *path, struct error *err);
/* graph_memory.c: the budget of the first graph; each destination's share of it; and the check of
 * it, the function of graph->check. */
void graph_settle_memory(struct graph *graph);
void graph_share_memory(struct graph *graph);
void graph_check_memory(void *graph);
/* connect.c: after the routes of all pipelines are built. */
bool connect_pipelines(struct graph *graph, struct error *err);
struct instance *graph_find(const struct graph *graph, enum component_kind kind, const char *id);
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
