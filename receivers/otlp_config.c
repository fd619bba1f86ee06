/* SPDX-License-Identifier: Apache-2.0 */
#include "receivers/otlp_config.h"

static const struct config_row grpc_rows[] = { RPC_SERVER_ROWS("localhost:4317"), { 0 } };

static const struct config_table grpc_table = { sizeof(struct rpc_server_config), grpc_rows,
						rpc_server_check, .optional = true };

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
		       .presence = PRESENCE_DEFAULT,
		       .help = "Not supported yet; setting it is an error."),
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
