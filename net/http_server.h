/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_SERVER_H
#define NET_HTTP_SERVER_H

#include "base/bytes.h"
#include "base/log.h"
#include "base/metrics.h"
#include "net/tls.h"
#include "profile/request.h"

/*
 * HTTP/1.1 server over libmicrohttpd, with the gate before the body: `headers` decides before any of the
 * body is read. Threads: callbacks run on the server's own threads; http_exchange_reply may be called from
 * any thread, exactly once per exchange (also after the client went away). An exchange and everything got from
 * it are valid until its reply.
 *
 * Deadlines of our own end slow headers, dripping bodies and slow readers: libmicrohttpd's connection timeout
 * does not. No connection is ever left suspended at stop.
 */
struct http_exchange;

struct http_route {
	const char *path;    /* exact; NULL matches the rest */
	const char *methods; /* "POST" or "GET" or "GET,HEAD"; others are 405 with Allow */
	/* Headers are complete. Calls http_exchange_accept to read the body, or replies. */
	void (*headers)(void *context, struct http_exchange *exchange);
	/* The body is complete, as sent. */
	void (*body)(void *context, struct http_exchange *exchange, struct view body);
	/* The client went away, or the body ran over its limit or deadline (answered already): free what belongs to it. */
	void (*lost)(void *context, struct http_exchange *exchange);
	void *context;
};

/* The Collector's confighttp server keys (collector-compat §2.2), for embedding in a component's config. */
struct http_server_config {
	char *endpoint, *transport;
	struct tls_server_config tls;
	int64_t max_request_body_size;
	bool include_metadata, keep_alives_enabled;
	struct strings compression_algorithms;
	struct duration read_timeout, read_header_timeout, write_timeout, idle_timeout;
	struct pairs response_headers;
	const struct node *auth, *cors, *middlewares;
	int64_t max_connections; /* ours */
};

extern const struct config_table http_server_table; /* of struct http_server_config */

struct http_server_options {
	const struct http_server_config *config;
	const struct http_route *routes;
	size_t route_count;
	struct log *log;
	struct metrics *metrics;
};

struct http_server;

struct http_server *http_server_start(const struct http_server_options *options, struct error *err);
bool http_server_reload(struct http_server *server, struct error *err); /* certificates */
/* Refuses new connections, lets exchanges finish until the deadline, then cuts them. */
void http_server_stop(struct http_server **server, uint64_t grace_ns);

/* Reads the body up to `limit` bytes (413 beyond). */
void http_exchange_accept(struct http_exchange *exchange, size_t limit);
void http_exchange_set_user(struct http_exchange *exchange, void *user);
void *http_exchange_user(struct http_exchange *exchange);
const char *http_exchange_method(struct http_exchange *exchange);
const char *http_exchange_peer(struct http_exchange *exchange);
const char *http_exchange_identity(struct http_exchange *exchange);
/* A request header, NULL if absent; names are case-insensitive. */
const char *http_exchange_header(struct http_exchange *exchange, const char *name);
/* -1: unknown (chunked). */
int64_t http_exchange_content_length(struct http_exchange *exchange);
/* All headers (lower-case names) and all query parameters (decoded), in order; each ends with name == NULL. */
const struct metadatum *http_exchange_headers(struct http_exchange *exchange);
const struct metadatum *http_exchange_query(struct http_exchange *exchange);

struct http_reply {
	int status;
	const char *content_type;
	struct view body;
	uint32_t retry_after_s; /* 0: none */
};
void http_exchange_reply(struct http_exchange *exchange, const struct http_reply *reply);

/* The status of an error kind: 400, 413, 415, 401, 503 ... */
int http_status_of(enum error_kind kind);

#endif
