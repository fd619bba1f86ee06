/* SPDX-License-Identifier: Apache-2.0 */
#include "receivers/otlp_config.h"

#include <string.h>

enum { BUFFER_MAX = 16 << 20 };

const char *const otlp_transports[] = { "tcp", "tcp4", "tcp6", "unix", NULL };

static const struct config_row keepalive_server_rows[] = {
	CONFIG_ROW(struct keepalive_server, max_connection_idle, .key = "max_connection_idle",
		   .def = "0s",
		   .help = "Closes connections without calls after this time; 0: after "
			   "`limits.idle_timeout`."),
	CONFIG_ROW(struct keepalive_server, max_connection_age, .key = "max_connection_age",
		   .def = "0s",
		   .help = "Asks clients to reconnect after this time (give or take 10 %), so "
			   "that load spreads; 0: never. No call is lost."),
	CONFIG_ROW(struct keepalive_server, max_connection_age_grace,
		   .key = "max_connection_age_grace", .def = "0s",
		   .help = "How long calls may take after that; 0: no limit."),
	CONFIG_ROW(struct keepalive_server, time, .key = "time", .def = "0s",
		   .help = "Pings a silent client after this time, also without calls; 0: 2h."),
	CONFIG_ROW(struct keepalive_server, timeout, .key = "timeout", .def = "0s",
		   .help = "Closes the connection if the ping is not answered within this time; "
			   "0: 20s."),
	{ 0 }
};

static const struct config_table keepalive_server_table = { sizeof(struct keepalive_server),
							    keepalive_server_rows,
							    .optional = true };

static const struct config_row keepalive_enforcement_rows[] = {
	CONFIG_ROW(struct keepalive_enforcement, min_time, .key = "min_time", .def = "0s",
		   .help = "The connection of a client that pings more often than this is "
			   "closed; 0: 5m."),
	CONFIG_ROW(struct keepalive_enforcement, permit_without_stream,
		   .key = "permit_without_stream", .def = "false",
		   .help = "Permits pings while no call is open, one in min_time; otherwise one "
			   "in 2h."),
	{ 0 }
};

static const struct config_table keepalive_enforcement_table = {
	sizeof(struct keepalive_enforcement), keepalive_enforcement_rows, .optional = true
};

static const struct config_row keepalive_rows[] = {
	CONFIG_SECTION(struct keepalive, server, keepalive_server_table, .key = "server_parameters",
		       .presence = PRESENCE_SOME,
		       .help = "When the server pings and closes connections."),
	CONFIG_SECTION(struct keepalive, enforcement, keepalive_enforcement_table,
		       .key = "enforcement_policy", .presence = PRESENCE_SOME,
		       .help = "How often clients may ping."),
	{ 0 }
};

static const struct config_table keepalive_table = { sizeof(struct keepalive), keepalive_rows,
						     .optional = true };

static const struct config_row dialer_rows[] = {
	CONFIG_ROW(struct dialer, timeout, .key = "timeout", .def = "0s", .inert = true,
		   .help = "A server does not dial."),
	{ 0 }
};

static const struct config_table dialer_table = { sizeof(struct dialer), dialer_rows };

static bool is_off(const struct node *section)
{
	const struct node *enabled = section ? node_get(section, "enabled") : NULL;
	return !section || section->kind == NODE_NULL ||
	       (enabled && enabled->kind == NODE_SCALAR && strcmp(enabled->text, "false") == 0);
}

/* What asks for protection that is not there must never be passed over in silence. */
static bool check_grpc(const void *config, struct error *err)
{
	const struct grpc_protocol *c = config;
	if (!is_off(c->auth))
		return error_set(err, ERROR_CONFIG,
				 "auth: this build has no extension that authenticates");
	if (!is_off(c->middlewares) && c->middlewares->count)
		return error_set(err, ERROR_CONFIG,
				 "middlewares: this build has no such extension");
	return true;
}

