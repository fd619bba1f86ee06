/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_ENVIRONMENT_H
#define GATEWAY_ENVIRONMENT_H

#include "gateway/listeners.h"
#include "pipeline/graph/graph.h"

/*
 * `validate --environment`: what a configuration needs of the machine. Ports can be bound,
 * certificates load, match their keys and have not expired, files can be written, and names of
 * destinations resolve. Starts nothing and leaves nothing behind; may wait for the resolver.
 * Reports every error. asks: the destinations are probed too (graph_probe), so their names are not
 * resolved here. False: there is an error.
 */
bool environment_check(const struct graph *graph, const struct telemetry *telemetry, bool asks,
		       struct problems *problems);
/* The same of the certificates and files of one component, which was not started. why: the reason,
 * with its place; NULL: another component failed. Returns whether the reason is reported, in other
 * words. */
bool environment_examine(const struct declared *declared, const struct error *why,
			 struct problems *problems);

#endif
