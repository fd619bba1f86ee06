/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_HTTP_SENDER_H
#define PIPELINE_DELIVERY_HTTP_SENDER_H

#include <pthread.h>

#include "net/http/http_client_config.h"
#include "pipeline/component.h"
#include "pipeline/delivery/http_compression.h"
#include "pipeline/delivery/idempotency.h"
#include "pipeline/reopen.h"

/*
 * Shared by all exporters over HTTP: the keys of a client, one client and its lifecycle, and the
 * meaning of each status for the data, as in the Collector's HTTP exporters. The exporter supplies
 * the URL, the bodies, and the interpretation of special replies. grpc_sender is the same for gRPC.
 *
 * init, start, stop, fini follow the exporter's create, start, stop, destroy.
 */
struct http_sender_config {
	struct http_client_config http;
	int64_t max_idle_per_host;
	bool idempotency_key;
	struct http_compression_config compression;
};

/* The rows of an exporter's table: HTTP_SENDER_ROWS(struct pyroscope_config, client, "`gzip` or
 * `none`"), with the names of the codings that it passes to http_sender_check. `endpoint` is the
 * exporter's own row. */
/* clang-format off */
#define HTTP_SENDER_ROWS(type, member, compressions) \
	HTTP_CLIENT_ROWS(type, member.http), \
	CONFIG_ROW(type, member.max_idle_per_host, .key = "max_idle_conns_per_host", .def = "0", \
		   .limited = true, .min = 0, .max = 65535, \
		   .help = "The same as `max_idle_conns`, because an exporter has one host. The smaller number applies. " \
			   "0: `max_idle_conns`."), \
	IDEMPOTENCY_ROW(type, member.idempotency_key), \
	HTTP_COMPRESSION_ROWS(type, member.compression, compressions)
/* clang-format on */

/* Reports what is wrong with the configuration, with the endpoint, which the key `key` has (NULL or
 * "": there is none, which the caller reports), and these codings (net/compress.h, 1 << coding
 * each). */
void http_sender_check(const struct http_sender_config *config, const char *key,
		       const char *endpoint, unsigned codings, struct faults *faults);
/* The form of the bodies to pass to http_sender_send, for an encoding of the exporter. */
struct packet_form http_sender_form(const struct http_sender_config *config,
				    enum packet_encoding encoding);

/* One request. */
struct http_sending {
	struct packet
		*packet;  /* it holds the body; the sender keeps a reference until the answer */
	struct view body; /* in the form of http_sender_form */
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
	char *url, *address, *port;          /* address and port: of the URL, for labels */
	char *endpoint;                      /* as configured, for the log */
	struct authenticator *authenticator; /* NULL: none */
	struct reopen reopen;
	pthread_rwlock_t lock; /* guards client: a send that starts after stop finds none */
	struct http_client *client;
	bool sends_key; /* Idempotency-Key */
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
 * so is a request without an answer, or with an incomplete one. 413 is SEND_TOO_LARGE. All other
 * failures are permanent. A sender of Idempotency-Key also retries after 409.
 */
struct send_result http_sender_judge(const struct http_result *result);

#endif
