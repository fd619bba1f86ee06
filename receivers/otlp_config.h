/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECEIVERS_OTLP_CONFIG_H
#define RECEIVERS_OTLP_CONFIG_H

#include "config/table.h"
#include "net/h2/bounds.h"
#include "net/tls/tls.h"

/* The Collector's keys of the otlp receiver. */
struct keepalive_server {
	struct optional present;
	struct duration max_connection_idle, max_connection_age, max_connection_age_grace;
	struct duration time, timeout;
};

struct keepalive_enforcement {
	struct optional present;
	struct duration min_time;
	bool permit_without_stream;
};

struct keepalive {
	struct optional present;
	struct keepalive_server server;
	struct keepalive_enforcement enforcement;
};

struct dialer {
	struct duration timeout;
};

struct grpc_protocol {
	struct optional present;
	char *endpoint;
	struct choice transport; /* of otlp_transports */
	struct dialer dialer;
	struct tls_server_config tls;
	int64_t max_recv_msg_size_mib, max_concurrent_streams;
	int64_t read_buffer_size, write_buffer_size;
	struct keepalive keepalive;
	struct h2_limits limits;
	bool include_metadata;
	const struct node *auth, *middlewares;
};

struct http_protocol {
	struct optional present;
	const struct node *any;
};

struct otlp_config {
	struct {
		struct grpc_protocol grpc;
		struct http_protocol http;
	} protocols;
};

extern const char *const otlp_transports[];
extern const struct config_table otlp_config_table;

#endif
