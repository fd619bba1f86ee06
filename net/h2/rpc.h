/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_H2_RPC_H
#define NET_H2_RPC_H

#include "base/size_limit.h"
#include "net/authenticator.h"
#include "net/h2/server.h"

/*
 * Unary gRPC methods on the HTTP/2 server (gRPC over HTTP/2: grpc/doc/PROTOCOL-HTTP2.md), with
 * admission before the body: `headers` sees each call before any of its message is read, and `grow`
 * is asked before more of it may arrive.
 *
 * Threads: `headers`, `grow`, `message` and `lost` run on the connection's I/O thread and must not
 * block. rpc_call_reply may be called from any thread, also from within `headers` and `message`.
 * Each accepted call gets exactly one rpc_call_reply after `message`, even if the client has
 * disconnected, or one `lost` before `message`. Pointers obtained from a call are valid until then.
 */
struct rpc_call;

enum rpc_loss {
	RPC_TOO_LARGE, /* over the message limit */
	RPC_CANCELLED, /* by the client, its deadline, or the end of the connection */
	RPC_LATE,      /* the message took too long */
	RPC_INVALID,   /* no complete message, or no message of gRPC */
	RPC_REFUSED    /* `grow` failed, or refused until the call's waiting time was over */
};

struct rpc_method {
	const char *path; /* "/package.Service/Method" */
	/* Takes the call: rpc_call_accept, or rpc_call_reply with a refusal. */
	void (*headers)(void *context, struct rpc_call *call);
	/*
	 * The call is about to hold `bytes` of its message. False with ERROR_BUSY: not now; the
	 * client is paused, and `grow` is asked again for up to two seconds. Any other error ends
	 * the call. NULL: always granted.
	 */
	bool (*grow)(void *context, struct rpc_call *call, size_t bytes, struct error *err);
	/* The whole message is there, as it was sent. */
	void (*message)(void *context, struct rpc_call *call);
	/* No message will arrive and no reply must be sent. The call is invalid after return. */
	void (*lost)(void *context, struct rpc_call *call, enum rpc_loss why);
	void *context;
	bool open; /* needs no authentication */
	/* The reason why each call fails with UNIMPLEMENTED, as for an unknown method; nothing else
	 * is called then. NULL: supported. */
	const char *unsupported;
};

struct rpc_server_options {
	struct h2_options h2;             /* its routes come before gRPC's, which has any path */
	struct size_limit message_limit;  /* on the wire, compressed */
	struct duration message_timeout;  /* from the headers to the whole message; 0: 60 s */
	const struct rpc_method *methods; /* copied; the paths outlive the server */
	size_t method_count;
	/* Count calls of unknown and unsupported methods, calls that are not authenticated, and
	 * those with too many or too large headers; may be NULL. */
	struct metric_series *unknown, *unauthenticated, *headers;
	/* NULL: none. Not asked for the health service. The server takes its own reference. */
	struct authenticator *authenticator;
};

struct rpc_server;

/* As h2_server_start; the health service (grpc.health.v1) comes with it. */
struct rpc_server *rpc_server_start(const struct rpc_server_options *options, struct error *err);
int rpc_server_port(const struct rpc_server *server);
/* The health service's answer ("" and each method's service): serving or not. At first: serving.
 * [any] */
void rpc_server_set_serving(struct rpc_server *server, bool serving);
bool rpc_server_reopen(struct rpc_server *server, struct error *err); /* as h2_server_reopen */
/*
 * Lets accepted calls finish, then sends GOAWAY, and waits until every client has read it. At the
 * deadline it closes the remaining connections and waits until each call has been replied to. New
 * calls arrive until the GOAWAY; `headers` must refuse them. [any thread but an I/O thread] The
 * holders of calls must not need this thread to reply. No reopen may run meanwhile.
 */
void rpc_server_stop(struct rpc_server **server, uint64_t grace_ns);

/* The same for a server whose place another one takes at the same address, which must have started:
 * calls that clients make before they know are served as before. */
void rpc_server_retire(struct rpc_server **server, uint64_t grace_ns);

/* [from `headers`] */
void rpc_call_accept(struct rpc_call *call);
void rpc_call_set_user(struct rpc_call *call, void *user);
void *rpc_call_user(struct rpc_call *call);
/* Without the port ("127.0.0.1"; "" for unix sockets). */
const char *rpc_call_peer(const struct rpc_call *call);
/* What is known of the sender: the identity that the authenticator found, then the names of the
 * verified client certificate (net/tls/tls.h). NULL: nothing. */
const struct metadatum *rpc_call_auth(const struct rpc_call *call);
/*
 * The request metadata, made when first asked for on the I/O thread; ends with name == NULL. Of the
 * pseudo-headers it has :authority, also as `host`; none that gRPC reserves. Binary ones (-bin) are
 * decoded, and left out if they are not UTF-8 text.
 */
const struct metadatum *rpc_call_metadata(struct rpc_call *call);
/* The message as sent, with BYTES_SLACK behind it; the caller may take it away, or change it. */
struct bytes *rpc_call_body(struct rpc_call *call);
/* What the compressed flag and grpc-encoding said, an enum coding (net/compress.h); CODING_UNKNOWN:
 * compressed by what we do not know. */
int rpc_call_coding(const struct rpc_call *call);
/* The I/O thread that its callbacks run on. */
struct io_thread *rpc_call_thread(const struct rpc_call *call);
/* What its headers take. */
size_t rpc_call_header_bytes(const struct rpc_call *call);

/*
 * err NULL: OK with `response`, the serialized reply. Otherwise err's kind gives the code
 * (rpc_status.h) and its text the message; ERROR_BUSY carries RetryInfo, with jitter, in
 * grpc-status-details-bin.
 */
void rpc_call_reply(struct rpc_call *call, const struct error *err, struct view response);

#endif
