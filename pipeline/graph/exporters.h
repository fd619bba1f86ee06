/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_GRAPH_EXPORTERS_H
#define PIPELINE_GRAPH_EXPORTERS_H

#include "pipeline/budget.h"
#include "pipeline/component.h"
#include "pipeline/delivery/delivery.h"
#include "pipeline/graph/inventory.h"
#include "pipeline/graph/named_auths.h"
#include "pipeline/kill_switch.h"

/*
 * The exporters of the process, each with its delivery. They belong to the runtime, and graphs
 * borrow them by ID: graphs that declare the same exporter with the same configuration share one
 * instance, and with it its queue, retries, connections and files. A queue therefore outlives the
 * graph that filled it. An exporter with another configuration is another exporter, even if its ID
 * is the same. The old one is drained and stopped when the last graph that uses it ends.
 *
 * Same configuration means equal nodes after expansion (declared_same), including secrets, and the
 * same authenticators behind the names in it. An exporter keeps a copy of its node, binds its own
 * configuration from it and owns its ID: it borrows nothing from a graph.
 *
 * There are two counts. Graphs that have borrowed it keep it allocated (exporters_borrow,
 * exporters_return). Graphs that have started it, and have not left it, use it (exporters_start,
 * exporters_leave). Both, and all other state here, belong to the loop thread.
 * Deliveries have their own lock. The stops of exporters may block. They run on the pool, one at a
 * time.
 */
struct exporters;
struct exporter;

struct exporters *exporters_new(struct loop *loop, struct metrics *metrics, struct ledger *ledger,
				struct budget *budget);
/* The kill switch that stops destinations; none until then. */
void exporters_obey(struct exporters *exporters, struct kill_switch *kills);
void exporters_unref(struct exporters **exporters); /* none may be borrowed */

/* Returns the running exporter with this ID and configuration, or a new one. NULL: it cannot be
 * created. An exporter whose users have all begun to end is no longer shared. Between borrow and
 * start, its users must not end. A new one finds its authenticators among those of the graph, and
 * keeps them. `storage`: where it keeps its queue; NULL: in memory. It is
 * part of the configuration. */
struct exporter *exporters_borrow(struct exporters *exporters, const struct declared *declared,
				  struct storage *storage, struct authenticators authenticators,
				  struct error *err);
/* The graph has left the exporter, or has never started it. The last return destroys it. */
void exporters_return(struct exporter **exporter);

/* The graph must leave the exporter also if the start failed. */
bool exporters_start(struct exporter *exporter, struct error *err);
/* Valid until exporters_return. */
struct delivery *exporters_delivery(const struct exporter *exporter);

/* The metadata keys that the exporter and its authenticator need (net/authenticator.h); ends with
 * NULL. */
const char *const *exporters_context_keys(const struct exporter *exporter);

/* Calls for each exporter that runs with the current configuration. why: its last failure; NULL: it
 * is not failing. `report` must not come back to the exporters. [any thread] */
void exporters_each(struct exporters *exporters,
		    void (*report)(void *context, const char *id, enum circuit_state circuit,
				   const struct send_result *why),
		    void *context);

/* Divides the budget equally between all exporters; returns the share of each. */
int64_t exporters_share(struct exporters *exporters, uint32_t workers);
/* SIGHUP: each running exporter opens its files and certificates again, once, regardless of the
 * number of graphs that use it. */
void exporters_reopen(struct exporters *exporters);

/*
 * How a graph that uses an exporter ends, in this order. While other graphs also use the exporter,
 * it continues to work for them.
 *
 * exporters_end: the graph begins to end. If all graphs of the exporter do, retries no longer delay
 * senders that wait for the result, unless another graph has taken the place of this one (retires):
 * other packets are still retried.
 *
 * exporters_expire: the graph's deadline has passed, before or after it left. If this is true for
 * all graphs of the exporter, and not all of them only `retire`, waiting packets are dropped and
 * the exporter is stopped, which cancels deliveries in flight. Otherwise, waiting packets are
 * dropped only if senders wait for the result: these senders prevent the graph's receivers from
 * stopping. They get an error and can retry. Senders with `ack: delivered` at other exporters get
 * the error too, but the packets stay queued, because other senders were already answered. Until
 * the graph has left, such an exporter does not retry.
 *
 * exporters_leave: the graph will not enqueue anything any more. late: its deadline has passed.
 * True: no graph is left, so the queue is drained, the exporter is stopped, and then `gone` runs on
 * the loop thread. False: other graphs use the exporter; packets that this graph enqueued remain in
 * the queue.
 */
void exporters_end(struct exporter *exporter, bool retires);
void exporters_expire(struct exporter *exporter, bool retires);
bool exporters_leave(struct exporter *exporter, bool late, void (*gone)(void *argument),
		     void *argument);

/*
 * Instead of exporters_leave, for a graph whose place another one has taken. An exporter that no
 * other graph uses is alone from then on: it sends and retries as before until its queue is empty,
 * and then ends, without any graph. At most 32 do; beyond that, each packet of the oldest gets one
 * more attempt.
 */
void exporters_let_go(struct exporter *exporter, bool late);
uint32_t exporters_alone(const struct exporters *exporters);
/* The program ends: packets of exporters that are alone get one more attempt. `none` runs on the
 * loop thread whenever the last of them has ended. */
void exporters_end_alone(struct exporters *exporters, void (*none)(void *argument), void *argument);
/* Half of the time is over: where there is a directory of dead letters, writes what waits in memory
 * and what will come to it, because letters need time. Of all exporters. */
void exporters_keep_waiting(struct exporters *exporters);
/* The program's deadline has passed: drops what they still have, and stops them. */
void exporters_expire_alone(struct exporters *exporters);
/* The program ends without waiting: logs what exporters lose and keep. Returns the samples that
 * stay in open queues on disk; `lost` gets those of each exporter that wait and are lost. */
int64_t exporters_log_stuck(const struct exporters *exporters,
			    void (*lost)(void *context, const char *id, int64_t samples),
			    void *context);

#endif
