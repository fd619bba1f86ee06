/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_HTTP_SENDER_H
#define PIPELINE_DELIVERY_HTTP_SENDER_H

#include <pthread.h>

#include "net/http/http_client.h"
#include "pipeline/component.h"
#include "pipeline/delivery/reopen.h"

/*
 * Shared by all exporters over HTTP: the keys of a client, one client and its lifecycle, and the
 * meaning of each status for the data, as in the Collector's HTTP exporters. The exporter supplies
 * the URL, the bodies, and the interpretation of special replies. grpc_sender is the same for gRPC.
 *
 * init, start, stop, fini follow the exporter's create, start, stop, destroy.
 */
struct http_basic_config {
	char *username;
	struct secret password;
};

struct http_sender_config {
	struct secret proxy_url; /* it may contain a password */
	struct http_basic_config basic_auth;
	struct secret bearer_token;
	struct pairs headers;
	struct tls_client_config tls;
	char *compression;
};

extern const struct config_table http_sender_basic_table;

/* The rows of an exporter's table: HTTP_SENDER_ROWS(struct pyroscope_config, client). `endpoint` is
 * the exporter's own row. */
/* clang-format off */
#define HTTP_SENDER_ROWS(type, member) \
	CONFIG_SECTION(type, member.basic_auth, http_sender_basic_table, .key = "basic_auth", \
		       .help = "Basic authentication."), \
	CONFIG_ROW(type, member.bearer_token, .key = "bearer_token", .help = "Sent as `Authorization: Bearer`."), \
	CONFIG_ROW(type, member.headers, .key = "headers", .help = "Sent with each request."), \
	CONFIG_SECTION(type, member.tls, tls_client_table, .key = "tls", .help = "For `https://` endpoints."), \
	CONFIG_ROW(type, member.compression, .key = "compression", .def = "gzip", \
		   .help = "Compression of requests: `gzip` (level 1) or `none`."), \
	CONFIG_ROW(type, member.proxy_url, .key = "proxy_url", \
		   .help = "Default: the environment variables `http_proxy`, `https_proxy` and `no_proxy`.")
/* clang-format on */

/* Is the configuration valid, with this endpoint? */
bool http_sender_check(const struct http_sender_config *config, const char *endpoint,
		       struct error *err);
bool http_sender_gzips(const struct http_sender_config *config);

/* One request. */
struct http_sending {
	struct packet
		*packet; /* it holds the body; the sender keeps a reference until the answer */
	struct view body;
	bool gzip; /* the body is compressed; the header says so */
	/* Of this request; ends with name == NULL; may be NULL; copied. One that
	 * http_client_check_headers rejects fails the request permanently. */
	const struct metadatum *headers;
};

/* What an exporter sends, and how it reads the answer. */
struct http_service {
	const char *content_type;
	/* On the loop thread, once for each request, after http_sender_judge: may change the
	 * verdict. NULL: none. */
	void (*answered)(void *exporter, struct packet *packet, const struct http_result *result,
			 struct send_result *verdict);
};

/* Part of an exporter's instance. */
struct http_sender {
	const struct http_sender_config *config;
	const struct http_service *service;
	void *exporter;
	const struct host *host;
	char *url, *address, *port; /* address and port: of the URL, for labels */
	struct reopen reopen;
	pthread_rwlock_t lock; /* guards client: a send that starts after stop finds none */
	struct http_client *client;
};

/* The path is appended to the endpoint; both are copied. Everything else is borrowed until
 * http_sender_fini. */
void http_sender_init(struct http_sender *sender, const struct http_sender_config *config,
		      const char *endpoint, const char *path, const struct http_service *service,
		      void *exporter, const struct host *host);
bool http_sender_start(struct http_sender *sender, struct error *err);
/* Cancels what is in flight: those requests fail with "cancelled". Later sends fail with
 * "stopped". */
void http_sender_stop(struct http_sender *sender);
void http_sender_fini(struct http_sender *sender);
/* [any thread] Reads the certificates again. */
bool http_sender_reopen(struct http_sender *sender, struct error *err);

/* [any thread] Posts, and reports the result to `sending`. */
void http_sender_send(struct http_sender *sender, const struct http_sending *request,
		      uint64_t timeout_ns, struct sending *sending);

/*
 * The result of an answer, as the Collector's HTTP exporters classify it (OTLP specification,
 * "OTLP/HTTP Response"): 429, 502, 503 and 504 are retryable, with the Retry-After of 429 and 503;
 * so is a request without an answer, or with an incomplete one. All other failures are permanent.
 */
struct send_result http_sender_judge(const struct http_result *result);

#endif
