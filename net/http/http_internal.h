/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_HTTP_INTERNAL_H
#define NET_HTTP_HTTP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "net/fields.h"
#include "net/http/http_server.h"
#include "net/peer_count.h"

/*
 * What the files of the HTTP server share:
 *
 *   http_judge.c     what is refused whatever the route
 *   http_deadline.c  what each connection may take its time for
 *   http_listener.c  the socket, and the thread that accepts, keeps deadlines and lingers
 *   http_config.c    the keys and their rules
 *   http_tls.c       client certificates (GnuTLS)
 *   http_state.c     what all files share, until the last reference is gone
 *   http_exchange.c  one request and its reply
 *   http_memory.c    what connections cost, and what happens when memory is short
 *   http_daemon.c    libmicrohttpd
 *   http_server.c    the life of the server
 *
 * Each calls only those above it; what goes the other way is a callback.
 */

#define HTTP_TARGET_MAX 8192
#define HTTP_PEER_MAX 64 /* a numeric address with its scope */
/* Of a connection, for reading and bookkeeping, beside its headers: what does not fit is 431. */
#define HTTP_CONNECTION_MEMORY 16384
/* A refused body up to this size is read and thrown away, so that the connection can stay. */
#define HTTP_SWALLOW_MAX (256 << 10)

/* net/http/http_listener.c */
struct http_endpoint {
	bool is_unix;
	int family;     /* AF_UNSPEC: either */
	char host[256]; /* "": all addresses; of unix: the path */
	char port[6];
};

bool http_endpoint_parse(const char *transport, const char *text, struct http_endpoint *out,
			 struct error *err);

/* net/http/http_deadline.c: the phases of a connection that may end it. Any thread. */
enum http_phase {
	HTTP_PHASE_HANDSHAKE,
	HTTP_PHASE_HEADER,
	HTTP_PHASE_BODY,
	HTTP_PHASE_WRITE,
	HTTP_PHASE_IDLE,
	HTTP_PHASES
};
#define HTTP_PHASE_NONE HTTP_PHASES

struct http_deadline {
	struct http_deadline *previous, *next;
	enum http_phase phase;
	/* since: the phase began, later by the time that the connection was paused */
	uint64_t at, since;
	uint64_t paused_since;     /* 0: it is not */
	_Atomic uint64_t received; /* bytes in this phase, of a body */
	int socket;
	bool ended;    /* by us */
	bool replaced; /* ended for another connection, which has its charge now */
};

/* One list per phase: as each phase has one timeout, a list in order of entry is in order of time.
 */
struct http_deadlines {
	pthread_mutex_t mutex;
	struct http_deadline *head[HTTP_PHASES + 1], *tail[HTTP_PHASES + 1];
	uint64_t timeout[HTTP_PHASES + 1]; /* ns; 0: none */
	uint64_t min_rate;                 /* of bodies, bytes a second; 0: none */
	uint64_t measure_next;             /* when the rate of bodies will be looked at again */
	uint64_t next;                     /* when the thread will look again */
	int wake;                          /* eventfd of that thread */
	struct metric_series *count[HTTP_PHASES]; /* connections ended by their deadline */
	struct metric_series *slow, *unwanted; /* ended by min_rate, by http_deadlines_end_oldest */
};

void http_deadlines_init(struct http_deadlines *d, const struct http_server_config *config,
			 int wake);
void http_deadlines_fini(struct http_deadlines *d);
void http_deadline_join(struct http_deadlines *d, struct http_deadline *x, int socket,
			enum http_phase phase);
void http_deadline_enter(struct http_deadlines *d, struct http_deadline *x, enum http_phase phase);
/* We do not read from the connection until http_deadline_resume: the time does not count for the
 * rate of its body. */
void http_deadline_pause(struct http_deadlines *d, struct http_deadline *x);
void http_deadline_resume(struct http_deadlines *d, struct http_deadline *x);
/* Before the socket is closed. Was the connection ended by its deadline? */
bool http_deadline_leave(struct http_deadlines *d, struct http_deadline *x);
/* Ends what is over its time; returns when to look again. */
uint64_t http_deadlines_pass(struct http_deadlines *d, uint64_t now);
/* Ends all connections that wait for a next request. */
void http_deadlines_end_idle(struct http_deadlines *d);
/* Ends up to `count` connections that have waited longest for a request, and longer than for a
 * moment; returns how many. */
uint32_t http_deadlines_end_oldest(struct http_deadlines *d, uint32_t count);
/* Ends the one that has waited longest, for another one that gets its charge; false: none waits. */
bool http_deadlines_replace_oldest(struct http_deadlines *d);

