/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_H2_RPC_CONFIG_H
#define NET_H2_RPC_CONFIG_H

#include "config/table.h"
#include "net/h2/rpc.h"

/* The Collector's keys of a gRPC server (configgrpc), with `limits` of ours, for embedding in a
 * component's configuration. */
struct rpc_keepalive_server {
	struct optional present;
	struct duration max_connection_idle, max_connection_age, max_connection_age_grace;
	struct duration time, timeout;
};

struct rpc_keepalive_enforcement {
	struct optional present;
	struct duration min_time;
	bool permit_without_stream;
};

struct rpc_keepalive {
	struct optional present;
	struct rpc_keepalive_server server;
	struct rpc_keepalive_enforcement enforcement;
};

struct rpc_dialer {
	struct duration timeout;
};

struct rpc_server_config {
	struct optional present;
	char *endpoint;
	struct choice transport; /* of rpc_server_transports */
	struct rpc_dialer dialer;
	struct tls_server_config tls;
	int64_t max_recv_msg_size_mib, max_concurrent_streams;
	int64_t read_buffer_size, write_buffer_size;
	struct rpc_keepalive keepalive;
	struct h2_limits limits;
	bool include_metadata;
	struct auth_config auth;
	const struct node *middlewares;
};

enum { RPC_SERVER_BUFFER_MAX = 16 << 20 };

extern const char *const rpc_server_transports[];
extern const struct config_table rpc_keepalive_table, rpc_dialer_table;

/* The rows of a table of struct rpc_server_config; the argument is the default of `endpoint`. The
 * table's check is rpc_server_check. */
/* clang-format off */
#define RPC_SERVER_ROWS(default_endpoint) \
	CONFIG_ROW(struct rpc_server_config, endpoint, .key = "endpoint", .def = default_endpoint, .role = ROLE_LISTENS, \
		   .help = "host:port to listen on, or the path of a unix socket. 0.0.0.0 and :: both mean all interfaces, IPv4 and IPv6."), \
	CONFIG_ROW(struct rpc_server_config, transport, .key = "transport", .def = "tcp", \
		   .choices = rpc_server_transports, .help = "tcp, tcp4, tcp6 or unix."), \
	CONFIG_SECTION(struct rpc_server_config, tls, tls_server_table, .key = "tls", .presence = PRESENCE_NONE, \
		       .help = "TLS; plaintext without it."), \
	CONFIG_ROW(struct rpc_server_config, max_recv_msg_size_mib, .key = "max_recv_msg_size_mib", .def = "0", \
		   .unit = "MiB", .limited = true, .min = 0, .max = 2047, \
		   .help = "Maximum size of a message, both as sent and decompressed; 0: 4 MiB."), \
	CONFIG_ROW(struct rpc_server_config, max_concurrent_streams, .key = "max_concurrent_streams", .def = "0", \
		   .limited = true, .min = 0, .max = INT32_MAX, \
		   .help = "Maximum number of concurrent calls on one connection; 0: 100 (in " \
			   "the Collector: no limit)."), \
	CONFIG_SECTION(struct rpc_server_config, keepalive, rpc_keepalive_table, .key = "keepalive", \
		       .presence = PRESENCE_SOME, .help = "Treatment of silent, idle and old " \
							  "connections."), \
	CONFIG_ROW(struct rpc_server_config, include_metadata, .key = "include_metadata", .def = "false", \
		   .help = "Makes the request's metadata available to the processors " \
			   "(`from_context` of `resource`, `metadata_keys` of `batch`). " \
			   "`:authority` is included, also as `host`. Values of keys that " \
			   "end in `-bin` are decoded, and omitted if they are not UTF-8."), \
	CONFIG_SECTION(struct rpc_server_config, auth, auth_table, .key = "auth", .presence = PRESENCE_NONE, \
		       .help = "Calls must be authenticated by an extension. Others fail with " \
			       "UNAUTHENTICATED before their message is read. The health " \
			       "service needs no authentication."), \
	CONFIG_ROW(struct rpc_server_config, middlewares, .key = "middlewares", \
		   .help = "Middleware extensions. This build has none, so any entry is an " \
			   "error."), \
	CONFIG_SECTION(struct rpc_server_config, limits, h2_limits_table, .key = "limits", \
		       .help = "Limits of connections. A connection that exceeds one is " \
			       "closed and counted in " \
			       "`otelcol_http2_server_closed_connections`."), \
	CONFIG_ROW(struct rpc_server_config, read_buffer_size, .key = "read_buffer_size", .def = "524288", .unit = "By", \
		   .limited = true, .min = 0, .max = RPC_SERVER_BUFFER_MAX, \
		   .help = "Maximum size of a read from a connection with one system call; " \
			   "0: 262144."), \
	CONFIG_ROW(struct rpc_server_config, write_buffer_size, .key = "write_buffer_size", .def = "0", .unit = "By", \
		   .limited = true, .min = 0, .max = RPC_SERVER_BUFFER_MAX, \
		   .help = "Maximum size of a write to a connection with one system call; 0: " \
			   "262144."), \
	CONFIG_SECTION(struct rpc_server_config, dialer, rpc_dialer_table, .key = "dialer", \
		       .help = "Settings of clients.")
/* clang-format on */

/* For the `check` of such a table: rejects `middlewares`, which are not supported. */
void rpc_server_check(const void *config, struct faults *faults);

/* Of a message, both compressed and decompressed. */
struct size_limit rpc_server_message_limit(const struct rpc_server_config *config);

/* Sets the options that the configuration contains: address, TLS, limits, keepalive, message size.
 * The configuration outlives the server. */
void rpc_server_configure(struct rpc_server_options *options,
			  const struct rpc_server_config *config);

#endif
