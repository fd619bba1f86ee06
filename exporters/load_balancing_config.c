/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/load_balancing_config.h"

#include <string.h>

#include "base/memory.h"
#include "exporters/load_balancing_members.h"

#define DEFAULT_PORT "4317"

static const char *const routings[] = { "service", "tenant", "attributes", NULL };

static bool is_set(const char *text)
{
	return text && *text;
}

enum load_balancing_routing load_balancing_config_routing(const struct load_balancing_config *c)
{
	for (int i = 0; routings[i]; i++)
		if (!strcmp(c->routing_key, routings[i]))
			return (enum load_balancing_routing)i;
	return LOAD_BALANCING_BY_SERVICE;
}

static bool has_port(const char *host)
{
	const char *colon = strrchr(host, ':');
	bool several = colon && strchr(host, ':') != colon;
	return colon && (!several || (colon > host && colon[-1] == ']') || strstr(host, "://"));
}

char *load_balancing_config_endpoint(const char *host, const char *port)
{
	port = is_set(port) ? port : DEFAULT_PORT;
	if (has_port(host))
		return memory_text(host);
	if (strchr(host, ':') && host[0] != '[')
		return memory_format("[%s]:%s", host, port);
	return memory_format("%s:%s", host, port);
}

/* ---- checks ---- */

static void check_routing(const struct load_balancing_config *c, struct faults *faults)
{
	static const char *const others[] = { "traceID", "metric", "streamID", "resource", NULL };
	const char *key = is_set(c->routing_key) ? c->routing_key : "";
	for (int i = 0; others[i]; i++)
		if (!strcmp(key, others[i]))
			faults_add(faults,
				   "routing_key: `%s` is not supported for profiles; use "
				   "service, tenant or attributes",
				   others[i]);
	if (strcmp(key, routings[load_balancing_config_routing(c)]) != 0)
		faults_add(faults, "routing_key: neither service, tenant nor attributes");
	if (load_balancing_config_routing(c) == LOAD_BALANCING_BY_ATTRIBUTES &&
	    !c->routing_attributes.count)
		faults_relate(faults, "routing_attributes",
			      "routing_key: `attributes` requires routing_attributes");
}

static bool check_endpoint(const char *host, const char *port, struct error *err)
{
	char *text = load_balancing_config_endpoint(host, port);
	struct grpc_endpoint endpoint;
	bool ok = grpc_endpoint_parse(text, &endpoint, err);
	grpc_endpoint_fini(&endpoint);
	memory_free(text);
	return ok;
}

static void check_otlp(const void *config, struct faults *faults)
{
	const struct load_balancing_otlp_config *c = config;
	static const char text[] =
		"all members share the queue and the retries of the exporter; set the key there";
	if (c->sending_queue)
		faults_add(faults, "sending_queue: %s", text);
	if (c->retry_on_failure)
		faults_add(faults, "retry_on_failure: %s", text);
	otlp_layout_check(&c->layout, faults);
	grpc_sender_check_but_endpoint(&c->client, faults);
}

static void check_static(const void *config, struct faults *faults)
{
	const struct load_balancing_static_config *c = config;
	if (!c->hostnames.count)
		faults_add(faults, "hostnames: no hostnames");
	if (c->hostnames.count > LOAD_BALANCING_MEMBERS_MAX)
		faults_add(faults, "hostnames: more than %d", LOAD_BALANCING_MEMBERS_MAX);
}

static void check_dns(const void *config, struct faults *faults)
{
	const struct load_balancing_dns_config *c = config;
	if (!is_set(c->hostname))
		faults_add(faults, "hostname: no hostname specified to resolve");
	if (c->interval.ns <= 0)
		faults_add(faults, "`interval` must be positive");
	if (c->timeout.ns <= 0)
		faults_add(faults, "`timeout` must be positive");
}

static void check_resolver(const void *config, struct faults *faults)
{
	const struct load_balancing_resolver_config *c = config;
	if (c->k8s)
		faults_add(faults,
			   "k8s: this build does not talk to the API of Kubernetes; use dns "
			   "with the name of a headless service");
	if (c->aws_cloud_map)
		faults_add(faults, "aws_cloud_map: this build does not talk to the API of AWS; use "
				   "dns with the name of the service");
	if (!c->fixed.present.enabled && !c->dns.present.enabled)
		faults_relate(faults, "static dns k8s aws_cloud_map",
			      "no resolvers specified for the exporter");
	if (c->fixed.present.enabled && c->dns.present.enabled)
		faults_add(faults, "only one resolver should be specified");
}

