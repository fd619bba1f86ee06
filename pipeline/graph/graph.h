/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_GRAPH_GRAPH_H
#define PIPELINE_GRAPH_GRAPH_H

#include "pipeline/budget.h"
#include "pipeline/component.h"
#include "pipeline/intake/quotas.h"
#include "pipeline/kill_switch.h"

/*
 * The component instances of a configuration, and the paths between them. They are built from the
 * end (exporters, processors, receivers) and started in that order, after all extensions. Receivers
 * and exporters have one instance per ID; processors have one per pipeline and ID.
 *
 * All functions run on the loop thread. Sequence: graph_build -> graph_start -> graph_ready ->
 * graph_stop or graph_retire -> graph_unref; or graph_unref directly after graph_build (validate).
 *
 * A second graph can take the place of the first, its predecessor: graph_build -> graph_start ->
 * graph_ready -> graph_succeed, then graph_retire of the predecessor. Receivers and extensions with
 * the same configuration pass from one to the other, with their sockets and connections. A receiver
 * with another configuration is another instance. It accepts connections from the same listening
 * socket, and graph_retire lets the old instance finish what it has accepted.
 *
 * Each graph has its own processors, workers and batches. A request belongs to the graph whose gate
 * it found when its headers arrived (pipeline/intake/entrance.h) until its reply. Exporters and
 * their queues are shared (pipeline/graph/exporters.h).
 */
struct graph;
struct inventory;
struct declared;

struct graph_options {
	const struct node *root;                          /* outlives the graph */
	const struct component_factory *const *factories; /* NULL-terminated */
	/* Borrowed and shared by all graphs of the process; must outlive the graph. */
	struct loop *loop;
	struct metrics *metrics;
	struct ledger *ledger;
	struct budget *budget;   /* its limits come from the first graph */
	struct sockets *sockets; /* the listening sockets */
	struct exporters *exporters;
	struct kill_switch *kills;   /* NULL: none */
	struct quota_tables *quotas; /* NULL: none */
	struct storages *storages;   /* the directories of queues on disk */
	const struct service_view *service;
	uint32_t workers; /* the number of threads */
	uint64_t number;  /* another one for each graph of the process */
	/* Gets all errors; NULL: only the first matters. If it has some, the configuration is only
	 * checked. */
	struct problems *problems;
	/* Further checks, which report into the same problems. May be NULL. */
	void (*check)(void *context, const struct inventory *inventory, struct problems *problems);
	/* Reports what of this machine a component cannot use, in the words of `validate
	 * --environment`. Asked when one could not be started, of it and of those that come after
	 * it. why: the reason of the one that failed, else NULL. Returns whether what it reports
	 * is the reason too. May be NULL. */
	bool (*examine)(void *context, const struct declared *declared, const struct error *why,
			struct problems *problems);
	void *context;
	/* The graph that runs; NULL: none. Borrowed until graph_succeed or, if the start failed,
	 * until this graph has stopped. */
	struct graph *predecessor;
};

struct graph *graph_build(const struct graph_options *options, struct error *err);
/* io: the threads of connections; must outlive the graph. False: the reasons are in `problems`. */
bool graph_start(struct graph *graph, struct io *io, struct problems *problems);
/* SIGHUP: every component that has files or certificates opens them again, except exporters
 * (exporters_reopen). The log names each component that did. If opening fails, the old files stay
 * in use. */
void graph_reopen(struct graph *graph);
/* The budget knows its baseline: divides the memory above it between the exporters. */
void graph_ready(struct graph *graph);
/* The graph has started: requests that arrive at receivers which it has from its predecessor are
 * its own from now on, and its kill switch is in force. The predecessor must retire next. */
void graph_succeed(struct graph *graph);
/* Between build and graph_succeed: the number of instances that come from the predecessor; and does
 * it have the same memory limit, which cannot change while the program runs? */
uint32_t graph_kept(const struct graph *graph);
bool graph_fits_memory(const struct graph *graph);
/* The same of the threads for writes that may hang. */
bool graph_fits_pool(const struct graph *graph);
/* Stops receivers, then workers, open batches, queues (one more attempt for each packet), exporters
 * and extensions. Exporters that another graph uses continue, with their queues. After grace_ns,
 * waiting packets are dropped and counted. `stopped` runs on the loop thread at the end. */
void graph_stop(struct graph *graph, uint64_t grace_ns, void (*stopped)(void *argument),
		void *argument);
/* The same after another graph has taken this one's place, or after the start of this one failed:
 * later requests on the connections of this graph are still served, and exporters that no other
 * graph uses continue alone. After grace_ns, senders that still wait for a result get an error. */
void graph_retire(struct graph *graph, uint64_t grace_ns, void (*stopped)(void *argument),
		  void *argument);
/* The deadline of the program has passed. Only while stopping or retiring. */
void graph_expire(struct graph *graph);
void graph_unref(struct graph **graph);

const struct inventory *graph_inventory(const struct graph *graph);
/* Visits the rows of the configuration: of the components in use, and of the section `service`
 * (config_walk). */
struct config_spot;
void graph_walk(const struct graph *graph,
		void (*visit)(void *context, const struct config_spot *spot), void *context);

/* The section `service`, except telemetry; valid until graph_unref. */
struct service_config;
const struct service_config *graph_service(const struct graph *graph);

/* Reports the warnings about the configuration (pipeline/graph/lint.h). */
struct lint_finding;
uint32_t graph_lint(const struct graph *graph,
		    void (*found)(void *context, const struct lint_finding *finding),
		    void *context);

/* Asks the destinations of the exporters in use, all at once, each with a request that stores
 * nothing (pipeline/graph/probes.c), and reports those that would not take data, in the order of
 * the configuration. timeout_ns: how long each may take; 0: its own timeout. Runs the loop until
 * the last one has answered. Instead of graph_start. False: there is an error. */
bool graph_probe(struct graph *graph, uint64_t timeout_ns, struct problems *problems);

/* Prints the effective configuration (pipeline/graph/inventory.h). telemetry: service::telemetry,
 * printed in the same form. redact: omits secrets and values that ${...} inserted. */
void graph_print(const struct graph *graph, bool redact, bool json, struct view telemetry,
		 struct bytes *out);

#endif
