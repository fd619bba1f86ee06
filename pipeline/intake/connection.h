/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_CONNECTION_H
#define PIPELINE_INTAKE_CONNECTION_H

#include "pipeline/component.h"
#include "pipeline/ledger.h"

struct pipeline;

/*
 * A connector as one pipeline has it among its exporters: for each route of the connector, the
 * pipelines that get the Profiles of this route. Built by the graph, read-only while it runs.
 *
 * Open tables cross it, on the thread of the request: nothing is encoded or decoded again, and the
 * request's ack, tenant and metadata are those of the pipelines behind it. Each pipeline changes
 * tables of its own: the last one gets those of the pipeline that leads to the connector, every
 * other one a copy, which is charged to the budget before it is made.
 *
 * In the ledger, the connector is a destination of the pipeline that leads to it. What enters is
 * `out` when it enters the pipelines of its route, in the same instant, or dropped as `unrouted`.
 */
struct connection {
	const struct connector_ops *ops;
	void *self;
	struct connection_route {
		struct pipeline **paths;
		uint32_t count;
	} * routes;
	uint32_t route_count;
	struct ledger_row *row;
	/* the row of the pipeline counts what enters: it has no exporter, and this is the first
	 * connector */
	bool leads;
};

void connection_fini(struct connection *connection);

/* Hands the document on. `last`: nobody reads the tables afterwards. False: some Profiles were not
 * accepted by any pipeline of their route, or only by some and the sender waits for all of them;
 * err gives the reason, ERROR_BUSY if that is one of the reasons. The sender repeats the document
 * then, also the Profiles that were accepted. [worker or I/O thread] */
bool connection_run(const struct pipeline *from, const struct connection *connection,
		    struct profiles *profiles, bool last, void **scratch, struct error *err);

/* For `explain`: drops what does not take this route. */
void connection_keep(const struct connection *connection, struct profiles *profiles,
		     uint32_t route);

/* As pipeline_has_room, pipeline_blocks and pipeline_is_required, of all that is behind. A
 * connector with several routes blocks only if each of them does: a route refuses what takes it. */
bool connection_has_room(const struct connection *connection);
bool connection_blocks(const struct connection *connection, enum ack_mode mode);
bool connection_is_required(const struct connection *connection);
void connection_expect_senders(const struct connection *connection, enum ack_mode mode);
/* The number of batches that one document may be added to. */
uint32_t connection_batches(const struct connection *connection);

#endif
