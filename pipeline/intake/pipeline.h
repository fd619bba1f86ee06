/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_PIPELINE_H
#define PIPELINE_INTAKE_PIPELINE_H

#include "pipeline/batcher.h"
#include "pipeline/component.h"
#include "pipeline/delivery/delivery.h"
#include "pipeline/intake/connection.h"
#include "pipeline/intake/tenant.h"
#include "pipeline/ledger.h"

/* One pipeline as it runs: an array of processors, then the routes. A route is an open batch and
 * the destinations that get it. The output of the processors goes into the open batch of every
 * route, and through the connectors among its exporters into other pipelines
 * (pipeline/intake/connection.h). Built by the graph, read-only while it runs. */
struct stage { /* a processor in a pipeline */
	const struct processor_ops *ops;
	void *self;
	uint32_t scratch; /* its slot in a worker's scratch table */
	struct metric_series *incoming, *outgoing;
};

/* An exporter with sending_queue.batch or sample_types has a route of its own. All other exporters
 * share one route, whose batch is that of the pipeline. */
struct route {
	const struct pipeline *path;
	bool own; /* of a single exporter */
	struct batch_settings settings;
	const struct sample_types_config *selection; /* NULL: it gets all sample types */
	char **keys; /* of settings.metadata_keys, where the exporters' keys are added; or NULL */
	bool leads;  /* the row of the pipeline counts what its batches take */
	struct ledger_row *row;       /* own: of its destination */
	struct delivery **deliveries; /* the required ones first */
	uint32_t delivery_count, required_count;
	bool waits;   /* some destination has wait_for_result or no queue */
	bool awaited; /* some receiver's senders wait for its batches */
	struct batcher *batcher;
};

struct pipeline {
	const char *id; /* "profiles/x" */
	struct stage *stages;
	uint32_t stage_count;
	struct route *routes; /* those with a required destination first */
	uint32_t route_count;
	struct connection *connections; /* the connectors among its exporters */
	uint32_t connection_count;
	struct path_settings settings;
	struct ledger *ledger;
	struct ledger_row *row;
	struct budget *budget;
	struct tenants *tenants; /* counts samples; may be NULL */
};

extern const struct metric *const pipeline_metrics[]; /* for the manual; NULL-terminated */

void pipeline_stage_metrics(struct stage *stage, struct metrics *metrics, const char *processor,
			    const char *pipeline);

/* Adds an exporter to path->routes, which must have room for one route per exporter, after settings
 * and id are set; the required ones first. An exporter that is named twice is added once.
 * `own`: its own batch settings; `selection`: what it gets. Both must outlive the pipeline. */
void pipeline_add_destination(struct pipeline *path, struct delivery *delivery, bool required,
			      const struct batch_settings *own,
			      const struct sample_types_config *selection,
			      const char *const *context_keys);
/* The modes of senders whose acks the route's batches hold. */
unsigned pipeline_held_acks(const struct route *route);
/* A receiver with this ack mode feeds the pipeline. [loop thread] */
void pipeline_expect_senders(struct pipeline *path, enum ack_mode mode);
/* Is any destination required? If none is, nothing refuses senders. */
bool pipeline_is_required(const struct pipeline *path);

/* Runs the processors on a decoded document, collects it and hands full batches to the
 * destinations, on a worker's thread. scratch is the worker's table. `sampled`: samples that quotas
 * removed from the document. False: refused, err gives the reason. None of it was collected, unless
 * its resources have several tenants. */
bool pipeline_run(struct pipeline *path, struct profiles *profiles, uint64_t sampled,
		  void **scratch, struct error *err);

/* The same for a document from another pipeline, whose samples are in LEDGER_PROCESSING of this
 * pipeline's row already. */
bool pipeline_continue(const struct pipeline *path, struct profiles *profiles, void **scratch,
		       struct error *err);
/* Or it is refused before that. */
void pipeline_refuse(const struct pipeline *path, uint64_t samples);

/* The batcher's `collected`. */
void pipeline_collected(void *route, const struct collect_added *added);
/* The batcher's `emit`: hands the packet to every destination of the route and drops the caller's
 * reference. False: no required destination had room. If the packet is of this request alone, and
 * its sender does not wait for a destination, that is undecided until pipeline_conclude. */
bool pipeline_emit(void *route, struct packet *packet, struct request *request);
/* All paths and routes have been asked: what had no room (request.refused) is now lost where it
 * does not fit, if the document was accepted elsewhere; if not, no queue accepts it, and its sender
 * repeats it. Empties the list. */
void pipeline_conclude(struct refused **list, bool accepted);

/* The number of batches that one document may be added to, here and behind connectors. */
uint32_t pipeline_batches(const struct pipeline *path);
/* has_room: can any required destination accept more? True if none is required. blocks: does some
 * destination lack room that must not drop the data of senders with this mode? */
bool pipeline_has_room(const struct pipeline *path);
bool pipeline_blocks(const struct pipeline *path, enum ack_mode mode);

/* The number of samples in Profiles that are neither faulty nor dropped. */
uint64_t pipeline_count(const struct profiles *profiles);

#endif
