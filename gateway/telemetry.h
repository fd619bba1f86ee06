/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_TELEMETRY_H
#define GATEWAY_TELEMETRY_H

#include "base/log.h"
#include "base/metrics.h"
#include "config/table.h"

/* service.telemetry: own logs, and own metrics in Prometheus text over HTTP. */
extern const struct config_table telemetry_table;
extern const struct metric *const telemetry_metrics[]; /* for the manual; NULL-terminated */

struct telemetry;

/* node: service.telemetry, borrowed, may be NULL. Binds and checks it, and opens nothing. */
struct telemetry *telemetry_new(const struct node *node, struct metrics *metrics,
				struct error *err);
/* Checks a section service.telemetry that is not used. */
bool telemetry_check(const struct node *node, struct problems *problems);
/* Opens the log's outputs and logs the keys without effect. */
bool telemetry_open_log(struct telemetry *telemetry, struct error *err);
/* The address of the metrics listener, freed by the caller; NULL: there is none. */
char *telemetry_endpoint(const struct telemetry *telemetry);
/* Opens the metrics listener. */
bool telemetry_start(struct telemetry *telemetry, struct error *err);
void telemetry_unref(struct telemetry **telemetry);
/* Visits the rows of the section (config_walk). */
void telemetry_walk(const struct telemetry *telemetry,
		    void (*visit)(void *context, const struct config_spot *spot), void *context);
/* The section service::telemetry, for graph_print. */
void telemetry_print(const struct telemetry *telemetry, bool redact, bool json, struct bytes *out);

#endif
