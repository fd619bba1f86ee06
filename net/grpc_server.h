/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_GRPC_SERVER_H
#define NET_GRPC_SERVER_H

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
 * decode. grpc_call_read and grpc_call_reply may be called from any thread. Each accepted call gets exactly
 * one grpc_call_reply, also after a cancel. A call and everything got from it are valid until its reply.
 */
struct grpc_call;

struct grpc_method {
	const char *path; /* "/package.Service/Method" */
	/* Takes the call: grpc_call_accept, or grpc_call_reply with a refusal. */
	void (*headers)(void *context, struct grpc_call *call);
	/* The whole message is there (still compressed). len is its size on the wire. */
	void (*message)(void *context, struct grpc_call *call, size_t len);
	/* Over the message limit, cancelled or cut before the message: no reply is wanted any more; the call is
	 * gone on return. too_large tells which. */
	void (*lost)(void *context, struct grpc_call *call, bool too_large);
	void *context;
};

struct grpc_server_options {
	const char *endpoint;       /* "127.0.0.1:4317", "unix:/path" */
	const struct tls_server_config *tls; /* NULL: plaintext */
	int64_t max_message_bytes;  /* on the wire, compressed */
	int64_t max_concurrent_streams; /* 0: 100 */
	struct duration max_connection_idle, max_connection_age, max_connection_age_grace;
	struct duration keepalive_time, keepalive_timeout, min_ping_interval;
	bool permit_without_stream;
	const struct grpc_method *methods;
	size_t method_count;
	struct log *log;
	struct metrics *metrics;
	struct loop *loop;
};

struct grpc_server;

struct grpc_server *grpc_server_start(const struct grpc_server_options *options, struct error *err);
/* The health service's answer ("" and each method's service): serving or not. [any] */
void grpc_server_set_serving(struct grpc_server *server, bool serving);
/* Reads the certificate files again; the old certificate stays if the new one is broken (err says so). */
bool grpc_server_reload(struct grpc_server *server, struct error *err);
/* Refuses new connections, lets calls finish until the deadline, then cancels them; joins its threads. */
void grpc_server_stop(struct grpc_server **server, uint64_t grace_ns);

void grpc_call_accept(struct grpc_call *call);
void grpc_call_set_user(struct grpc_call *call, void *user);
void *grpc_call_user(struct grpc_call *call);
/* Without the port ("127.0.0.1"; "" for unix sockets). */
const char *grpc_call_peer(struct grpc_call *call);
/* Subject of the verified client certificate, NULL without mTLS. */
const char *grpc_call_identity(struct grpc_call *call);
/* All request metadata; ends with name == NULL. */
const struct metadatum *grpc_call_metadata(struct grpc_call *call);
/* Copies the message, as sent, to the end of out, and frees core's buffers. False: does not fit out's maximum. */
bool grpc_call_read(struct grpc_call *call, struct bytes *out);
/* Did the peer set the compressed flag, and does core know with what? (CODING_UNKNOWN: sniff.) */
int grpc_call_coding(struct grpc_call *call);

/* status 0: `response` is the serialized reply. Otherwise err's kind gives the code (see grpc_status_of) and its
 * text the message; ERROR_BUSY carries RetryInfo in grpc-status-details-bin. */
void grpc_call_reply(struct grpc_call *call, const struct error *err, struct view response);

#endif
