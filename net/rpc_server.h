/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_RPC_SERVER_H
#define NET_RPC_SERVER_H

#include "base/bytes.h"
#include "base/log.h"
#include "base/metrics.h"
#include "net/loop.h"
#include "net/tls.h"
#include "profile/request.h"

/*
 * Unary gRPC methods over C core, with the gate before the body: `headers` sees each call before
 * anything of its message is asked for. (The names say rpc because grpc_server_start and its like are
 * C core's.) The facts behind every setting stand in docs/GRPC.md.
 *
 * Threads: `headers`, `message` and `lost` run on the one completion-queue thread (net/grpc_queue.h), which also answers
 * pings and opens windows for every connection: they must not block or decode. rpc_call_read and
 * rpc_call_reply may be called from any thread. Each accepted call gets exactly one rpc_call_reply, also after
 * a cancel, or one `lost`. A call and everything got from it are valid until then.
 */
struct rpc_call;

struct rpc_method {
	const char *path; /* "/package.Service/Method" */
	/* Takes the call: rpc_call_accept, or rpc_call_reply with a refusal. */
	void (*headers)(void *context, struct rpc_call *call);
	/* The whole message is there (still compressed). len is its size on the wire. */
	void (*message)(void *context, struct rpc_call *call, size_t len);
	/* Over the message limit, cancelled, cut or too slow before the message: no reply is wanted any more; the
	 * call is gone on return. too_large tells which. */
	void (*lost)(void *context, struct rpc_call *call, bool too_large);
	void *context;
};

/* Durations of 0 are grpc-go's defaults: no limit; keepalive 2 h and 20 s; pings at least 5 min apart. */
struct rpc_server_options {
	const char *endpoint;   /* "127.0.0.1:4317", "localhost:0", ":4317", "unix:/path" */
	const char *transport;  /* NULL: tcp; tcp4, tcp6, unix (then the endpoint may be a bare path) */
	const struct tls_server_config *tls; /* NULL: plaintext; outlives the server */
	int64_t max_message_bytes;           /* on the wire, compressed */
	/*
	 * A backstop for what core holds of its own, most of all of messages that are still arriving: it looks at a
	 * message's length when it has the whole of it, whatever the length claimed was. Beyond this it ends connections
	 * and calls of its choice, some without a retry hint: choose far more than honest senders need. 0: no bound.
	 */
	int64_t max_core_bytes;
	int64_t max_concurrent_streams;      /* per connection; 0: 100 */
	struct duration max_connection_idle, max_connection_age, max_connection_age_grace;
	struct duration keepalive_time, keepalive_timeout, min_ping_interval;
	struct duration message_timeout; /* from the headers to the whole message; 0: 60 s */
	const struct rpc_method *methods; /* copied; the paths outlive the server */
	size_t method_count;
	const struct log *log;  /* outlives the server */
	struct loop *loop;      /* for reload_interval; NULL: no reload by time */
	struct series *unknown; /* counts calls of methods that it does not have; may be NULL */
};

struct rpc_server;

/* [loop thread, or before it runs] Listens on return. Fails if anybody else listens there. */
struct rpc_server *rpc_server_start(const struct rpc_server_options *options, struct error *err);
/* What the system chose for port 0; 0 for unix sockets. */
int rpc_server_port(const struct rpc_server *server);
/* The health service's answer ("" and each method's service): serving or not. At first: serving. [any] */
void rpc_server_set_serving(struct rpc_server *server, bool serving);
/* Reads the certificate files again; the old certificate stays if the new one is broken (err says so). [loop thread] */
bool rpc_server_reload(struct rpc_server *server, struct error *err);
/*
 * Lets accepted calls finish, then closes the listeners and says GOAWAY, and waits until every client has read that;
 * at the deadline cancels what is left, and waits until each call has been replied to. New calls come until the
 * GOAWAY: `headers` refuses them. [any thread but the queue's] Whoever holds calls must not need this thread to reply;
 * nobody may reload meanwhile.
 */
void rpc_server_stop(struct rpc_server **server, uint64_t grace_ns);

/* [completion-queue thread, from `headers`] */
void rpc_call_accept(struct rpc_call *call);
void rpc_call_set_user(struct rpc_call *call, void *user);
void *rpc_call_user(struct rpc_call *call);
/* Without the port ("127.0.0.1"; "" for unix sockets). First asked for on the completion-queue thread. */
const char *rpc_call_peer(struct rpc_call *call);
/* What the verified client certificate says (net/tls.h), NULL without mTLS. First asked for as above. */
const struct metadatum *rpc_call_auth(struct rpc_call *call);
/* All request metadata but the binary ones (-bin); ends with name == NULL. First asked for as above. */
const struct metadatum *rpc_call_metadata(struct rpc_call *call);
/* Copies the message, as sent, to the end of out, and frees core's buffers. False: does not fit out's maximum. */
bool rpc_call_read(struct rpc_call *call, struct bytes *out);
/* What the compressed flag and grpc-encoding said, as an enum coding: CODING_GZIP, CODING_ZLIB, or
 * CODING_UNKNOWN: core tells nothing of zstd and others, sniff. Before rpc_call_read. */
int rpc_call_coding(struct rpc_call *call);

/*
 * err NULL: OK with `response`, the serialized reply. Otherwise err's kind gives the code (grpc_core_status) and its
 * text the message; ERROR_BUSY carries RetryInfo, with jitter, in grpc-status-details-bin.
 */
void rpc_call_reply(struct rpc_call *call, const struct error *err, struct view response);

#endif
