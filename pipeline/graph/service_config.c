/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph/service_config.h"
#include "pipeline/graph/lint.h"

#include <arpa/inet.h>
#include <string.h>

static bool is_loopback(const char *host)
{
	struct in_addr v4;
	if (!strcmp(host, "localhost") || !strcmp(host, "[::1]"))
		return true;
	return inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool admin_is_local(const char *address)
{
	const char *colon = strrchr(address, ':');
	char host[64] = "";
	if (colon && (size_t)(colon - address) < sizeof host)
		memcpy(host, address, (size_t)(colon - address));
	return is_loopback(host);
}

/* There are no credentials, so only processes of this machine may reach it. */
static void check_admin(const void *config, struct faults *faults)
{
	const struct admin_config *admin = config;
	if (!admin_is_local(admin->endpoint))
		faults_add(
			faults,
			"endpoint: must be localhost:port, 127.x.x.x:port or [::1]:port, because "
			"requests are not authenticated");
}

static const struct config_row admin_rows[] = {
	CONFIG_ROW(struct admin_config, endpoint, .key = "endpoint", .def = "127.0.0.1:13134",
		   .role = ROLE_LISTENS,
		   .help = "Address to listen on. Only loopback addresses are allowed."),
	{ 0 }
};
static const struct config_table admin_table = { .size = sizeof(struct admin_config),
						 .rows = admin_rows,
						 .check = check_admin,
						 .optional = true };

static const struct config_row shutdown_rows[] = {
	CONFIG_ROW(struct shutdown_config, delay, .key = "delay", .def = "0s", .limited = true,
		   .min = 0, .max = INT64_MAX,
		   .help = "How long `health_check` reports 503 before anything else happens, so "
			   "that load balancers stop sending. Requests are still accepted."),
	CONFIG_ROW(struct shutdown_config, timeout, .key = "timeout", .def = "20s", .limited = true,
		   .min = 0, .max = INT64_MAX,
		   .help = "Maximum duration of the drain, which begins after `delay`. "
			   "`--shutdown-timeout` overrides it."),
	{ 0 }
};
static const struct config_table shutdown_table = { .size = sizeof(struct shutdown_config),
						    .rows = shutdown_rows };

static const struct config_row pipeline_rows[] = {
	CONFIG_ROW(struct pipeline_config, receivers, .key = "receivers",
		   .help = "The pipeline's receivers."),
	CONFIG_ROW(struct pipeline_config, processors, .key = "processors",
		   .help = "Its processors, in order."),
	CONFIG_ROW(struct pipeline_config, exporters, .key = "exporters",
		   .help = "Its exporters. Each of them gets every profile."),
	{ 0 }
};
static const struct config_hint pipeline_hints[] = {
	{ "extensions", .text = "put it under `service`" },
	{ "connectors", .text = "list connectors among `exporters` and `receivers`" },
	{ 0 }
};
static const struct config_table pipeline_table = { .size = sizeof(struct pipeline_config),
						    .rows = pipeline_rows,
						    .hints = pipeline_hints };

static const struct config_row service_rows[] = {
	CONFIG_ROW(struct service_config, extensions, .key = "extensions",
		   .help = "Extensions to run, in order."),
	CONFIG_ITEMS(struct service_config, pipelines, CONFIG_MAP, pipeline_table,
		     .key = "pipelines",
		     .help = "The pipelines, by ID: `profiles` or `profiles/name`."),
	CONFIG_ROW(struct service_config, telemetry, .key = "telemetry",
		   .help = "The gateway's own logs and metrics."),
	CONFIG_SECTION(
		struct service_config, admin, admin_table, .key = "admin",
		.presence = PRESENCE_NONE,
		.help = "An HTTP endpoint for controlling this process, on loopback. Absent: "
			"there is none. Not a key of the Collector."),
	CONFIG_SECTION(struct service_config, shutdown, shutdown_table, .key = "shutdown",
		       .help = "How the program ends after SIGTERM. Not a key of the Collector."),
	CONFIG_ROW(
		struct service_config, require_policy, .key = "require_policy", .def = "false",
		.help = "A pipeline in which every attribute passes (the warning `no-policy`) is "
			"an error. Not a key of the Collector."),
	CONFIG_ROW(struct service_config, silence, .key = "silence",
		   .help = "Identifiers of warnings that are not reported. Not a key of the "
			   "Collector."),
	CONFIG_SECTION(struct service_config, limits, request_limits_table, .key = "limits",
		       .help = "What a request may contain, at every receiver. A document that "
			       "exceeds a limit is rejected; the error names the key and the "
			       "observed value. Not a key of the Collector."),
	CONFIG_ROW(struct service_config, ack, .key = "ack", .def = "enqueue",
		   .choices = ack_mode_names,
		   .help = "When senders get their response, for all receivers without an `ack` "
			   "of their own. Not a key of the Collector."),
	CONFIG_SECTION(struct service_config, quotas, quotas_table, .key = "quotas",
		       .help = "How much a tenant, a service and a peer may send: token buckets "
			       "in bytes and samples. Not a key of the Collector."),
	CONFIG_SECTION(struct service_config, kill_switch, kill_config_table, .key = "kill_switch",
		       .help = "Stops tenants, services, destinations or everything without a "
			       "restart. Not a key of the Collector."),
	CONFIG_SECTION(struct service_config, tenant, tenant_table, .key = "tenant",
		       .presence = PRESENCE_NONE,
		       .help = "Which tenant a request belongs to, from the first of these sources "
			       "that it has. Batches, queues and dictionaries never mix two. Not a "
			       "key of the Collector."),
	{ 0 }
};

static void check_service(const void *config, struct faults *faults)
{
	lint_check_silence(&((const struct service_config *)config)->silence, faults);
}

static const struct config_hint service_hints[] = {
	{ "receivers", .use = "pipelines::profiles::receivers" },
	{ "processors", .use = "pipelines::profiles::processors" },
	{ "exporters", .use = "pipelines::profiles::exporters" },
	{ "logs", .use = "telemetry::logs" },
	{ "metrics", .use = "telemetry::metrics" },
	{ 0 }
};

const struct config_table service_table = { .size = sizeof(struct service_config),
					    .hints = service_hints,
					    .rows = service_rows,
					    .check = check_service };
