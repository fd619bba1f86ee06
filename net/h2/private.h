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
 * Internal to the server (net/h2/). Every struct belongs to one I/O thread unless a field states
 * otherwise.
 *
 *   h2_server      what all threads share: options, addresses, counts of peers
 *   h2_listener    one listening socket, on the first I/O thread
 *   h2_shard       the server's part on one I/O thread: its connections
 *   h2_connection  a socket, its nghttp2 session, its TLS session, its timer
 *
 * A turn is one round of an I/O thread's event loop: all connections that are found ready at the
 * same time.
 */

enum {
	H2_ADDRESSES_MAX = 8,
	H2_STREAM_WINDOW = 65535,
	H2_CONNECTION_WINDOW = 1 << 20,
	/* counted against max_outbound_bytes for each unread response, in addition to its bytes */
	H2_REPLY_COST = 128
};

/* Bytes that an idle connection costs: the session with its frame buffer and header tables; TLS
 * about as much again. ASLEEP: without a session (sleep.c). */
enum {
	H2_CONNECTION_COST = 16384,
	H2_ASLEEP_COST = 2048,
	H2_WAKE_COST = H2_CONNECTION_COST - H2_ASLEEP_COST,
	H2_TLS_COST = 32768
};

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

/* Can it be the address of a listener? Resolves no name. The error begins with the key. */
bool h2_address_check(const char *endpoint, const char *transport, struct error *err);
bool h2_address_resolve(const char *endpoint, const char *transport, struct h2_addresses *out,
			struct error *err);
/* The descriptor of a socket that listens at the address, or -1 (errno is set as well). *port: the
 * port to use instead of the address's (0: the address's); on return, the port of the socket. */
int h2_address_listen(const struct h2_address *address, int *port, struct error *err);
/* The port of a socket; 0 for a unix socket. */
int h2_address_port(int fd);
/* "127.0.0.1", "::1"; "" for unix sockets. Mapped IPv4 addresses are written as IPv4. */
void h2_address_host(const struct sockaddr_storage *from, char *out, size_t room);

struct h2_listener {
	struct h2_server *server;
	int fd;
	char *address; /* the key by which the socket is shared (net/sockets.h) */
	uv_poll_t poll;
	bool paused; /* no descriptor is free */
};

enum { H2_ALWAYS = 8 }; /* connections that a peer may have even if memory is short */
/* For this long after a reply, the reply may still be in transit: closing the connection
 * immediately would lose it. */
#define H2_JUST_ANSWERED_NS UINT64_C(100000000)
enum { H2_IDLE_TO_CLOSE = 8 }; /* idle connections to close for a new one, if memory is short */

struct h2_listeners {
	struct h2_listener at[H2_ADDRESSES_MAX];
	size_t count;
	uv_timer_t retry; /* runs while a socket is paused or a connection waits */
	struct arrival *waiting, **last_waiting; /* accepted sockets that wait for memory */
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
	/* the shutdown notice (a first GOAWAY) and a ping are sent; new streams are still
	 * accepted */
	H2_NOTICED,
	H2_LEAVING, /* the last GOAWAY is sent; streams are completed */
	/* all streams have ended, and a last ping is sent; its answer means that the client has
	 * read everything */
	H2_ASKED,
	/* our side of the socket is shut down; what the client still sends is discarded */
	H2_SHUT,
	H2_CLOSED /* the handles are being closed */
};

