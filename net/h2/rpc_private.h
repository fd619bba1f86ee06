/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_H2_RPC_PRIVATE_H
#define NET_H2_RPC_PRIVATE_H

#include "net/h2/rpc.h"
#include "net/h2/rpc_status.h"

#include <pthread.h>
#include <stdatomic.h>

/* Internal to the gRPC service (net/h2/rpc*.c). A call belongs to its I/O thread until it is handed
 * over with its message. */

struct rpc_thread {                   /* the server's part on one I/O thread */
	struct bytes spare;           /* the body of a completed call, reused for the next one */
	struct rpc_watcher *watchers; /* of the health service */
	/* bytes of messages that have arrived beyond what was granted */
	size_t owed;
};

struct rpc_server {
	struct rpc_server_options options;
	struct authenticator *authenticator; /* NULL: none */
	struct h2_server *h2;
	struct rpc_method *methods; /* those of the options and of the health service */
	size_t method_count;
	char *unknown; /* the message for calls of other methods */
	uint64_t message_timeout;
	struct rpc_thread *threads; /* by I/O thread */
	_Atomic int watchers;       /* of the health service, on all threads */
	_Atomic bool serving, stopping;
	_Atomic size_t accepted; /* calls that a stop waits for */
	pthread_mutex_t mutex;   /* for the stop, with changed */
	pthread_cond_t changed;  /* `accepted` became 0 */
};

struct rpc_call {
	struct h2_stream stream; /* first */
	struct rpc_server *server;
	const struct rpc_method *method; /* NULL: unknown */
	uint8_t prefix[5];               /* of the message: flag and length */
	uint8_t prefix_len;
	bool accepted, complete, handed_over, over, begun, busy;
	size_t length;  /* of the message, once the prefix has arrived */
	size_t granted; /* bytes of it that `grow` has granted */
	size_t owed;    /* bytes of it that have arrived but are not granted */
	struct bytes body;
	/* clock_now; 0: not set */
	uint64_t accepted_at, message_by, rate_at, busy_until, client_by;
	struct error busy_error;
	void *user;
	struct fields fields;   /* of metadata, when asked for */
	struct fields identity; /* found by the authenticator */
	/* For streaming methods. ended: the stream has ended. drained: all messages have been
	 * written to the connection, and rpc_call_push may send another one. May be NULL. */
	void (*ended)(struct rpc_call *call);
	void (*drained)(struct rpc_call *call);
	/* A reply from another thread. */
	struct io_post post;
	int status;
	int64_t retry_ms;
	bool has_response;
	struct bytes response;
	char text[sizeof((struct error *)0)->text];
};

static inline struct rpc_call *rpc_call_of(struct h2_stream *stream)
{
	return (struct rpc_call *)stream;
}

/* Replies with any status, from any thread. retry_ms < 0: no RetryInfo; response NULL: no
 * message. */
void rpc_call_finish(struct rpc_call *call, int status, const char *text, int64_t retry_ms,
		     const struct view *response);
/* Sends a message of a stream; rpc_call_finish may send the last one. [I/O thread] */
void rpc_call_push(struct rpc_call *call, struct view message);

/* Writes the end of a call: trailers, and the message before them if there is one. [I/O thread] */
void rpc_reply_write(struct rpc_call *call, int status, const char *text, int64_t retry_ms,
		     const struct view *response);

/* The service of the HTTP/2 server that handles calls. Its route's context is the struct
 * rpc_server. */
extern const struct h2_service rpc_service;

/* An accepted call has ended. */
void rpc_server_call_done(struct rpc_server *server);

enum { RPC_HEALTH_METHODS = 2 };
void rpc_health_methods(struct rpc_server *server, struct rpc_method *out);
/* Reports changes to the watchers of one I/O thread, and ends them if the server stops. [that
 * thread] */
void rpc_health_report(void *server, uint32_t index);

#endif
