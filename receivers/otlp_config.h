/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECEIVERS_OTLP_CONFIG_H
#define RECEIVERS_OTLP_CONFIG_H

#include "net/h2/rpc_config.h"
#include "net/http/http_server.h"
#include "pipeline/intake/duplicates.h"

/* The Collector's keys of the otlp receiver. */
struct otlp_http_config {
	struct http_server_config server; /* first: it begins with struct optional */
	char *traces_url_path, *metrics_url_path, *logs_url_path;
	struct strings profiles_url_paths; /* ours; each begins with a slash, none is repeated */
};

enum { OTLP_HTTP_PATHS_MAX = 16 };

struct otlp_config {
	struct {
		struct rpc_server_config grpc;
		struct otlp_http_config http;
	} protocols;
	struct choice schema; /* enum otlp_generation; OTLP_UNKNOWN: auto */
	struct choice ack;
	struct duplicates_config deduplicate;
};

extern const struct config_table otlp_config_table;

#endif