struct h2_connection {
	struct h2_connection *prev, *next; /* in the shard */
	/* in the shard's list of idle connections, oldest first */
	struct h2_connection *idle_prev, *idle_next;
	struct h2_shard *shard;
	struct h2_peer *peer;
	struct hash128 key; /* of the peer */
	int fd;
	uv_poll_t poll;
	uv_timer_t timer;
	int handles;              /* that are not closed yet */
	nghttp2_session *session; /* NULL: asleep (sleep.c) */
	/* what the client has sent before its first call, to restore the session */
	struct bytes history;
	struct tls_session *tls;
	/* whole frames (or TLS records) that the socket has not accepted yet */
	struct bytes pending;
	size_t pending_taken;
	struct h2_stream *streams;
	int stream_count;
	size_t unread;          /* bytes of responses that wait for a window */
	int unread_replies;     /* responses that are complete but not sent yet */
	int64_t unread_charged; /* to the memory budget */
	enum h2_ending ending;
	enum h2_reason fault; /* the reason why it must be closed immediately */
	enum h2_reason why;   /* the reason in its GOAWAY */
	uint32_t drowsy_keep; /* connections of peers that are spared while it is to wake */
	bool settled;         /* the client's SETTINGS have arrived */
	bool broken;          /* nghttp2 has sent GOAWAY: the client violated the protocol */
	bool left;            /* the client has sent GOAWAY */
	bool spoken;          /* the client speaks HTTP/2: nothing is sent before */
	bool foreign;         /* the client does not: its first bytes are in `history` */
	bool owner_listed;    /* the owner of a client certificate was added to the peer's auth */
	bool idle, in_turn, asleep, wakeful, replaying, owes_goaway, owes_ping, noticed_twice,
		ending_pinged, hung_up;
	int events; /* the events that the poll handle watches */
	struct h2_bucket resets, settings, control, errors;
	int continuations, ping_strikes;
	int32_t last_stream; /* opened by the client */
	/* clock_now; 0: not set */
	uint64_t opened_at, read_at, idle_since, header_since, stalled_since, ping_at, last_ping_at,
		ages_at, ends_at, wakes_at, drowsy_since, retry_at;
};

/* Takes ownership of the descriptor. */
void h2_connection_open(struct h2_shard *shard, int fd, const char *address, struct hash128 key);
/* Sends the session's output, and closes the connection when it is done. */
void h2_connection_flush(struct h2_connection *c);
/* Sends something that is not from the session. */
void h2_connection_put(struct h2_connection *c, struct view data);
/* Flushes at the end of this turn, or immediately if no turn is running. */
void h2_connection_touch(struct h2_connection *c);
void h2_connection_close(struct h2_connection *c, enum h2_reason reason);
/* Closes it immediately, without waiting for streams or the client. */
void h2_connection_abort(struct h2_connection *c);
/* The time for the client's answer to the last ping of a graceful end. */
#define H2_ENDING_NS (5 * UINT64_C(1000000000))
/* Begins a graceful end: GOAWAY in two steps, or in one if `last`. The connection is closed at
 * `deadline` at the latest (0: no deadline). */
void h2_connection_end(struct h2_connection *c, enum h2_reason reason, bool last,
		       uint64_t deadline);
/* Its shard retires: begins a graceful end, limited by the shard's deadline, once the client's
 * SETTINGS have arrived. */
void h2_connection_retire(struct h2_connection *c);
/* The client has answered one of our pings. */
void h2_connection_answered(struct h2_connection *c, const uint8_t opaque[8]);
void h2_connection_stream_opened(struct h2_connection *c);
void h2_connection_stream_closed(struct h2_connection *c);
void h2_connection_wake_by(struct h2_connection *c, uint64_t when);
/* deadlines.c: sets the timer to the earliest deadline of the connection and its streams. */
void h2_connection_watch(struct h2_connection *c);

/* unread.c: charges the output that the client does not read, with the streams that this keeps
 * open. Sets c->fault if a limit is exceeded or memory is short. */
void h2_connection_judge_unread(struct h2_connection *c);
void h2_connection_release_unread(struct h2_connection *c);

/* sleep.c: most connections that only cost memory have never made a call. Their session is
 * deleted. When the client sends more, a new session is created from the few bytes that it has
 * sent so far. */
void h2_connection_remember(struct h2_connection *c, struct view data);
void h2_connection_fall_asleep(struct h2_connection *c); /* if it can */
/* The client has sent something. True: it may be read. False: the session sleeps, and there is no
 * memory to wake it. Idle connections are then closed, oldest first, on other threads a little
 * later; retry_at is set. */
