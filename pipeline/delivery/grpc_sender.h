/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_GRPC_SENDER_H
#define PIPELINE_DELIVERY_GRPC_SENDER_H

#include <pthread.h>

#include "net/grpc/grpc_client.h"
#include "pipeline/component.h"
#include "pipeline/delivery/idempotency.h"
#include "pipeline/reopen.h"

/*
 * Shared by all exporters over gRPC: the Collector's keys of a client (configgrpc), one client and
 * its lifecycle, and the meaning of each status for the data. The exporter supplies the method, the
 * bodies, and the interpretation of special replies. http_sender is the same for HTTP.
 */
struct keepalive_config {
	struct optional present;
	struct duration time, timeout;
	bool permit_without_stream;
};

struct grpc_sender_config {
	char *endpoint, *compression, *user_agent, *balancer_name, *authority;
	struct tls_client_config tls;
	struct keepalive_config keepalive;
	struct duration max_connection_age;
	struct pairs headers;
	bool wait_for_ready, idempotency_key;
	int64_t read_buffer_size, write_buffer_size;
	struct auth_config auth;
	const struct node *middlewares;
};

extern const struct config_table grpc_keepalive_table;

/* The rows of an exporter's table: GRPC_SENDER_ROWS(struct parca_config, client).
 * _BUT_ENDPOINT is for exporters that find their servers otherwise. */
/* clang-format off */
#define GRPC_SENDER_ROWS(type, member) \
	CONFIG_ROW(type, member.endpoint, .key = "endpoint", .role = ROLE_CONNECTS, \
		   .help = "`host:port` of the gRPC server. `https://` forces TLS, `http://` is ignored. Also " \
			   "`dns:///host:port`, `unix:///path`, `ipv4:address:port,address:port`."), \
	GRPC_SENDER_ROWS_BUT_ENDPOINT(type, member)
#define GRPC_SENDER_ROWS_BUT_ENDPOINT(type, member) \
	CONFIG_SECTION(type, member.tls, tls_client_table, .key = "tls", \
		       .help = "TLS is on unless `insecure: true`."), \
	CONFIG_ROW(type, member.compression, .key = "compression", .def = "gzip", \
		   .help = "`gzip` or `zstd` (both with level 1), `snappy`, or `none`. The exporter `parca` has `gzip` " \
			   "and `none`. A server that does not know the compression rejects each request."), \
	CONFIG_ROW(type, member.headers, .key = "headers", \
		   .help = "Sent with each request, with names in lower case. Headers that " \
			   "gRPC itself sets are errors."), \
	CONFIG_ROW(type, member.user_agent, .key = "user_agent", \
		   .help = "Default: `Portcullis/<version> (linux/<arch>)`; the gRPC C core appends its own name."), \
	IDEMPOTENCY_ROW(type, member.idempotency_key), \
	CONFIG_ROW(type, member.wait_for_ready, .key = "wait_for_ready", .def = "false", \
		   .help = "Without a connection, requests wait until their timeout instead " \
			   "of failing immediately."), \
	CONFIG_ROW(type, member.balancer_name, .key = "balancer_name", .def = "round_robin", \
		   .help = "`round_robin` over all addresses of the endpoint, or `pick_first`."), \
	CONFIG_ROW(type, member.authority, .key = "authority", \
		   .help = "The `:authority` to send. With TLS it must be a name in the server's certificate."), \
	CONFIG_SECTION(type, member.keepalive, grpc_keepalive_table, .key = "keepalive", \
		       .presence = PRESENCE_NONE, .help = "HTTP/2 pings."), \
	CONFIG_ROW(type, member.max_connection_age, .key = "max_connection_age", .def = "0s", \
		   .help = "After this time (10 % more or less, at random), the name is resolved again, and later " \
			   "requests use new connections. Requests in flight finish on the old ones. 0: never. Not " \
			   "a key of the Collector."), \
	CONFIG_SECTION(type, member.auth, auth_table, .key = "auth", .presence = PRESENCE_NONE, \
		       .help = "An extension adds the credentials to each call."), \
	CONFIG_ROW(type, member.middlewares, .key = "middlewares", \
		   .help = "Middleware extensions. This build has none, so any entry is an " \
			   "error."), \
	CONFIG_ROW(type, member.read_buffer_size, .key = "read_buffer_size", .def = "0", .inert = true, \
		   .help = "The gRPC C core chooses its buffers."), \
	CONFIG_ROW(type, member.write_buffer_size, .key = "write_buffer_size", .def = "524288", .inert = true, \
		   .help = "The gRPC C core chooses its buffers.")