/* net/http/http_listener.c */
struct http_listener;
struct http_listener_options {
	struct http_endpoint endpoint;
	const char *transport, *address; /* as configured; by them the socket is shared */
	struct sockets_access sockets;
	struct http_deadlines *deadlines; /* its wake is the listener's */
	/* On the listener's thread. The socket is the callee's. */
	void (*accepted)(void *context, int socket, const struct sockaddr *address, socklen_t len);
	/* On the listener's thread, after each wake-up; returns when to be called again at the
	 * latest. */
	uint64_t (*turn)(void *context, uint64_t now);
	void *context;
	struct metric_series *no_files; /* connections closed because no file descriptor was left */
};

/* Binds and listens; the thread runs from start on. options is copied. */
struct http_listener *http_listener_new(const struct http_listener_options *options,
					struct error *err);
bool http_listener_start(struct http_listener *listener, struct error *err);
const char *http_listener_address(const struct http_listener *listener);
void http_listener_wake(struct http_listener *listener);
/* Closes the listening socket; the thread goes on. [any thread] */
void http_listener_refuse(struct http_listener *listener);
/*
 * Takes a socket that is to be closed but may hold unread data, which would reset the connection
 * before the peer reads the last reply: reads it away for a moment first. [any thread]
 */
void http_listener_linger(struct http_listener *listener, int socket);
/* Refuses and joins the thread; sockets that come to linger are closed at once from here on. */
void http_listener_stop(struct http_listener *listener);
void http_listener_unref(struct http_listener **listener);

/* net/http/http_tls.c; session is a gnutls_session_t. */
struct http_connection;
void http_tls_silence(void);
void http_tls_require(void *session);
/* Once the handshake is complete the connection is secured, and waits for headers. */
void http_tls_watch(void *session, struct http_connection *connection);
/* Fills the empty list, if the client's certificate was verified. */
void http_tls_owner(void *session, struct fields *auth);
void http_tls_send(void *session, const void *data, size_t len);

/* net/http/http_exchange.c */
enum http_stage {
	HTTP_STAGE_HEADERS,  /* request line and headers come in */
	HTTP_STAGE_BODY,     /* accepted: the body comes in */
	HTTP_STAGE_SWALLOW,  /* refused: the body comes in and is thrown away, the reply follows */
	HTTP_STAGE_HANDED,   /* the route has it: the connection may be suspended */
	HTTP_STAGE_REPLYING, /* the reply is on its way */
	/* cut before the reply: freed when both the library and the route are done */
	HTTP_STAGE_LOST
};

struct http_answer {
	int status; /* 0: none yet */
	char *content_type, *allow;
	uint8_t *body;
	size_t body_len;
	uint32_t retry_after_s;
};

struct http_connection {
	struct http_daemon *daemon;
	struct MHD_Connection *mhd;
	/* The daemon's: the library stops reading from the connection, and goes on. */
	void (*suspend)(struct http_connection *connection);
	void (*resume)(struct http_connection *connection);
	struct http_deadline deadline;
	bool linger;  /* the peer may still be sending what nobody wants */
	bool secured; /* the TLS handshake is complete */
	char peer[HTTP_PEER_MAX];
};

struct http_exchange {
	struct http_server *server;         /* holds a reference */
	struct http_connection *connection; /* NULL when the library is done with it */
	const struct http_route *route;
	void *user;
	/* server's mutex from HANDED on; before, only the server's thread */
	enum http_stage stage;
	bool suspended;                        /* server's mutex */
	struct http_exchange *previous, *next; /* the server's suspended ones, its mutex */
	char *target, *query_text;             /* path; text behind '?', or NULL */
	bool target_too_long;
	char *method, *peer;
	bool http_1_0;
	struct fields headers, query, auth;
	bool headers_over;
	int64_t content_length;
	bool expects_continue;
	size_t body_limit, body_room; /* body_room: what the route's grow has agreed to */
	uint64_t waiting_since;       /* the body waits for memory; 0: it does not */
	uint64_t patience_ns;         /* for which it may */
	struct bytes body;
	struct http_answer answer; /* server's mutex in HANDED */
};

struct http_exchange *http_exchange_new(struct http_server *server,
					struct http_connection *connection, const char *target);
void http_exchange_free(struct http_exchange *exchange);
/* It is refused: while its body is still coming it needs no headers. */
void http_exchange_forget_headers(struct http_exchange *exchange);
/* Judges, finds the route and asks it. True: accepted. Else there is an answer; *sound: its framing
 * can be trusted. */
bool http_exchange_open(struct http_exchange *exchange, bool *sound);
enum http_feed {
	HTTP_FEED_TAKEN,
	HTTP_FEED_LATER, /* there is no memory for it now */
	HTTP_FEED_OVER   /* over the limit, or refused by `grow`: there is an answer */
};
enum http_feed http_exchange_feed(struct http_exchange *exchange, const void *data, size_t len);
/* Its connection is suspended until http_exchange_resume: until the answer is there, or there may
 * be memory for its body. Both under the server's mutex. */