bool h2_connection_may_wake(struct h2_connection *c);
bool h2_connection_wake(struct h2_connection *c); /* false: the connection must be closed */

/* session.c: the callbacks. */
bool h2_session_open(struct h2_connection *c);
nghttp2_session_callbacks *h2_session_callbacks(void);
nghttp2_option *h2_session_options(const struct h2_limits *limits);
/* the number of streams that a connection may have at a time */
int h2_session_max_streams(const struct h2_options *options);
/* Counts a TLS record that contains next to nothing as a frame. False, as below: the connection
 * must be closed; c->fault is the reason. */
bool h2_session_judge_record(struct h2_connection *c);
/* Passes what was read to the session. */
bool h2_session_receive(struct h2_connection *c, struct view data);

/* http1.c: the client's first bytes are no preface of HTTP/2. A request of HTTP/1 is answered when
 * its first line is there. False, as above. */
bool h2_http1_receive(struct h2_connection *c, struct view data);

/* stream.c */
struct h2_stream *h2_stream_new(struct h2_connection *c, int32_t id);
void h2_stream_add_header(struct h2_stream *stream, struct view name, struct view value);
void h2_stream_headers_done(struct h2_stream *stream);
void h2_stream_end(struct h2_stream *stream);
void h2_stream_close(struct h2_stream *stream);
struct h2_peer *h2_peer_new(const char *address);
void h2_peer_unref(struct h2_peer *peer);

struct h2_shard {
	struct h2_server *server;
	struct io_thread *thread;
	struct h2_connection *connections;
	struct h2_connection *idle_first, *idle_last;
	_Atomic int count; /* read by the thread that accepts */
	bool draining, retiring;
	uint64_t drain_deadline;
	struct io_post close_idle;
	pthread_mutex_t asking; /* guards the following members */
	bool asked;             /* to close idle connections; the arguments are the least so far */
	uint64_t asked_idle_ns;
	uint32_t asked_keep;
};

/* Closes up to `count` of the connections that have been idle longest, and at least for idle_ns.
 * Spares peers that have `keep` connections or fewer (0: spares none), and connections in a turn or
 * about to wake.
 * Looks at the first few dozen only. False: there was none. */
bool h2_shard_close_idle(struct h2_shard *shard, int count, uint64_t idle_ns, uint32_t keep);
/* The same a little later, for H2_IDLE_TO_CLOSE connections. [any] */
void h2_shard_ask_to_close_idle(struct h2_shard *shard, uint64_t idle_ns, uint32_t keep);
/* Asks all shards but this one; NULL: all. [any] */
void h2_server_ask_to_close_idle(struct h2_server *server, const struct h2_shard *but,
				 uint64_t idle_ns, uint32_t keep);

struct h2_server {
	struct h2_options options;
	struct h2_route *routes;
	size_t stream_size; /* size of the largest service's struct */
	struct h2_addresses addresses;
	int port;
	struct tls_server *tls; /* NULL: cleartext */
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *session_options;
	struct h2_counters counters;
	struct h2_listeners listeners;
	struct h2_shard *shards;
	uint32_t shard_count;
	struct peer_count *peers, *own_peers;           /* own_peers: NULL if the owner counts */
	struct loop_timer *reopen_timer, *report_timer; /* [main loop thread] */
	struct limit_report report;                     /* the same, and what follows */
	int64_t http1_reported;                         /* clients of HTTP/1 that the log has */
	uint64_t http1_next; /* clock_now of the next line at the earliest */
	_Atomic int64_t connections;
	pthread_mutex_t lock; /* guards the following members, for h2_server_drain */
	pthread_cond_t changed;
	int open; /* the number of connections and listeners that are not closed */
};

/* A connection is closed: it no longer counts against the limits. [any] */
void h2_server_uncount(struct h2_server *server, const char *address, struct hash128 key);
/* A connection or the listeners have been closed (left), or opened (entered). [any] */
void h2_server_left(struct h2_server *server);
void h2_server_entered(struct h2_server *server);

#endif