static void check_members(const struct load_balancing_config *c, struct faults *faults)
{
	const struct load_balancing_dns_config *dns = &c->resolver.dns;
	const struct strings *names = &c->resolver.fixed.hostnames;
	struct error why;
	if (dns->present.enabled && is_set(dns->hostname) &&
	    !check_endpoint(dns->hostname, dns->port, &why))
		faults_relate(faults, "resolver::dns::port", "resolver::dns::hostname: %s",
			      why.text);
	for (size_t i = 0; i < names->count; i++)
		if (!check_endpoint(names->at[i], NULL, &why))
			faults_add(faults, "resolver::static::hostnames[%zu]: %s", i, why.text);
}

static void check(const void *config, struct faults *faults)
{
	check_routing(config, faults);
	check_members(config, faults);
}

/* ---- keys ---- */

#define ROW(type, member, ...) CONFIG_ROW(struct type, member, .key = #member, __VA_ARGS__)

static const struct config_row otlp_rows[] = {
	GRPC_SENDER_ROWS_BUT_ENDPOINT(struct load_balancing_otlp_config, client),
	OTLP_LAYOUT_ROWS(struct load_balancing_otlp_config, layout),
	ROW(load_balancing_otlp_config, timeout, .def = "5s",
	    .help = "Timeout of one attempt at a member. 0: the exporter's `timeout`."),
	ROW(load_balancing_otlp_config, sending_queue,
	    .help = "An error: the exporter's `sending_queue` is the queue of all members."),
	ROW(load_balancing_otlp_config, retry_on_failure,
	    .help = "An error: the exporter's `retry_on_failure` applies to each member."),
	{ 0 }
};
static const struct config_table otlp_table = { sizeof(struct load_balancing_otlp_config),
						otlp_rows, check_otlp };

static const struct config_row protocol_rows[] = {
	CONFIG_SECTION(struct load_balancing_protocol_config, otlp, otlp_table, .key = "otlp",
		       .help = "The keys of the exporter `otlp_grpc` for each member; the endpoint "
			       "is the resolver's."),
	{ 0 }
};
static const struct config_table protocol_table = { sizeof(struct load_balancing_protocol_config),
						    protocol_rows };

static const struct config_row static_rows[] = {
	ROW(load_balancing_static_config, hostnames, .role = ROLE_CONNECTS,
	    .help = "The members: `host` or `host:port`, at most 64. Default port: 4317."),
	{ 0 }
};
static const struct config_table static_table = { .size = sizeof(
							  struct load_balancing_static_config),
						  .rows = static_rows,
						  .check = check_static,
						  .optional = true };

static const struct config_row dns_rows[] = {
	ROW(load_balancing_dns_config, hostname, .role = ROLE_CONNECTS,
	    .help = "Each address of this name is a member, of more than 64 the first in "
		    "alphabetical order."),
	ROW(load_balancing_dns_config, port, .def = "\"" DEFAULT_PORT "\"",
	    .help = "The port of all members."),
	ROW(load_balancing_dns_config, interval, .def = "5s",
	    .help = "The name is resolved again at this interval."),
	ROW(load_balancing_dns_config, timeout, .def = "1s",
	    .help = "How long a DNS server may take to answer; rounded up to seconds, at most 30 "
		    "s."),
	{ 0 }
};
static const struct config_table dns_table = { .size = sizeof(struct load_balancing_dns_config),
					       .rows = dns_rows,
					       .check = check_dns,
					       .optional = true };

static const struct config_row resolver_rows[] = {
	CONFIG_SECTION(struct load_balancing_resolver_config, fixed, static_table, .key = "static",
		       .presence = PRESENCE_NONE, .help = "A fixed list."),
	CONFIG_SECTION(struct load_balancing_resolver_config, dns, dns_table, .key = "dns",
		       .presence = PRESENCE_NONE, .help = "The addresses of a name."),
	ROW(load_balancing_resolver_config, k8s, .help = "Not supported: an error."),
	ROW(load_balancing_resolver_config, aws_cloud_map, .help = "Not supported: an error."),
	{ 0 }
};
static const struct config_table resolver_table = { sizeof(struct load_balancing_resolver_config),
						    resolver_rows, check_resolver };

static const struct config_row rows[] = {
	ROW(load_balancing_config, routing_key, .def = "service",
	    .help = "What decides which member gets a resource: `service` (its `service.name`), "
		    "`attributes` (the values of `routing_attributes`), or `tenant` (not a value "
		    "of the Collector)."),
	ROW(load_balancing_config, routing_attributes,
	    .help = "Resource attributes, for `routing_key: attributes`."),
	CONFIG_SECTION(struct load_balancing_config, protocol, protocol_table, .key = "protocol",
		       .help = "How members are reached."),
	CONFIG_SECTION(struct load_balancing_config, resolver, resolver_table, .key = "resolver",
		       .help = "Who the members are. Exactly one of `static` and `dns`."),
	DELIVERY_ROWS(struct load_balancing_config, delivery, "0s"),
	{ 0 }
};
const struct config_table load_balancing_table = { sizeof(struct load_balancing_config), rows,
						   check };
