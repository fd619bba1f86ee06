/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_GRAPH_EXPORTERS_H
#define PIPELINE_GRAPH_EXPORTERS_H

#include "pipeline/budget.h"
#include "pipeline/component.h"
#include "pipeline/delivery/delivery.h"
#include "pipeline/graph/inventory.h"

/*
 * The exporters of the process, each with its delivery. They belong to the runtime, and graphs
 * borrow them by ID: graphs that declare the same exporter with the same configuration share one
 * instance, and with it its queue, retries, connections and files. So a queue outlives the graph
 * that filled it. An exporter with another configuration is another exporter, even if its ID is the
 * same; the old one is drained and stopped when the last graph that uses it ends.
 *
 * Same configuration means equal nodes after expansion (node_equal), secrets included. An exporter
 * keeps a copy of its node, binds its own configuration from it and owns its ID: it borrows nothing
 * from a graph.
 *
 * Two counts: graphs that have borrowed it keep it allocated (exporters_borrow, exporters_return);
 * graphs that have started it, and have not left it, use it (exporters_start, exporters_leave).
 * Both, and all other state here, belong to the loop thread; there is no lock. Deliveries have
 * their own lock. The stops of exporters, which may block, run on the pool, one at a time.
 */
struct exporters;
struct exporter;

struct exporters *exporters_new(struct loop *loop, struct metrics *metrics, struct budget *budget);
void exporters_unref(struct exporters **exporters); /* none is borrowed */

/*
 * The running exporter with this ID and configuration, or a new one. NULL: it cannot be created.
 * One whose users have all begun to end is not shared any more. Between borrow and start, its users
 * must not end.
 */
struct exporter *exporters_borrow(struct exporters *exporters, const struct declared *declared,
				  struct error *err);
/* The graph has left it, or has never started it. The last one destroys it. */
void exporters_return(struct exporter **exporter);

/* Also after a failure, the graph has to leave it. */
bool exporters_start(struct exporter *exporter, struct error *err);
struct delivery *exporters_delivery(const struct exporter *exporter); /* until it is returned */

/* Divides the budget between all exporters; returns the share of each. */
int64_t exporters_share(struct exporters *exporters, uint32_t workers);
/* SIGHUP: each running exporter opens its files and certificates again, once, however many graphs
 * use it. */
void exporters_reopen(struct exporters *exporters);

/*
 * How a graph that uses an exporter ends, in this order. While other graphs use the exporter too,
 * it continues to work for them.
 *
 * exporters_end: the graph begins to end. If all its graphs do, senders that wait for the result
 * are not delayed by retries.
 *
 * exporters_expire: the graph's deadline has passed, before or after it left. If that is so for all
 * its graphs, what still waits is dropped and the exporter is stopped, which cancels what is in
 * flight. Otherwise, only an exporter whose senders wait for the result drops what waits: these
 * senders keep the graph's receivers from stopping; they get an error and can retry. Until the
 * graph has left, nothing is retried there.
 *
 * exporters_leave: the graph enqueues nothing any more. late: its deadline has passed. True: no
 * graph is left, so the queue is drained, the exporter is stopped, and then `gone` runs on the loop
 * thread. False: other graphs use it; what this graph enqueued remains in the queue.
 */
void exporters_end(struct exporter *exporter);
void exporters_expire(struct exporter *exporter);
bool exporters_leave(struct exporter *exporter, bool late, void (*gone)(void *argument),
		     void *argument);

#endif
