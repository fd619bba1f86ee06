/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_H2_PRIVATE_H
#define NET_H2_PRIVATE_H

#include "net/h2/server.h"
#include "net/peer_count.h"
#include "net/tls/tls_server.h"

#include <nghttp2/nghttp2.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <uv.h>

/*
 * Inside the server (net/h2/). Every struct belongs to one I/O thread unless a field says
 * otherwise.
 *
 *	h2_server      what all threads share: options, addresses, counts of peers
 *	h2_listener    one listening socket, on the first I/O thread
 *	h2_shard       the server's part on one I/O thread: its connections
 *	h2_connection  a socket, its nghttp2 session, its TLS session, its timer
 */

enum {
	H2_ADDRESSES_MAX = 8,
	H2_STREAM_WINDOW = 65535,
	H2_CONNECTION_WINDOW = 1 << 20,
	/* counted against max_outbound_bytes for each unread response, in addition to its bytes */
	H2_REPLY_COST = 128
};

/* What a connection costs that is idle: the session with its frame buffer and header tables; TLS
 * about as much again. */
enum { H2_CONNECTION_COST = 16384, H2_ASLEEP_COST = 2048, H2_TLS_COST = 32768 };

struct h2_address {
	struct sockaddr_storage at;
	socklen_t len;
	bool only_v6;
};

struct h2_addresses {
	struct h2_address at[H2_ADDRESSES_MAX];
	size_t count;
	bool any_port;         /* port 0: the system chooses one, the same for all */
	const char *unix_path; /* NULL: TCP; points into the endpoint */
};

bool h2_address_resolve(const char *endpoint, const char *transport, struct h2_addresses *out,
			struct error *err);
/* The descriptor of a socket that listens there, or -1 (errno says why too). *port: the port to
 * take instead of the address's (0: that one); on return the one that it has. */
int h2_address_listen(const struct h2_address *address, int *port, struct error *err);
/* The port of a socket, 0 of a unix one. */
int h2_address_port(int fd);
/* "127.0.0.1", "::1", "" for unix sockets; mapped IPv4 addresses are written as such. */
void h2_address_host(const struct sockaddr_storage *from, char *out, size_t room);

struct h2_listener {
	struct h2_server *server;
	int fd;
	char *address; /* by which the socket is shared */
	uv_poll_t poll;
	bool paused; /* no descriptor is free */
};

enum { H2_ALWAYS = 8 }; /* connections that a peer may have however short memory is */
/* A reply is on its way for so long, perhaps: a connection that is closed at once would lose it. */
#define H2_JUST_ANSWERED_NS UINT64_C(100000000)
enum { H2_IDLE_TO_CLOSE = 8 }; /* for a new connection, where memory is short */

struct h2_listeners {
	struct h2_listener at[H2_ADDRESSES_MAX];
	size_t count;
	uv_timer_t retry; /* runs while a socket is paused or somebody waits */
	struct arrival *waiting, **last_waiting; /* accepted, for want of memory */
	int waiting_count;
	bool open;
	int handles; /* that are not closed yet */
};

/* [the thread that starts the server] */
bool h2_listeners_open(struct h2_server *server, struct error *err);
void h2_listeners_start(void *server); /* [first I/O thread] */
void h2_listeners_close(void *server); /* [first I/O thread] */

enum h2_ending {
	H2_OPEN,
	H2_NOTICED, /* the shutdown notice and a ping are sent; new streams still come */
	H2_LEAVING, /* the last GOAWAY is sent; streams end */
	/* all streams have ended; the client's answer to a ping says that it has read all */
	H2_ASKED,
	H2_SHUT,  /* our side of the socket is shut; what the client still sends is dropped */
	H2_CLOSED /* the handles are being closed */
};

struct h2_connection {
	struct h2_connection *prev, *next; /* in the shard */
	/* in the shard's list of idle ones, the oldest first */
	struct h2_connection *idle_prev, *idle_next;
	struct h2_shard *shard;
	struct h2_peer *peer;
	struct hash128 key; /* of the peer */
	int fd;
	uv_poll_t poll;
	uv_timer_t timer;
	int handles;              /* that are not closed yet */
	nghttp2_session *session; /* NULL: asleep (sleep.c) */
	/* what the client has sent before its first call, to wake up with */
	struct bytes history;
	struct tls_session *tls;
	struct bytes pending; /* whole frames (or TLS records) that the socket has not taken */
	size_t pending_taken;
	struct h2_stream *streams;
	int stream_count;
	size_t unread;          /* bytes of responses that wait for a window */
	int unread_replies;     /* responses that have ended and are not sent yet */
	int64_t unread_charged; /* to the memory budget */
	enum h2_ending ending;
	enum h2_reason fault; /* why it is to be closed at once */
	enum h2_reason why;   /* what its GOAWAY says */
	bool settled;         /* the client's SETTINGS have come */
	bool broken;          /* nghttp2 has said GOAWAY: the client broke the protocol */
	bool left;            /* the client has said GOAWAY */
	bool owner_listed;    /* in the peer's auth */
	bool idle, in_turn, asleep, wakeful, replaying, owes_goaway, owes_ping, noticed_twice,
		ending_pinged, hung_up;
	int events; /* what the poll handle watches */
	struct h2_bucket resets, settings, control, errors;
	int continuations, ping_strikes;
	int32_t last_stream; /* that the client has opened */
	/* clock_now, 0: not now */
	uint64_t opened_at, read_at, idle_since, header_since, stalled_since, ping_at, last_ping_at,
		ages_at, ends_at, wakes_at;
};