/* clang-format on */

/* The manual's text about all of them. */
/* clang-format off */
#define GRPC_SENDER_MANUAL \
	"Responses are classified as the OTLP specification requires: CANCELLED, " \
	"DEADLINE_EXCEEDED, ABORTED, OUT_OF_RANGE, UNAVAILABLE and DATA_LOSS are retried, " \
	"RESOURCE_EXHAUSTED only with RetryInfo, whose delay is honoured. A request that the " \
	"server rejects as too large is split by the limit that the server names, or in " \
	"half, and sent in parts. So are later requests (`limits`). Any other error drops " \
	"the data. "
#define GRPC_SENDER_MANUAL_END \
	"A response may have 16 KiB of headers, 16 KiB of trailers, and a message, of which " \
	"at most 16 KiB are read. All data that a server sends is limited to 128 KiB plus 32 " \
	"KiB for each response. Beyond that, its connections are closed, and none is opened " \
	"for 10 s. Whether such a server accepted a request is unknown, so the request is " \
	"retried (`reply_too_large` in the log, counted in " \
	"`otelcol_exporter_oversized_responses`) and never split.\n\n" \
	"If a server stops reading in the middle of a request, the connection is closed after 10 s (with `keepalive`: after " \
	"its `timeout`). A shutdown of the gateway waits for that.\n\n" \
	"A proxy that the environment variable `HTTPS_PROXY` names, with the scheme `http`, is asked to forward the " \
	"connection (`CONNECT`), also without TLS, as in the Collector. This concerns endpoints that are `host:port`, with " \
	"or without `https://`, `http://`, `dns:///` or `passthrough:///`. `NO_PROXY` lists hosts without a proxy."
/* clang-format on */

void grpc_sender_check(const struct grpc_sender_config *config, struct faults *faults);
/* For GRPC_SENDER_ROWS_BUT_ENDPOINT. */
void grpc_sender_check_but_endpoint(const struct grpc_sender_config *config, struct faults *faults);
/* The form of the messages to pass to grpc_sender_send, for an encoding of the exporter. */
struct packet_form grpc_sender_form(const struct grpc_sender_config *config,
				    enum packet_encoding encoding);

/* Of a request that was answered. */
struct grpc_asked {
	uint64_t profiles, elapsed_ns;
};

/* What an exporter calls, and how it reads the answer. */
struct grpc_method {
	const char *path; /* "/package.Service/Method" */
	/* On the client's queue thread, once for each request, after its status was classified: may
	 * change the verdict. NULL: none. */
	void (*answered)(void *exporter, const struct grpc_result *result,
			 const struct grpc_asked *asked, struct send_result *verdict);
};

/* Part of an exporter's instance. */
struct grpc_sender {
	const struct grpc_sender_config *config;
	const struct grpc_method *method;
	void *exporter;
	const struct host *host;
	struct grpc_endpoint endpoint;
	struct authenticator *authenticator; /* NULL: none */
	struct reopen reopen;
	pthread_rwlock_t lock; /* guards client: a send that starts after stop finds none */
	struct grpc_client *client;
	struct metric_series *replies_too_large;
	bool sends_key; /* Idempotency-Key */
};

extern const struct metric grpc_sender_replies_too_large; /* for the manual of each exporter */

/* All borrowed, for the life of the exporter. grpc_sender_fini follows also a failed init. */
bool grpc_sender_init(struct grpc_sender *sender, const struct grpc_sender_config *config,
		      const struct grpc_method *method, void *exporter, const struct host *host,
		      struct error *err);
void grpc_sender_fini(struct grpc_sender *sender);
/* headers: instead of the configured ones, borrowed during the call; NULL: those. */
bool grpc_sender_start(struct grpc_sender *sender, const struct pairs *headers, struct error *err);
void grpc_sender_stop(struct grpc_sender *sender);
/* [any thread] Reads the certificates again. */
bool grpc_sender_reopen(struct grpc_sender *sender, struct error *err);

/* [any thread] Calls, and reports the result to `sending`; message->release always runs. Metadata
 * that grpc_client_check_metadata rejects fails the request permanently. */
void grpc_sender_send(struct grpc_sender *sender, const struct grpc_message *message,
		      struct packet *packet, uint64_t timeout_ns, struct sending *sending);

#endif
