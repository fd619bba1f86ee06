/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_GRPC_GRPC_CLIENT_H
#define NET_GRPC_GRPC_CLIENT_H

#include "base/bytes.h"
#include "base/coding.h"
#include "config/table.h"
#include "net/cause.h"
#include "net/tls/tls.h"
#include "profile/request.h"

/*
 * One channel to one target, for unary calls of one method, over the gRPC C core. [any thread]
 *
 * All clients of the process share one completion-queue thread. It starts with the first client and
 * ends with the last one. `done` runs on it. It must not block, and must not unref a client.
 *
 * A destination affects only its own client: the bytes that it may send are bounded
 * (net/grpc/grpc_allowance.h), and `done` is called at most 0.6 s after the deadline of the call,
 * regardless of what the destination reads.
 */

/* An endpoint in the Collector's notation, parsed. */
struct grpc_endpoint {
	char *target;              /* for core: "dns:///host:port", "unix:/path" */
	char *host, *port;         /* for metric labels; empty for unix sockets and lists */
	char *shown;               /* as configured, without what may be a password */
	char *authority;           /* "host:port"; NULL: for core to choose */
	bool tls;                  /* https:// forces it */
	bool proxied;              /* `target` is the address of a proxy */
	char *proxy_authorization; /* "Basic ..."; NULL: none */
};

/* Accepts host:port, http:// (stripped), https:// (forces TLS), dns:///h:p, passthrough:///h:p
 * (core has no such resolver, but dns also accepts addresses), unix:/path, unix:///path,
 * ipv4:a:p,b:p, ipv6:[a]:p. On success, grpc_endpoint_fini frees the strings. */
bool grpc_endpoint_parse(const char *text, struct grpc_endpoint *out, struct error *err);
/* If the environment names a proxy for it (net/proxy.h), it is reached through that, with CONNECT.
 * Only host:port and its forms with a scheme can have one. */
bool grpc_endpoint_find_proxy(struct grpc_endpoint *endpoint, struct error *err);
void grpc_endpoint_fini(struct grpc_endpoint *endpoint);
/* Would a client with this TLS section (NULL: none) send in plaintext? */
bool grpc_endpoint_is_plaintext(const struct grpc_endpoint *endpoint,
				const struct tls_client_config *tls);

/* All strings are borrowed until grpc_client_new returns. `tls` is borrowed for the client's life,
 * because its files may be read again. */
struct grpc_client_options {
	const char *endpoint;
	const char *method;                  /* "/package.Service/Method" */
	const struct tls_client_config *tls; /* NULL, or insecure without CA: plaintext */
	const struct pairs *headers;         /* may be NULL; names are sent in lower case */
	const char *user_agent, *authority, *balancer; /* NULL: core's default */
	bool wait_for_ready, keepalive, permit_without_stream;
	struct duration keepalive_time, keepalive_timeout;
	/* After this time, shortened or extended by up to a tenth at random, later calls use a
	 * new channel, which resolves the name again. Calls in flight finish on the old one.
	 * 0: never */
	struct duration max_age;
};

/* The bytes are not copied. */
struct grpc_message {
	struct view bytes;
	/* How the bytes are already compressed, which is announced to the server: GRPC_CODINGS */
	enum coding coding;
	/* Sent with this call, in addition to the client's headers. Ends with name == NULL; may be
	 * NULL; copied. It must have passed grpc_client_check_metadata. */
	const struct metadatum *metadata;
	/* [any thread] Core no longer uses the bytes. Called once, before or after done. Must not
	 * block or call this client. May be NULL. */
	void (*release)(void *owner);
	void *owner;
};

/* Valid during done. */
struct grpc_result {
	int status; /* gRPC status code, 0: OK */
	/* the status message of the peer, possibly truncated: for classification only, never
	 * logged */
	const char *message;
	/* with status 0: decompressed; empty if it is longer than GRPC_CLIENT_ANSWER_MAX */
	struct view response;
	int64_t retry_delay_ms; /* from RetryInfo; -1: none was sent */
	/* certain: no connection ever took the request, so nobody can have processed it */
	bool unsent;
	/* The reply was rejected here, by the gRPC C core or the allowance
	 * (net/grpc/grpc_allowance.h). It is unknown what the peer did with the request. */
	bool reply_too_large;
	/* why there is no answer; CAUSE_NONE: there is one, or it is not known */
	struct cause cause;
	int http_status; /* of an answer that is not gRPC; 0: none */
};

/* 1 << coding each */
#define GRPC_CODINGS \
	(1u << CODING_IDENTITY | 1u << CODING_GZIP | 1u << CODING_ZSTD | 1u << CODING_SNAPPY_FRAMED)

#define GRPC_CLIENT_ANSWER_MAX 16384

struct grpc_client;

/* Can these headers be sent? err contains names, which are the operator's, but never values. */
bool grpc_client_check_headers(const struct pairs *headers, struct error *err);
/* The same of one of them. */
bool grpc_client_check_header(const struct pairs *headers, size_t index, struct error *err);

/* Can a call send this metadata? At most GRPC_METADATA_MAX entries, GRPC_METADATA_BYTES in total.
 * err contains indices, never values. [any thread] */
enum { GRPC_METADATA_MAX = 32, GRPC_METADATA_BYTES = 16384 };
bool grpc_client_check_metadata(const struct metadatum *metadata, struct error *err);

struct grpc_client *grpc_client_new(const struct grpc_client_options *options, struct error *err);
/* timeout_ns 0: no deadline. done is called exactly once. */
void grpc_client_call(struct grpc_client *client, const struct grpc_message *message,
		      uint64_t timeout_ns,
		      void (*done)(void *argument, const struct grpc_result *result),
		      void *argument);
/* Reads the TLS files again. If they changed, later calls use a new channel; calls in flight finish
 * on the old one. If a file is invalid, nothing changes, and err contains the reason. */
bool grpc_client_reopen(struct grpc_client *client, bool *changed, struct error *err);
/*
 * Cancels calls in flight. Returns after done was called for each call and each message was
 * released. A peer that stopped reading in the middle of a message delays the return until its
 * connection is closed: after 10 s without progress, or after keepalive_timeout. Must not be called
 * from done.
 */
void grpc_client_unref(struct grpc_client **client);

#endif
