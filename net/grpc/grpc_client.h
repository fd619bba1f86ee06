/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_GRPC_GRPC_CLIENT_H
#define NET_GRPC_GRPC_CLIENT_H

#include "base/bytes.h"
#include "config/table.h"
#include "net/tls/tls.h"
#include "profile/request.h"

/*
 * One channel to one target, unary calls of one method, over the gRPC C core. [any thread]
 *
 * All clients of the process share one completion-queue thread. It starts with the first client and
 * has ended when the last one is gone. `done` runs on it and must not block, nor drop a client.
 *
 * A destination can cost itself alone: what it sends is bounded (net/grpc/grpc_allowance.h), and a
 * call has its `done` at most 0.6 s behind its deadline, whatever the destination reads.
 */

/* An endpoint as users of the Collector write it, taken apart. */
struct grpc_endpoint {
	char *target;      /* for core: "dns:///host:port", "unix:/path" */
	char *host, *port; /* for labels; empty for sockets and lists */
	bool tls;          /* https:// forces it */
};

/*
 * host:port, http:// (stripped), https:// (forces TLS), dns:///h:p, passthrough:///h:p (core has no
 * such resolver; dns takes addresses as they are, too), unix:/path, unix:///path, ipv4:a:p,b:p,
 * ipv6:[a]:p. On success grpc_endpoint_fini frees the texts.
 */
bool grpc_endpoint_parse(const char *text, struct grpc_endpoint *out, struct error *err);
void grpc_endpoint_fini(struct grpc_endpoint *endpoint);
/* Would a client with this section (NULL: none) send in clear text? */
bool grpc_endpoint_is_plaintext(const struct grpc_endpoint *endpoint,
				const struct tls_client_config *tls);

/* All texts are borrowed until grpc_client_new returns; `tls` until the client is gone (it names
 * files to reload). */
struct grpc_client_options {
	const char *endpoint;
	const char *method;                  /* "/package.Service/Method" */
	const struct tls_client_config *tls; /* NULL, or insecure without CA: plaintext */
	const struct pairs *headers;         /* may be NULL; names are sent in lower case */
	const char *user_agent, *authority, *balancer; /* NULL: core's default */
	bool wait_for_ready, keepalive, permit_without_stream;
	struct duration keepalive_time, keepalive_timeout;
};

/* gzip: the bytes are already gzip; the header says so. They are not copied. */
struct grpc_message {
	struct view bytes;
	bool gzip;
	/* Of this call, besides the client's headers; ends with name == NULL; may be NULL; copied.
	 * It has passed grpc_client_check_metadata. */
	const struct metadatum *metadata;
	/* [any thread] core has let go of the bytes: once, before or after done. Must not block or
	 * call this client. May be NULL. */
	void (*release)(void *owner);
	void *owner;
};

/* Valid during done. */
struct grpc_result {
	int status; /* gRPC code, 0 = OK */
	/* the peer's text, or its beginning: for classification only, never logged */
	const char *message;
	/* of status 0: inflated; empty if it is longer than GRPC_CLIENT_ANSWER_MAX */
	struct view response;
	int64_t retry_delay_ms; /* of RetryInfo; -1: none was sent */
	/* surely: no connection ever took the request, so nobody can have acted on it */
	bool unsent;
	/* The reply was refused here, by the gRPC C core or the allowance
	 * (net/grpc/grpc_allowance.h): nobody knows what the peer did with the request. */
	bool reply_too_large;
};

#define GRPC_CLIENT_ANSWER_MAX 16384

struct grpc_client;

/* Can these headers be sent? Names are the operator's and appear in err, values never. */
bool grpc_client_check_headers(const struct pairs *headers, struct error *err);

/* Can a call send this metadata? At most GRPC_METADATA_MAX entries, GRPC_METADATA_BYTES in all. err
 * has indices, never values. [any thread] */
enum { GRPC_METADATA_MAX = 32, GRPC_METADATA_BYTES = 16384 };
bool grpc_client_check_metadata(const struct metadatum *metadata, struct error *err);

struct grpc_client *grpc_client_new(const struct grpc_client_options *options, struct error *err);
/* timeout_ns 0: none. done is called exactly once. */
void grpc_client_call(struct grpc_client *client, const struct grpc_message *message,
		      uint64_t timeout_ns,
		      void (*done)(void *argument, const struct grpc_result *result),
		      void *argument);
/* Reads the TLS files again. If they changed, later calls use a new channel; calls in flight end on
 * the old one. What is broken stays as it was, and err says why. */
bool grpc_client_reload(struct grpc_client *client, bool *changed, struct error *err);
/*
 * Cancels calls in flight and returns when each has had its done and each message has been
 * released. A peer that stopped reading in the middle of a message delays that until its connection
 * is given up: 10 s without progress, or keepalive_timeout. Not from done.
 */
void grpc_client_unref(struct grpc_client **client);

#endif
