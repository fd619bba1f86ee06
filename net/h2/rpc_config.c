/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2/rpc_config.h"

#include <string.h>

#include "net/h2/private.h"

enum { DEFAULT_MESSAGE_MIB = 4 }; /* as in grpc-go */

const char *const rpc_server_transports[] = { "tcp", "tcp4", "tcp6", "unix", NULL };

static const struct config_row keepalive_server_rows[] = {
	CONFIG_ROW(struct rpc_keepalive_server, max_connection_idle, .key = "max_connection_idle",
		   .def = "0s",
		   .help = "Closes connections without calls after this time; 0: after "
			   "`limits.idle_timeout`."),
	CONFIG_ROW(struct rpc_keepalive_server, max_connection_age, .key = "max_connection_age",
		   .def = "0s",
		   .help = "Asks clients to reconnect after this time (give or take 10 %), so "
			   "that load spreads; 0: never. No call is lost."),
	CONFIG_ROW(struct rpc_keepalive_server, max_connection_age_grace,
		   .key = "max_connection_age_grace", .def = "0s",
		   .help = "Maximum time that open calls may take after that; 0: no limit."),
	CONFIG_ROW(struct rpc_keepalive_server, time, .key = "time", .def = "0s",
		   .help = "Pings a client that has been silent for this time, even without "
			   "open calls; 0: 2h."),
	CONFIG_ROW(struct rpc_keepalive_server, timeout, .key = "timeout", .def = "0s",
		   .help = "Closes the connection if the ping is not answered within this time; "
			   "0: 20s."),
	{ 0 }
};

static const struct config_table keepalive_server_table = { sizeof(struct rpc_keepalive_server),
							    keepalive_server_rows,
							    .optional = true };

static const struct config_row keepalive_enforcement_rows[] = {
	CONFIG_ROW(struct rpc_keepalive_enforcement, min_time, .key = "min_time", .def = "0s",
		   .help = "The connection of a client that pings more often than this is "
			   "closed; 0: 5m."),
	CONFIG_ROW(struct rpc_keepalive_enforcement, permit_without_stream,
		   .key = "permit_without_stream", .def = "false",
		   .help = "Permits one ping per `min_time` while no call is open; otherwise "
			   "one per 2h."),
	{ 0 }
};

static const struct config_table keepalive_enforcement_table = {
	sizeof(struct rpc_keepalive_enforcement), keepalive_enforcement_rows, .optional = true
};

static const struct config_row keepalive_rows[] = {
	CONFIG_SECTION(struct rpc_keepalive, server, keepalive_server_table,
		       .key = "server_parameters", .presence = PRESENCE_SOME,
		       .help = "When the server pings and closes connections."),
	CONFIG_SECTION(struct rpc_keepalive, enforcement, keepalive_enforcement_table,
		       .key = "enforcement_policy", .presence = PRESENCE_SOME,
		       .help = "How often clients may ping."),
	{ 0 }
};

const struct config_table rpc_keepalive_table = { sizeof(struct rpc_keepalive), keepalive_rows,
						  .optional = true };

static const struct config_row dialer_rows[] = {
	CONFIG_ROW(struct rpc_dialer, timeout, .key = "timeout", .def = "0s", .inert = true,
		   .help = "Servers do not dial."),
	{ 0 }
};

const struct config_table rpc_dialer_table = { sizeof(struct rpc_dialer), dialer_rows };

static bool is_off(const struct node *section)
{
	const struct node *enabled = section ? node_get(section, "enabled") : NULL;
	return !section || section->kind == NODE_NULL ||
	       (enabled && enabled->kind == NODE_SCALAR && strcmp(enabled->text, "false") == 0);
}

/* A key that requests protection that does not exist is an error; it is never ignored. */
void rpc_server_check(const void *config, struct faults *faults)
{
	const struct rpc_server_config *c = config;
	struct error why;
	if (!is_off(c->middlewares) && c->middlewares->count)
		faults_add(faults, "middlewares: this build has no middleware extension");
	if (c->endpoint &&
	    !h2_address_check(c->endpoint, rpc_server_transports[c->transport.index], &why))
		faults_relate(faults, "transport", "%s", why.text);
}

struct size_limit rpc_server_message_limit(const struct rpc_server_config *config)
{
	int64_t mib =
		config->max_recv_msg_size_mib ? config->max_recv_msg_size_mib : DEFAULT_MESSAGE_MIB;
	return (struct size_limit){ (size_t)mib << 20, "max_recv_msg_size_mib", mib };
}

void rpc_server_configure(struct rpc_server_options *options,
			  const struct rpc_server_config *config)
{
	const struct rpc_keepalive_server *server = &config->keepalive.server;
	const struct rpc_keepalive_enforcement *pings = &config->keepalive.enforcement;
	struct h2_options *h2 = &options->h2;
	options->message_limit = rpc_server_message_limit(config);
	h2->endpoint = config->endpoint;
	h2->transport = rpc_server_transports[config->transport.index];
	h2->tls = config->tls.present.enabled ? &config->tls : NULL;
	h2->limits = config->limits;
	h2->max_concurrent_streams = config->max_concurrent_streams;
	h2->read_buffer_bytes = (size_t)config->read_buffer_size;
	h2->write_buffer_bytes = (size_t)config->write_buffer_size;
	h2->max_connection_idle = server->max_connection_idle;
	h2->max_connection_age = server->max_connection_age;
	h2->max_connection_age_grace = server->max_connection_age_grace;
	h2->keepalive_time = server->time;
	h2->keepalive_timeout = server->timeout;
	h2->min_ping_interval = pings->min_time;
	h2->pings_without_streams = pings->permit_without_stream;
}
