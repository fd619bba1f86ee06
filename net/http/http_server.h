/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_HTTP_SERVER_H
#define NET_HTTP_HTTP_SERVER_H

#include "base/bytes.h"
#include "base/log.h"
#include "base/metrics.h"
#include "net/authenticator.h"
#include "net/budget.h"
#include "net/compress.h"
#include "net/h2/bounds.h"
#include "net/io.h"
#include "net/sockets.h"
#include "net/tls/tls.h"
#include "profile/request.h"

/*
 * HTTP server with admission before the body: `headers` decides before any of the body is read.
 * HTTP/1.1 runs on libmicrohttpd and, at the same port, HTTP/2 on net/h2 (docs/HTTP.md). Threads:
 * the callbacks of an exchange run on the I/O thread of its connection, or on libmicrohttpd's own
 * thread if the server has no I/O threads. They must not block; `body` on an I/O thread may run a
 * small request. http_exchange_reply may be called from any thread, exactly once per exchange (also
 * after the client went away), but not after `lost`. An exchange and everything got from it are
 * valid until its reply.
 *
 * One thread of the server listens, accepts, keeps the deadlines of HTTP/1.1 and closes idle
 * connections when memory is short. HTTP/1.1 connections are suspended while a worker has their
 * request, and for a few seconds at most while there is no memory for the next part of their body.
 *
 * Facts about libmicrohttpd 0.9.75 that shape this: its connection timeout never ends a dripping
 * body (net/http/http_deadline.c does), HTTPS_MEM_TRUST alone lets in clients without or with a
 * foreign certificate (net/http/http_tls.c requires and verifies), it aborts when stopped with a
 * suspended connection (none is left), it can answer only before the body or after it (a body over
 * its limit is answered by hand), it closes rejected connections with unread data, which resets
 * them before the client reads the response (net/http/http_listener.c lingers), it checks
 * neither for both Content-Length and Transfer-Encoding nor for repeated ones
 * (net/http/http_judge.c does), and it sends the head of its own response to a Content-Length that
 * is no number twice, before it closes the connection.
 */
struct http_exchange;

/* The memory of a body. `need` bytes must fit now. `limit` is the maximum size of the body (its
 * announced length, if there is one). `room` is the size that the route has granted; the route
 * raises it to at least `need`. */
struct http_growth {
	size_t need, limit, room;
	bool last; /* the body has waited long enough: HTTP_GROW_LATER is not allowed */
};

enum http_grow {
	HTTP_GROW_YES,
	HTTP_GROW_LATER, /* not now: the server stops reading and asks again soon */
	HTTP_GROW_REFUSED
};

struct http_route {
	const char *path;    /* exact; NULL matches the rest */
	const char *methods; /* "POST" or "GET" or "GET,HEAD"; others are 405 with Allow */
	/* Headers are complete. Calls http_exchange_accept to read the body, or replies, before it
	 * returns. */
	void (*headers)(void *context, struct http_exchange *exchange);
	/* The body is about to take more memory. HTTP_GROW_REFUSED must follow a reply that
	 * refuses; the exchange then ends without `lost`. A body that exceeds the limit of
	 * http_exchange_accept, which it has not announced, needs more than `limit`: it must be
	 * refused. NULL: always granted. */
	enum http_grow (*grow)(void *context, struct http_exchange *exchange,
			       struct http_growth *growth);
	/* The body is complete, as sent, and stays until the reply. Replies now or later, from any
	 * thread. */
	void (*body)(void *context, struct http_exchange *exchange, struct view body);
	/*
	 * After accept, before body: the client disconnected or was too slow, or the body exceeds
	 * the limit (too_large: 413 was already sent; not with `grow`). No reply must follow. The
	 * exchange is invalid after return.
	 */
	void (*lost)(void *context, struct http_exchange *exchange, bool too_large);
	void *context;
};

/* The section `cors`: which origins browsers may send requests from. */
struct http_cors_config {
	struct optional present;
	struct strings allowed_origins, allowed_headers, exposed_headers;
	int64_t max_age; /* seconds */
};

