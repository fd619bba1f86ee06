/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_RUNTIME_H
#define GATEWAY_RUNTIME_H

#include "gateway/telemetry.h"
#include "net/io.h"
#include "net/sockets.h"
#include "pipeline/budget.h"
#include "pipeline/graph/exporters.h"
#include "pipeline/graph/graph.h"
#include "pipeline/storage/storage.h"

/*
 * What outlives a configuration. Graphs (pipeline/graph/graph.h) borrow from it, and several can
 * run side by side: a second one is built and started beside the first, which then retires.
 *
 * Everything on the loop thread.
 */
struct runtime {
	struct loop *loop;
	struct metrics *metrics;
	struct ledger *ledger;
	struct telemetry *telemetry; /* own log, and the endpoint of the metrics */
	struct io *io;               /* NULL before runtime_start */
	struct sockets *sockets;     /* the listening ones, by address */
	struct exporters *exporters; /* with their queues, by ID */
	struct kill_switch *kills;
	struct quota_tables quotas;
	struct storages *storages; /* queues on disk, by directory */
	struct budget budget;
	uint32_t workers; /* threads of each graph, and I/O threads of each kind */
	uint64_t graphs;  /* built so far */
	bool defaulted;   /* service::telemetry has an error: its defaults are in force */
	bool measured;    /* the budget has its baseline, and is shown as metrics */
};

/* Opens nothing outside the process. root: the configuration, outlives the runtime; of it the
 * runtime uses service::telemetry, unless that has an error, which runtime_build reports. */
bool runtime_open(struct runtime *runtime, const struct node *root, struct error *err);
/* The log, the metrics endpoint, the I/O threads. */
bool runtime_start(struct runtime *runtime, struct error *err);
void runtime_close(struct runtime *runtime); /* no graph is left; also after a failed open */

/* SIGHUP: exporters open files and certificates again (graph_reopen: all other components). */
void runtime_reopen(struct runtime *runtime);

/* A graph that borrows from the runtime; root outlives it. predecessor: the graph that runs, NULL:
 * none. problems: may have errors already, of the reading of the sources; then the configuration is
 * only checked. */
struct graph *runtime_build(struct runtime *runtime, const struct node *root,
			    const struct service_view *service, struct graph *predecessor,
			    struct problems *problems);
/* Starts the graph. With the first one, the resident size at this moment becomes the budget's
 * baseline. False: also when the memory limit is below what the process needs. */
bool runtime_run(struct runtime *runtime, struct graph *graph, struct problems *problems);

#endif
