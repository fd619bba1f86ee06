/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECEIVERS_OTLP_CONFIG_H
#define RECEIVERS_OTLP_CONFIG_H

#include "net/h2/rpc_config.h"

/* The Collector's keys of the otlp receiver. */
struct http_protocol {
	struct optional present;
	const struct node *any;
};

struct otlp_config {
	struct {
		struct rpc_server_config grpc;
		struct http_protocol http;
	} protocols;
};

extern const struct config_table otlp_config_table;

#endif