/* Takes the descriptor. */
void h2_connection_open(struct h2_shard *shard, int fd, const char *address, struct hash128 key);
/* What a connection of the server holds of the budget; less while it is asleep. */
int64_t h2_connection_cost(const struct h2_server *server);
/* Sends what the session has to send, and closes it when it is done. */
void h2_connection_flush(struct h2_connection *c);
/* Flushes at the end of this turn, or now if there is none. */
void h2_connection_touch(struct h2_connection *c);
void h2_connection_close(struct h2_connection *c, enum h2_reason reason);
/* At once, without waiting for streams or the client. */
void h2_connection_abort(struct h2_connection *c);
/* For the client's answer to the ping of a graceful end. */
#define H2_ENDING_NS (5 * UINT64_C(1000000000))
/* Begins a graceful end: GOAWAY in two steps, or at once where `last`; closed at the latest at
 * `deadline` (0: never). */
void h2_connection_end(struct h2_connection *c, enum h2_reason reason, bool last,
		       uint64_t deadline);
/* Its shard retires: a graceful end, by the shard's deadline, as soon as the client has spoken. */
void h2_connection_retire(struct h2_connection *c);
/* The client has answered a ping of ours. */
void h2_connection_answered(struct h2_connection *c, const uint8_t opaque[8]);
void h2_connection_stream_opened(struct h2_connection *c);
void h2_connection_stream_closed(struct h2_connection *c);
void h2_connection_wake_by(struct h2_connection *c, uint64_t when);
/* deadlines.c: sets the timer by the connection's deadlines, and its streams'. */
void h2_connection_watch(struct h2_connection *c);

/* unread.c: charges what the client does not read, with the streams that it keeps open, and sets
 * c->fault where that passes a bound or memory is short. */
void h2_connection_judge_unread(struct h2_connection *c);
void h2_connection_release_unread(struct h2_connection *c);

/*
 * sleep.c: most connections that cost nothing but memory have never made a call. Theirs is given
 * back: the session is deleted, and made again of the few bytes that the client has sent so far
 * when it sends more.
 */
void h2_connection_remember(struct h2_connection *c, struct view data);
void h2_connection_fall_asleep(struct h2_connection *c); /* where it can */
bool h2_connection_wake(struct h2_connection *c);        /* false: the connection must be closed */

/* session.c: the callbacks. */
bool h2_session_open(struct h2_connection *c);
nghttp2_session_callbacks *h2_session_callbacks(void);
nghttp2_option *h2_session_options(const struct h2_limits *limits);
/* False: the connection must be closed (c->fault says why). */
/* a TLS record with next to nothing in it, which counts as a frame */
bool h2_session_judge_record(struct h2_connection *c);
bool h2_session_receive(struct h2_connection *c, struct view data);

/* stream.c */
struct h2_stream *h2_stream_new(struct h2_connection *c, int32_t id);
void h2_stream_add_header(struct h2_stream *stream, struct view name, struct view value);
void h2_stream_headers_done(struct h2_stream *stream);
void h2_stream_end(struct h2_stream *stream);
void h2_stream_close(struct h2_stream *stream);
void h2_peer_unref(struct h2_peer *peer);

struct h2_shard {
	struct h2_server *server;
	struct io_thread *thread;
	struct h2_connection *connections;
	struct h2_connection *idle_first, *idle_last;
	_Atomic int count; /* read by the thread that accepts */
	uint64_t turn;     /* of the I/O thread, to which turn_bytes belong */
	size_t turn_bytes; /* of bodies that it has read */
	bool draining, retiring;
	uint64_t drain_deadline;
	struct io_post close_idle;
	_Atomic bool asked; /* to close idle connections */
};

/* Closes some of the connections that have been idle for longest, and at least for so long, but of
 * no peer that has `keep` or less (0: of any), among the first few dozen; false: there was none. */
bool h2_shard_close_idle(struct h2_shard *shard, int count, uint64_t idle_ns, uint32_t keep);
void h2_shard_ask_to_close_idle(struct h2_shard *shard); /* [any] */

struct h2_server {
	struct h2_options options;
	struct h2_route *routes;
	size_t stream_size; /* of the largest service */
	struct h2_addresses addresses;
	int port;
	struct tls_server *tls; /* NULL: cleartext */
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *session_options;
	struct h2_counters counters;
	struct h2_listeners listeners;
	struct h2_shard *shards;
	uint32_t shard_count;
	struct peer_count *peers;
	struct loop_timer *reload_timer; /* [main loop thread] */
	_Atomic int64_t connections;
	pthread_mutex_t lock; /* guards what follows, for h2_server_drain */
	pthread_cond_t changed;
	int open; /* connections and listeners that are not closed */
};

/* A connection or the listeners are gone. [any] */
void h2_server_left(struct h2_server *server);
void h2_server_entered(struct h2_server *server);

#endif
