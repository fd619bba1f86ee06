/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_GRAPH_SERVICE_CONFIG_H
#define PIPELINE_GRAPH_SERVICE_CONFIG_H

#include "config/table.h"
#include "pipeline/component.h"
#include "pipeline/intake/quotas.h"
#include "pipeline/intake/request_limits.h"
#include "pipeline/intake/tenant.h"
#include "pipeline/kill_switch.h"

/* The section `service` of the configuration. */
struct pipeline_config {
	struct strings receivers, processors, exporters;
};

struct admin_config {
	struct optional present;
	char *endpoint;
};

/* Is it localhost:port, 127.x.x.x:port or [::1]:port? */
bool admin_is_local(const char *address);

struct shutdown_config {
	struct duration delay, timeout;
};

struct service_config {
	struct strings extensions;
	struct config_items pipelines; /* of struct pipeline_config */
	const struct node *telemetry;
	struct tenant_config tenant;
	struct request_limits limits;
	struct quotas_config quotas;
	struct kill_config kill_switch;
	struct choice ack; /* enum ack_mode */
	struct admin_config admin;
	struct shutdown_config shutdown;
	bool require_policy;
	struct strings silence; /* identifiers of warnings (pipeline/graph/lint.h) */
};

extern const struct config_table service_table;

#endif