extern const struct config_table http_cors_table;

/* The Collector's confighttp server keys, for embedding in a component's config. */
struct http_server_config {
	struct optional present;
	char *endpoint, *transport;
	struct tls_server_config tls;
	int64_t max_request_body_size; /* of the body as sent, and also of the decompressed body */
	bool include_metadata, keep_alives_enabled;
	struct strings compression_algorithms;
	struct duration read_timeout, read_header_timeout, write_timeout, idle_timeout,
		tls_handshake_timeout;
	struct pairs response_headers;
	struct auth_server_config auth;
	struct http_cors_config cors;
	const struct node *middlewares;
	/* Ours. 0: no limit. */
	int64_t max_connections, max_connections_per_peer, min_body_rate;
	int64_t max_header_bytes, max_header_count; /* 0: the defaults */
	struct h2_limits http2_limits;              /* those of h2_frame_limits_table */
};

#define HTTP_HEADER_BYTES 16384
#define HTTP_HEADER_COUNT 100

/* The rows of a table whose struct holds a struct http_server_config as `member`, with the defaults
 * of three of them. */
/* clang-format off */
#define HTTP_SERVER_ROWS(type, member, default_endpoint, connections, of_a_peer) \
	CONFIG_ROW(type, member.endpoint, .key = "endpoint", .def = default_endpoint, .role = ROLE_LISTENS, \
		   .help = "Address to listen on: host:port, [v6]:port, :port (all addresses), " \
			   "or a path with `transport: unix`."), \
	CONFIG_ROW(type, member.transport, .key = "transport", .def = "tcp", \
		   .help = "tcp, tcp4, tcp6 or unix."), \
	CONFIG_SECTION(type, member.tls, tls_server_table, .key = "tls", .presence = PRESENCE_NONE, \
		       .help = "Serves TLS. With `client_ca_file`, clients must present a " \
			       "certificate that this CA signed."), \
	CONFIG_ROW(type, member.max_request_body_size, .key = "max_request_body_size", .def = "20971520", \
		   .unit = "bytes", .help = "Maximum size of a request body, both as sent and " \
					    "decompressed. 0 or less: 20 MiB."), \
	CONFIG_ROW(type, member.include_metadata, .key = "include_metadata", .def = "false", \
		   .help = "Makes request headers available to processors."), \
	CONFIG_ROW(type, member.keep_alives_enabled, .key = "keep_alives_enabled", .def = "true", \
		   .help = "Serves several requests on one connection. An HTTP/2 connection " \
			   "otherwise ends with its first response."), \
	CONFIG_ROW(type, member.compression_algorithms, .key = "compression_algorithms", \
		   .def = "[\"\", gzip, zstd, zlib, snappy, deflate, lz4, x-snappy-framed]", \
		   .help = "Accepted Content-Encoding values; \"\" means no encoding. Requests " \
			   "with other values fail with 415, or 400 for OTLP."), \
	CONFIG_ROW(type, member.read_header_timeout, .key = "read_header_timeout", .def = "10s", \
		   HTTP_TIMEOUT_LIMITS, .help = "Timeout for receiving the headers of a " \
						"request; 0: none."), \
	CONFIG_ROW(type, member.tls_handshake_timeout, .key = "tls_handshake_timeout", .def = "10s", \
		   HTTP_TIMEOUT_LIMITS, .help = "Timeout for the TLS handshake of a " \
						"connection; 0: none. Not a key of the " \
						"Collector."), \
	CONFIG_ROW(type, member.read_timeout, .key = "read_timeout", .def = "60s", HTTP_TIMEOUT_LIMITS, \
		   .help = "Timeout for receiving the whole body of a request; 0: none."), \
	CONFIG_ROW(type, member.min_body_rate, .key = "min_body_rate", .def = "500", .unit = "bytes/s", .limited = true, \
		   .min = 0, .max = 1000000000, \
		   .help = "Minimum average rate of a request body, enforced after its first " \
			   "5 seconds; a slower request is aborted. 0: no minimum. Not a key " \
			   "of the Collector."), \
	CONFIG_ROW(type, member.write_timeout, .key = "write_timeout", .def = "30s", HTTP_TIMEOUT_LIMITS, \
		   .help = "Timeout for the client to receive the whole response; 0: none."), \
	CONFIG_ROW(type, member.idle_timeout, .key = "idle_timeout", .def = "60s", HTTP_TIMEOUT_LIMITS, \
		   .help = "Timeout between two requests on one connection; 0: none."), \
	CONFIG_ROW(type, member.response_headers, .key = "response_headers", \
		   .help = "Headers added to every response."), \
	CONFIG_SECTION(type, member.auth, auth_server_table, .key = "auth", .presence = PRESENCE_NONE, \
		       .help = "Requests must be authenticated by an extension. Others fail " \
			       "with 401 before their body is read."), \
	CONFIG_ROW(type, member.middlewares, .key = "middlewares", \
		   .help = "Middleware extensions. This build has none, so any entry is an " \
			   "error."), \
	CONFIG_SECTION(type, member.cors, http_cors_table, .key = "cors", .presence = PRESENCE_NONE, \
		       .help = "Which other origins' pages may send requests from a browser. " \
			       "Credentials are allowed. Preflights are answered before " \
			       "authentication."), \
	CONFIG_ROW(type, member.max_connections, .key = "max_connections", .def = connections, .limited = true, \
		   .min = 1, .max = 1000000, .help = "Maximum number of open connections; " \
						     "further ones are closed without a " \
						     "response. Not a key of the Collector."), \
	CONFIG_ROW(type, member.max_connections_per_peer, .key = "max_connections_per_peer", .def = of_a_peer, \
		   .limited = true, .min = 0, .max = 1000000, \
		   .help = "Maximum number of open connections from one IPv4 address or IPv6 " \
			   "/64 network; 0: no separate limit. Not a key of the Collector."), \
	CONFIG_ROW(type, member.max_header_bytes, .key = "max_header_bytes", .def = HTTP_STRING(HTTP_HEADER_BYTES), \
		   .unit = "bytes", .limited = true, .min = 1024, .max = 1048576, \
		   .help = "Maximum total size of the names and values of a request's " \
			   "headers; a larger request fails with 431. Not a key of the " \
			   "Collector."), \
	CONFIG_ROW(type, member.max_header_count, .key = "max_header_count", .def = HTTP_STRING(HTTP_HEADER_COUNT), \
		   .limited = true, .min = 1, .max = 10000, .help = "Maximum number of " \
								    "headers in a request; a " \
								    "request with more fails " \
								    "with 431. Not a key of " \
								    "the Collector."), \
	CONFIG_SECTION(type, member.http2_limits, h2_frame_limits_table, .key = "http2_limits", \
		       .help = "Limits on what one HTTP/2 connection may cost. Not a key of the " \
			       "Collector.")
