/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_GRAPH_LONE_H
#define PIPELINE_GRAPH_LONE_H

#include "pipeline/delivery/delivery.h"
#include "pipeline/graph/graph.h"

/*
 * One exporter of a configuration without its pipelines, for `portcullis replay` and `validate
 * --connect`. It is an instance of its own, with the limits, retries, timeout and authenticators of
 * the configuration. Senders wait for its result; it has a queue for one packet, no storage and no
 * directory of dead letters: the caller gets what is lost. Nothing else of the configuration is
 * started.
 *
 * All functions run on the loop thread.
 */
struct lone;

/* graph: built, never started; outlives it. lost: as in delivery_options. NULL: there is no such
 * exporter, or it cannot be used so. */
struct lone *lone_new(struct graph *graph, const char *id,
		      void (*lost)(void *context, const struct loss *loss,
				   uint64_t rejected_profiles),
		      void *context, struct error *err);
bool lone_start(struct lone *lone, struct error *err);
struct delivery *lone_delivery(struct lone *lone);
void *lone_exporter(const struct lone *lone);   /* the instance */
const char *lone_type(const struct lone *lone); /* the exporter's */
/* After lone_start, also if that failed; nothing is enqueued any more. */
void lone_stop(struct lone *lone, void (*stopped)(void *argument), void *argument);
void lone_unref(struct lone **lone); /* it has stopped, or was never started */

#endif