void http_exchange_suspend(struct http_exchange *exchange);
void http_exchange_resume(struct http_exchange *exchange);
/* The reply as bytes of HTTP/1.1 with Connection: close, for when libmicrohttpd cannot answer. */
void http_exchange_print(const struct http_exchange *exchange, struct bytes *out);

/* net/http/http_judge.c */
struct http_fault {
	int status;
	const char *text;
};
/* NULL: sound. Also finds content_length and expects_continue. */
const struct http_fault *http_judge(struct http_exchange *exchange);
bool http_is_token(const char *text);

/* What all files share; made and freed by http_state.c. */
struct http_daemon;

/* Requests that no route was asked about. */
enum { HTTP_MALFORMED, HTTP_HEADER_SIZE, HTTP_NO_PATH, HTTP_NO_METHOD, HTTP_MISDIRECTIONS };

/* Why a connection is closed before it is served. */
enum { HTTP_OVER_LIMIT, HTTP_OVER_PEER_LIMIT, HTTP_OVER_MEMORY, HTTP_OVER_REASONS };

struct http_server {
	_Atomic uint32_t holds; /* its owner, and each exchange */
	struct http_server_config const *config;
	struct http_route *routes;
	size_t route_count;
	const struct log *log;
	struct net_budget budget;
	int64_t connection_cost; /* charged for each */
	struct fields_limits header_limits;
	struct http_listener *listener;
	struct http_deadlines deadlines;
	struct peer_count *peers;
	uint32_t peer_limit; /* connections of each; 0: none */
	pthread_mutex_t mutex;
	pthread_cond_t quiet;            /* open became 0 */
	struct http_daemon *daemons;     /* mutex; the first is the current one, others drain */
	struct http_exchange *suspended; /* mutex */
	uint32_t open;                   /* mutex: exchanges between request line and end */
	/* new requests are refused, connections close after their reply */
	_Atomic bool stopping;
	bool cutting; /* mutex: nothing is suspended any more */
	/* no new connection comes; emptied (mutex, with quiet): none is left */
	_Atomic bool retiring;
	bool emptied;
	_Atomic int64_t connected;
	_Atomic uint32_t complaints; /* lines of libmicrohttpd that were swallowed */
	uint64_t complain_next;      /* listener thread: not told before */
	uint64_t reload_ns;          /* between two readings of the certificates; 0: none */
	/* Listener thread: when to read certificates again, to ask for memory for bodies, to see
	 * whether it is short. */
	uint64_t reload_next, ask_next, look_next;
	_Atomic uint32_t waiting; /* exchanges whose body waits for memory */
	struct metric_series *connections, *paused, *over[HTTP_OVER_REASONS],
		*misdirected[HTTP_MISDIRECTIONS];
};

/* net/http/http_state.c */
/* Without listener, daemons and metrics. Its owner has the first reference, each exchange one more;
 * options are not needed later, but what they point to is. */
struct http_server *http_state_new(const struct http_server_options *options);
void http_state_unref(struct http_server *server);
/* Fills header_limits from the configuration, or without one with the defaults. */
void http_state_limit_headers(struct http_server *server);

/*
 * net/http/http_daemon.c. One libmicrohttpd daemon: it has one set of certificates and one thread.
 * Changed certificates make a new one that gets the new connections, while the old one drains.
 */
struct http_daemon {
	struct http_daemon *next;
	struct http_server *server;
	struct MHD_Daemon *library;
	struct tls_material material;
	_Atomic int64_t connections; /* given to it and not closed yet */
	_Atomic bool draining;
};

/* Takes what the material holds, also when it fails. */
struct http_daemon *http_daemon_new(struct http_server *server, const struct tls_material *material,
				    struct error *err);
/* Closes its connections. None may be suspended. */
void http_daemon_unref(struct http_daemon **daemon);
/* The numeric address, "" of a unix socket; an IPv4 address that came by IPv6 is one of IPv4. */
void http_peer_text(const struct sockaddr *address, socklen_t len, char *out, size_t room);
/* Takes the socket; false: closed it, for want of memory. */
bool http_daemon_add(struct http_daemon *daemon, int socket, const struct sockaddr *address,
		     socklen_t len);

/* net/http/http_memory.c */
/* Charges a connection that was accepted, with which its peer has `count`: as long as these hold
 * less than is left, or else in the place of one that is idle. */
bool http_memory_hold(struct http_server *server, uint32_t count);
/* The connection is closed. */
void http_memory_release(struct http_server *server, bool replaced);
/* There is no memory for the next part of the body: suspends the connection for a moment; false:
 * the server ends them. */
bool http_memory_wait(struct http_exchange *exchange);
/* It has been read further, or ends. */
void http_memory_waited(struct http_exchange *exchange);
/* Listener thread: closes idle connections while memory is short, lets bodies ask again; returns
 * when to look again. */
uint64_t http_memory_relieve(struct http_server *server, uint64_t now);

#endif
