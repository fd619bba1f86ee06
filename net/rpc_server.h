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
 * anything of its message is asked for. Facts and measurements behind every setting: gRPC C core 1.51,
 * see docs/ARCHITECTURE.md, "gRPC".
 *
 * Threads: `headers` and `message` run on the server's one completion-queue thread and must not block or
 * decode. rpc_call_read and rpc_call_reply may be called from any thread. Each accepted call gets exactly
 * one rpc_call_reply, also after a cancel. A call and everything got from it are valid until its reply.
 */
struct rpc_call;

struct rpc_method {
	const char *path; /* "/package.Service/Method" */
	/* Takes the call: rpc_call_accept, or rpc_call_reply with a refusal. */
	void (*headers)(void *context, struct rpc_call *call);
	/* The whole message is there (still compressed). len is its size on the wire. */
	void (*message)(void *context, struct rpc_call *call, size_t len);
	/* Over the message limit, cancelled or cut before the message: no reply is wanted any more; the call is
	 * gone on return. too_large tells which. */
	void (*lost)(void *context, struct rpc_call *call, bool too_large);
	void *context;
};

struct rpc_server_options {
	const char *endpoint;       /* "127.0.0.1:4317", "unix:/path" */
	const struct tls_server_config *tls; /* NULL: plaintext */
	int64_t max_message_bytes;  /* on the wire, compressed */
	int64_t max_concurrent_streams; /* 0: 100 */
	struct duration max_connection_idle, max_connection_age, max_connection_age_grace;
	struct duration keepalive_time, keepalive_timeout, min_ping_interval;
	bool permit_without_stream;
	const struct rpc_method *methods;
	size_t method_count;
	struct log *log;
	struct metrics *metrics;
	struct loop *loop;
};

struct rpc_server;

struct rpc_server *rpc_server_start(const struct rpc_server_options *options, struct error *err);
/* The health service's answer ("" and each method's service): serving or not. [any] */
void rpc_server_set_serving(struct rpc_server *server, bool serving);
/* Reads the certificate files again; the old certificate stays if the new one is broken (err says so). */
bool rpc_server_reload(struct rpc_server *server, struct error *err);
/* Refuses new connections, lets calls finish until the deadline, then cancels them; joins its threads. */
void rpc_server_stop(struct rpc_server **server, uint64_t grace_ns);

void rpc_call_accept(struct rpc_call *call);
void rpc_call_set_user(struct rpc_call *call, void *user);
void *rpc_call_user(struct rpc_call *call);
/* Without the port ("127.0.0.1"; "" for unix sockets). */
const char *rpc_call_peer(struct rpc_call *call);
/* Subject of the verified client certificate, NULL without mTLS. */
const char *rpc_call_identity(struct rpc_call *call);
/* All request metadata; ends with name == NULL. */
const struct metadatum *rpc_call_metadata(struct rpc_call *call);
/* Copies the message, as sent, to the end of out, and frees core's buffers. False: does not fit out's maximum. */
bool rpc_call_read(struct rpc_call *call, struct bytes *out);
/* Did the peer set the compressed flag, and does core know with what? (CODING_UNKNOWN: sniff.) */
int rpc_call_coding(struct rpc_call *call);

/* status 0: `response` is the serialized reply. Otherwise err's kind gives the code (see grpc_core_status) and its
 * text the message; ERROR_BUSY carries RetryInfo in grpc-status-details-bin. */
void rpc_call_reply(struct rpc_call *call, const struct error *err, struct view response);

#endif
