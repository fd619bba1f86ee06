/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_LOAD_BALANCING_CONFIG_H
#define EXPORTERS_LOAD_BALANCING_CONFIG_H

#include "pipeline/delivery/delivery.h"
#include "pipeline/delivery/grpc_sender.h"
#include "pipeline/delivery/otlp_layout.h"

/* The Collector's keys of the exporter load_balancing. */
struct load_balancing_otlp_config {
	struct grpc_sender_config client;
	struct otlp_layout_config layout;
	struct duration timeout;
	const struct node *sending_queue, *retry_on_failure; /* errors */
};

struct load_balancing_protocol_config {
	struct load_balancing_otlp_config otlp;
};

struct load_balancing_static_config {
	struct optional present;
	struct strings hostnames;
};

struct load_balancing_dns_config {
	struct optional present;
	char *hostname, *port;
	struct duration interval, timeout;
};

struct load_balancing_resolver_config {
	struct load_balancing_static_config fixed;
	struct load_balancing_dns_config dns;
	const struct node *k8s, *aws_cloud_map; /* errors */
};

struct load_balancing_config {
	char *routing_key;
	struct strings routing_attributes;
	struct load_balancing_protocol_config protocol;
	struct load_balancing_resolver_config resolver;
	struct delivery_config delivery;
};

extern const struct config_table load_balancing_table;

enum load_balancing_routing {
	LOAD_BALANCING_BY_SERVICE,
	LOAD_BALANCING_BY_TENANT,
	LOAD_BALANCING_BY_ATTRIBUTES
};

/* All of a checked configuration. */
enum load_balancing_routing load_balancing_config_routing(const struct load_balancing_config *c);
/* "host:port" of a host, or of an address, which may be IPv6, without port: with this one. The
 * caller frees it. */
char *load_balancing_config_endpoint(const char *host, const char *port);

#endif