static const struct config_row grpc_rows[] = {
	CONFIG_ROW(struct grpc_protocol, endpoint, .key = "endpoint", .def = "localhost:4317",
		   .help = "host:port to listen on, or the path of a unix socket. 0.0.0.0 and :: "
			   "both mean all interfaces, IPv4 and IPv6."),
	CONFIG_ROW(struct grpc_protocol, transport, .key = "transport", .def = "tcp",
		   .choices = otlp_transports, .help = "tcp, tcp4, tcp6 or unix."),
	CONFIG_SECTION(struct grpc_protocol, tls, tls_server_table, .key = "tls",
		       .presence = PRESENCE_NONE, .help = "TLS; plaintext without it."),
	CONFIG_ROW(struct grpc_protocol, max_recv_msg_size_mib, .key = "max_recv_msg_size_mib",
		   .def = "0", .unit = "MiB", .limited = true, .min = 0, .max = 2047,
		   .help = "The largest message, as sent and as inflated; 0: 4 MiB."),
	CONFIG_ROW(struct grpc_protocol, max_concurrent_streams, .key = "max_concurrent_streams",
		   .def = "0", .limited = true, .min = 0, .max = INT32_MAX,
		   .help = "Calls at once on one connection; 0: 100 (no limit in the Collector)."),
	CONFIG_SECTION(struct grpc_protocol, keepalive, keepalive_table, .key = "keepalive",
		       .presence = PRESENCE_SOME, .help = "Silent, idle and old connections."),
	CONFIG_ROW(struct grpc_protocol, include_metadata, .key = "include_metadata",
		   .def = "false",
		   .help = "Makes the request's metadata available to the processors "
			   "(`resource`'s from_context, `batch`'s metadata_keys), with "
			   "`:authority`, also as `host`. Keys that end in -bin are decoded, and "
			   "left out if they are not UTF-8 text."),
	CONFIG_ROW(struct grpc_protocol, auth, .key = "auth",
		   .help = "Refused: this build has no extension that authenticates."),
	CONFIG_ROW(struct grpc_protocol, middlewares, .key = "middlewares",
		   .help = "Refused unless empty: this build has no such extension."),
	CONFIG_SECTION(
		struct grpc_protocol, limits, h2_limits_table, .key = "limits",
		.help = "What one connection may cost. A connection that passes a limit "
			"is closed, and counted in `otelcol_http2_server_closed_connections`."),
	CONFIG_ROW(struct grpc_protocol, read_buffer_size, .key = "read_buffer_size",
		   .def = "524288", .unit = "By", .limited = true, .min = 0, .max = BUFFER_MAX,
		   .help = "The most that is read from a connection with one system call; 0: "
			   "262144."),
	CONFIG_ROW(struct grpc_protocol, write_buffer_size, .key = "write_buffer_size", .def = "0",
		   .unit = "By", .limited = true, .min = 0, .max = BUFFER_MAX,
		   .help = "The most that is gathered for one system call that writes to a "
			   "connection; 0: 262144."),
	CONFIG_SECTION(struct grpc_protocol, dialer, dialer_table, .key = "dialer",
		       .help = "Of clients."),
	{ 0 }
};

static const struct config_table grpc_table = { sizeof(struct grpc_protocol), grpc_rows, check_grpc,
						.optional = true };

static bool check_http(const void *config, struct error *err)
{
	(void)config;
	return error_set(err, ERROR_CONFIG, "OTLP over HTTP is not supported by this build yet");
}

/* The Collector's keys, so that the error speaks of HTTP and not of a key. */
#define HTTP_ROW(name) \
	CONFIG_ROW(struct http_protocol, any, .key = name, .help = "Not supported yet.")

static const struct config_row http_rows[] = { HTTP_ROW("endpoint"),
					       HTTP_ROW("transport"),
					       HTTP_ROW("tls"),
					       HTTP_ROW("cors"),
					       HTTP_ROW("auth"),
					       HTTP_ROW("max_request_body_size"),
					       HTTP_ROW("include_metadata"),
					       HTTP_ROW("response_headers"),
					       HTTP_ROW("compression_algorithms"),
					       HTTP_ROW("read_timeout"),
					       HTTP_ROW("read_header_timeout"),
					       HTTP_ROW("write_timeout"),
					       HTTP_ROW("idle_timeout"),
					       HTTP_ROW("keep_alives_enabled"),
					       HTTP_ROW("middlewares"),
					       HTTP_ROW("traces_url_path"),
					       HTTP_ROW("metrics_url_path"),
					       HTTP_ROW("logs_url_path"),
					       { 0 } };

static const struct config_table http_table = { sizeof(struct http_protocol), http_rows, check_http,
						.optional = true };

static bool check_otlp(const void *config, struct error *err)
{
	const struct otlp_config *c = config;
	return c->protocols.grpc.present.enabled ||
	       error_set(err, ERROR_CONFIG,
			 "must specify at least one protocol when using the OTLP receiver");
}

static const struct config_row protocol_rows[] = {
	CONFIG_SECTION(struct otlp_config, protocols.grpc, grpc_table, .key = "grpc",
		       .presence = PRESENCE_DEFAULT, .help = "OTLP over gRPC."),
	CONFIG_SECTION(struct otlp_config, protocols.http, http_table, .key = "http",
		       .presence = PRESENCE_DEFAULT, .help = "Not supported yet: an error."),
	{ 0 }
};

/* Its offsets are of the whole: protocols is the first and only member. */
static const struct config_table protocols_table = { sizeof(struct otlp_config), protocol_rows };

static const struct config_row otlp_rows[] = {
	CONFIG_SECTION(struct otlp_config, protocols, protocols_table, .key = "protocols",
		       .help = "The protocols to serve; at least one."),
	{ 0 }
};

const struct config_table otlp_config_table = { sizeof(struct otlp_config), otlp_rows, check_otlp };