/* clang-format on */

#define HTTP_STRING(number) HTTP_STRING_OF(number)
#define HTTP_STRING_OF(number) #number
#define HTTP_TIMEOUT_LIMITS .limited = true, .min = 0, .max = INT64_MAX

/* A separate optional section without a default endpoint. Its user requires or sets one. */
extern const struct config_table http_server_table;
/* The cross-field rules of these rows, for the check of a table that embeds them. */
void http_server_check(const struct http_server_config *config, struct faults *faults);
/* That of the endpoint alone, for a section without the other keys. */
bool http_server_check_endpoint(const char *transport, const char *endpoint, struct error *err);
/* max_request_body_size with its default; its `max` is for http_exchange_accept. */
struct size_limit http_server_body_limit(const struct http_server_config *config);

struct http_server_options {
	const struct http_server_config *config;
	const struct http_route *routes;
	size_t route_count;
	const struct log *log;
	struct metrics *metrics;
	struct net_budget budget; /* what connections cost is charged to it */
	struct sockets_access sockets;
	/* of config->auth; NULL: none. The server takes its own reference. */
	struct authenticator *authenticator;
	/* The threads of its connections; NULL: HTTP/1.1 only, on a thread of the server's own. */
	struct io *io;
};

struct http_server;

extern const struct metric *const http_server_metrics[]; /* for the manual; NULL-terminated */

