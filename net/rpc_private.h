/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_RPC_PRIVATE_H
#define NET_RPC_PRIVATE_H

#include "net/grpc_queue.h"
#include "net/rpc_server.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <pthread.h>
#include <stdatomic.h>

/*
 * Inside the server (rpc_*.c). Every struct below belongs to the queue's thread (net/grpc_queue.h) unless a field says
 * otherwise.
 *
 *	rpc_server    the listeners, and a tick that looks after them
 *	rpc_listener  one server of core on the port. A second one takes over when core's accept has died (EMFILE);
 *	              the first drains meanwhile.
 *	rpc_call      a slot that waits for a call, then the call. Freed when its last tag has come back.
 *	rpc_tls       the published certificate, which every handshake looks at
 */

enum { RPC_ADDRESSES_MAX = 8 };

struct rpc_addresses { /* as core wants them: "127.0.0.1:4317", "[::1]:4317", "unix:/path" */
	char at[RPC_ADDRESSES_MAX][128];
	size_t count;
	bool any_port; /* port 0: choose one */
};

bool rpc_address_resolve(const char *endpoint, const char *transport, struct rpc_addresses *out,
			 struct error *err);
/* Core listens with SO_REUSEPORT, which lets a second instance steal half of the connections: looks first. */
bool rpc_address_probe(const struct rpc_addresses *addresses, struct error *err);

struct rpc_tls {
	const struct tls_server_config *config;
	pthread_mutex_t mutex; /* guards the rest: handshakes run on core's threads */
	struct tls_material material;
	uint64_t generation;   /* counts the publications */
};

bool rpc_tls_init(struct rpc_tls *tls, const struct tls_server_config *config, struct error *err);
void rpc_tls_fini(struct rpc_tls *tls);
/* Publishes what the files hold now, if it is sound. *changed tells whether it differs. */
bool rpc_tls_reload(struct rpc_tls *tls, bool *changed, struct error *err);

struct rpc_tls_view { /* what one listener has seen of it */
	struct rpc_tls *tls;
	uint64_t seen;
};
/* Plaintext if tls is NULL. The view outlives the listener. */
grpc_server_credentials *rpc_tls_credentials(struct rpc_tls_view *view);

struct rpc_listener {
	struct rpc_server *server;
	struct rpc_listener *next;
	grpc_server *core;
	void **registered;     /* core's handle of each of the server's methods */
	struct rpc_tls_view view;
	struct grpc_tag drained;
	_Atomic size_t calls;  /* slots and calls */
	_Atomic bool draining; /* written holding server->mutex */
	bool core_done;
};

/* Adds a listener to the server's, in front. On failure one may be there that drains. [any thread, holding
 * server->mutex] */
bool rpc_listener_open(struct rpc_server *server, struct error *err);
/* Refuses new connections and says GOAWAY; the listener goes when its last call has. [holding server->mutex] */
void rpc_listener_drain(struct rpc_listener *listener);
void rpc_listener_call_gone(struct rpc_listener *listener);

struct rpc_server {
	struct rpc_server_options options;
	struct rpc_addresses addresses;
	int port;
	struct rpc_method *methods; /* the options' and health */
	size_t method_count;
	struct rpc_tls tls;
	struct loop_timer *reload_timer; /* [loop thread] */
	grpc_completion_queue *queue;
	struct grpc_tick tick;
	uint64_t message_timeout;
	struct rpc_call *oldest, *newest; /* calls that wait for their message, by age */
	struct rpc_watcher *watchers;     /* of the health service */
	uint64_t failures_seen;  /* of grpc_core_accept_failures */
	bool accept_is_dead;
	_Atomic bool serving, stopping;
	_Atomic size_t accepted; /* calls that a stop waits for */
	pthread_mutex_t mutex;   /* guards what follows: start and stop run on another thread */
	pthread_cond_t changed;  /* no call is accepted any more, or no listener left */
	struct rpc_listener *listeners; /* newest first */
};

struct rpc_call {
	struct rpc_listener *listener;
	const struct rpc_method *method; /* NULL: none that we know */
	grpc_call *core;
	grpc_metadata_array headers;
	grpc_call_details details; /* of unknown methods; core wants a place */
	gpr_timespec deadline;
	grpc_byte_buffer *payload;
	int cancelled;
	struct grpc_tag arrived, message, closed, sent, pushed;
	int pending;              /* tags that have not come back; the reply's counts from the start */
	struct rpc_call *older, *newer;
	bool waiting;             /* is in the server's list */
	bool begun, pushing;      /* of a stream: something was sent; and has not come back */
	bool over;                /* cancelled, or ended by both */
	void (*ended)(struct rpc_call *call); /* hears of that, if set */
	uint64_t accepted_at;
	_Atomic bool replied;     /* hands the call over from the replying thread */
	void *user;
	char *peer;               /* made when first asked for, as are auth and metadata */
	struct fields auth;
	struct metadatum *metadata;
	grpc_slice status_text;
	grpc_metadata trailer;
	bool has_trailer;
};

/* An accepted call has ended. */
void rpc_server_call_done(struct rpc_server *server);

/* Puts up `count` slots for the method (by index; method_count: whatever is unknown). */
void rpc_call_await(struct rpc_listener *listener, size_t method, size_t count);
/* Ends calls whose message has not come within the time. */
void rpc_call_expire(struct rpc_server *server, uint64_t now);
/* The reply with any status; retry_ms < 0: no RetryInfo. [any thread] */
void rpc_call_finish(struct rpc_call *call, int status, const char *text, int64_t retry_ms,
		     const struct view *response);

/* A stream's next message, when none is on its way; rpc_call_finish may send the last one. [queue's thread] */
void rpc_call_push(struct rpc_call *call, const struct view *message);

enum { RPC_HEALTH_METHODS = 2 };
void rpc_health_methods(struct rpc_server *server, struct rpc_method *out);
/* Tells watchers what has changed, and ends those whose listener does. [queue's thread, from time to time] */
void rpc_health_tick(struct rpc_server *server);

#endif