/* config, log and metrics are borrowed until http_server_stop; the routes are copied. */
struct http_server *http_server_start(const struct http_server_options *options, struct error *err);
/* The address that it listens on ("127.0.0.1:4040"), with the chosen port for port 0. */
const char *http_server_address(const struct http_server *server);
/*
 * Reloads the certificate files. New connections use the new certificate and CA. Open connections
 * finish their request and close. An invalid file changes nothing (see err). [any thread]
 */
bool http_server_reopen(struct http_server *server, struct error *err);
/*
 * Refuses new connections and requests, lets exchanges finish until the deadline, then aborts them.
 * An exchange that a worker still holds stays valid until its reply, which is discarded.
 */
void http_server_stop(struct http_server **server, uint64_t grace_ns);
/*
 * The same for a server whose place another one takes at the same address, which must have started:
 * refuses nothing. Each connection is served until it has been idle or has had one more reply, for
 * at most the time given.
 */
void http_server_retire(struct http_server **server, uint64_t grace_ns);

/* In `headers` only: reads the body up to `limit` bytes (413 beyond, also when only declared). */
void http_exchange_accept(struct http_exchange *exchange, size_t limit);
void http_exchange_set_user(struct http_exchange *exchange, void *user);
void *http_exchange_user(struct http_exchange *exchange);
const char *http_exchange_method(struct http_exchange *exchange);
const char *http_exchange_peer(struct http_exchange *exchange);
/* What is known of the sender: the identity that the authenticator found, then the names of the
 * verified client certificate (net/tls/tls.h). NULL: nothing. */
const struct metadatum *http_exchange_auth(struct http_exchange *exchange);
/* A request header, NULL if absent; names are case-insensitive. */
const char *http_exchange_header(struct http_exchange *exchange, const char *name);
/* The I/O thread that the callbacks run on; NULL: the server has none. */
struct io_thread *http_exchange_thread(const struct http_exchange *exchange);
/* The memory that the exchange holds: itself and its copies of the headers. */
size_t http_exchange_cost(const struct http_exchange *exchange);
/* 0 without body, -1: unknown (chunked). */
int64_t http_exchange_content_length(struct http_exchange *exchange);
/* All headers, names in lower case, in order; ends with name == NULL. */
const struct metadatum *http_exchange_headers(struct http_exchange *exchange);
/* The same for the query parameters, decoded (net/fields.h); ERROR_INVALID if they are malformed.
 */
bool http_exchange_query(struct http_exchange *exchange, const struct metadatum **query,
			 struct error *err);
/*
 * The coding of the body (never CODING_UNKNOWN) by its Content-Encoding and the
 * server's compression_algorithms; ERROR_UNSUPPORTED for others and for more than one.
 */
bool http_exchange_coding(struct http_exchange *exchange, enum coding *coding, struct error *err);

struct http_reply {
	int status;
	const char *content_type; /* NULL: none */
	struct view body;         /* copied */
	uint32_t retry_after_s;   /* 0: none */
};
void http_exchange_reply(struct http_exchange *exchange, const struct http_reply *reply);
/* Replies with the error's status and its message as plain text; Retry-After for ERROR_BUSY. */
void http_exchange_refuse(struct http_exchange *exchange, const struct error *err);

/* The status of an error: 400, 413, 415, 401, 403, 429, 503 ... */
int http_status_of(const struct error *err);
/* Its Retry-After in seconds; 0: none, as for every kind but ERROR_BUSY. */
uint32_t http_retry_after_s(const struct error *err);

#endif
