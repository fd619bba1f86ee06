/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_HTTP_INTERNAL_H
#define NET_HTTP_HTTP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/size_limit.h"
#include "net/fields.h"
#include "net/h2/server.h"
#include "net/http/http_server.h"
#include "net/limit_report.h"
#include "net/peer_count.h"

/*
 * Shared by the files of the HTTP server:
 *
 *   http_judge.c     what is refused whatever the route
 *   http_deadline.c  the deadlines of the phases of a connection
 *   http_listener.c  the socket, and the thread that accepts, keeps deadlines and lingers
 *   http_config.c    the configuration keys and their rules
 *   http_tls.c       client certificates (GnuTLS)
 *   http_state.c     the state that all files share, and its reference count
 *   http_cors.c      what browsers of other origins may do
 *   http_exchange.c  one request and its reply (an exchange), whatever carries it
 *   http_request.c   an exchange on an HTTP/1.1 connection
 *   http_memory.c    what connections cost, and what happens if memory is short
 *   http_count.c     the number of connections, and its limits
 *   http_report.c    the limits on connections whose excesses are logged
 *   http_stall.c     HTTP/1.1: chunked bodies that libmicrohttpd cannot continue
 *   http_loop.c      HTTP/1.1: libmicrohttpd on its threads
 *   http_daemon.c    HTTP/1.1: the library's requests and connections
 *   http_stream.c    HTTP/2: a service of net/h2
 *   http_arrival.c   which of the two serves a new connection
 *   http_server.c    the life of the server
 *
 * A file calls only files above it in this list; calls in the other direction are callbacks.
 */

#define HTTP_TARGET_MAX 8192
#define HTTP_PEER_MAX 64 /* a numeric address with its scope */
/* The memory of a connection for reading and bookkeeping, in addition to its headers. What does not
 * fit is answered with 431. */
#define HTTP_CONNECTION_MEMORY 16384
/* A refused body up to this size is read and discarded, so that the connection can stay open. */
#define HTTP_SWALLOW_MAX (256 << 10)

/* net/http/http_listener.c */
struct http_endpoint {
	bool is_unix;
	int family;     /* AF_UNSPEC: either */
	char host[256]; /* "": all addresses; for unix: the path */
	char port[6];
};

bool http_endpoint_parse(const char *transport, const char *text, struct http_endpoint *out,
			 struct error *err);

/* net/http/http_deadline.c: the phases of a connection that have a deadline. Any thread. */
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
	/* since: the beginning of the phase, plus the time for which the connection was paused */
	uint64_t at, since;
	uint64_t paused_since;     /* 0: not paused */
	_Atomic uint64_t received; /* bytes of a body in this phase */
	int socket;
	bool ended;    /* closed by us */
	bool replaced; /* ended for another connection, which takes over its charge */
};

/* One list per phase. Each phase has one timeout, so a list in order of entry is in order of
 * deadline. */
struct http_deadlines {
	pthread_mutex_t mutex;
	struct http_deadline *head[HTTP_PHASES + 1], *tail[HTTP_PHASES + 1];
	uint64_t timeout[HTTP_PHASES + 1]; /* ns; 0: none */
	uint64_t min_rate;                 /* bytes per second of a body; 0: none */
	uint64_t measure_next;             /* when the rates of bodies will be checked again */
	uint64_t next;                     /* when the thread will check deadlines again */
	int wake;                          /* eventfd of that thread */
	struct metric_series *count[HTTP_PHASES]; /* connections ended by their deadline */
	/* connections ended by min_rate, and by http_deadlines_end_oldest */
	struct metric_series *slow, *unwanted;
};

void http_deadlines_init(struct http_deadlines *d, const struct http_server_config *config,
			 int wake);
void http_deadlines_fini(struct http_deadlines *d);
/* since: when the phase began (clock_now); 0: now. */
void http_deadline_join(struct http_deadlines *d, struct http_deadline *x, int socket,
			enum http_phase phase, uint64_t since);
void http_deadline_enter(struct http_deadlines *d, struct http_deadline *x, enum http_phase phase);
/* We do not read from the connection until http_deadline_resume; this time does not count for the
 * rate of its body. */
void http_deadline_pause(struct http_deadlines *d, struct http_deadline *x);
void http_deadline_resume(struct http_deadlines *d, struct http_deadline *x);
/* Must be called before the socket is closed. Was the connection ended by its deadline? */
bool http_deadline_leave(struct http_deadlines *d, struct http_deadline *x);
/* Ends connections that have exceeded their deadline; returns when to check again. */
uint64_t http_deadlines_pass(struct http_deadlines *d, uint64_t now);
/* Ends all connections that wait for a next request. */
void http_deadlines_end_idle(struct http_deadlines *d);
/* Ends up to `count` connections that have waited longest for a request, and longer than a moment;
 * returns their number. */
uint32_t http_deadlines_end_oldest(struct http_deadlines *d, uint32_t count);
/* Ends the connection that has waited longest for a request; a new connection takes over its
 * charge. False: none waits. */
bool http_deadlines_replace_oldest(struct http_deadlines *d);

/* net/http/http_listener.c */
struct http_listener;
struct http_listener_options {
	struct http_endpoint endpoint;
	/* as configured; the key by which the socket is shared (net/sockets.h) */
	const char *transport, *address;
	struct sockets_access sockets;
	struct http_deadlines *deadlines; /* its wake is the listener's */
	int watched; /* a descriptor that wakes the thread while it is readable; -1: none */
	/* On the listener's thread. Takes ownership of the socket. */
	void (*accepted)(void *context, int socket, const struct sockaddr *address, socklen_t len);
	/* On the listener's thread, after each wake-up; returns the latest time for the next
	 * call. */
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
/* Closes the listening socket; the thread continues. [any thread] */
void http_listener_refuse(struct http_listener *listener);
/* Takes a socket that must be closed but may hold unread data. Closing it would reset the
 * connection before the peer has read the last reply, so its data is read and discarded for a
 * moment first. [any thread] */
void http_listener_linger(struct http_listener *listener, int socket);
/* Closes the listening socket and joins the thread. Sockets that arrive to linger are closed
 * immediately from now on. */
void http_listener_stop(struct http_listener *listener);
void http_listener_unref(struct http_listener **listener);

/* net/http/http_tls.c; session is a gnutls_session_t. */
struct http_connection;
void http_tls_silence(void);
void http_tls_require(void *session);
/* Sets `secured` when the handshake is complete; the connection then waits for headers. */
void http_tls_watch(void *session, struct http_connection *connection);
/* Adds the names from the client's certificate, if it was verified. */
void http_tls_owner(void *session, struct http_exchange *exchange);
void http_tls_send(void *session, const void *data, size_t len);
/* Has the session bytes that it has decrypted and that nobody has read? */
bool http_tls_has_unread(void *session);

/* net/http/http_exchange.c */
enum http_stage {
	HTTP_STAGE_HEADERS,  /* request line and headers arrive */
	HTTP_STAGE_BODY,     /* accepted: the body arrives */
	HTTP_STAGE_SWALLOW,  /* refused: the body arrives and is discarded; the reply follows */
	HTTP_STAGE_HANDED,   /* the route has the request; the connection may be suspended */
	HTTP_STAGE_REPLYING, /* the reply is being sent */
	/* the connection was lost before the reply: freed when both the library and the route are
	 * done */
	HTTP_STAGE_LOST
};

struct http_answer {
	int status; /* 0: none yet */
	char *content_type, *allow;
	uint8_t *body;
	size_t body_len;
	uint32_t retry_after_s;
	const char *challenge; /* WWW-Authenticate; lives as long as the server */
	char retry_after[12];
};

struct http_connection {
	struct http_loop *loop;
	struct MHD_Connection *mhd;
	void *session; /* of GnuTLS; NULL: no TLS */
	/* Supplied by the loop: the library stops reading from the connection, and continues. */
	void (*suspend)(struct http_connection *connection);
	void (*resume)(struct http_connection *connection);
	/* Supplied by the loop: the client's hello has arrived. False: the handshake is continued
	 * later, because this turn has run enough of them; the connection is suspended until then.
	 */
	bool (*may_shake_hands)(struct http_connection *connection);
	struct http_connection *next_held; /* whose handshake waits */
	struct io_post post;               /* of its resumption */
	struct http_deadline deadline;
	bool linger;  /* the peer may still be sending data that will be discarded */
	bool secured; /* the TLS handshake is complete */
	char peer[HTTP_PEER_MAX];
};

enum http_version { HTTP_1_1, HTTP_1_0, HTTP_2 };

/* What carries an exchange: an HTTP/1.1 connection, or an HTTP/2 stream. */
struct http_carrier {
	size_t size; /* of the struct that the exchange is a member of */
	/* Behind http_exchange_reply: calls http_exchange_fill, and sees to it that the answer is
	 * sent. */
	void (*reply)(struct http_exchange *exchange, const struct http_reply *reply);
};

struct http_exchange {
	struct http_server *server; /* holds a reference */
	const struct http_carrier *carrier;
	struct io_thread *thread; /* NULL: the library's own */
	const struct http_route *route;
	void *user;
	/* HTTP/1.1: guarded by the server's mutex from HANDED on; before that, only the
	 * connection's thread. HTTP/2: only the I/O thread, which does not change it from HANDED
	 * on. */
	enum http_stage stage;
	char *target, *query_text; /* the path; the text after '?', or NULL */
	bool target_too_long;
	char *method, *peer;
	enum http_version version;
	bool without_body; /* HTTP/2: the headers end the request */
	struct fields headers, query, auth;
	bool headers_over;
	size_t header_count, header_bytes; /* that the client has sent */
	int64_t content_length;
	bool expects_continue;
	size_t body_limit, body_room; /* body_room: the size that the route's grow has granted */
	uint64_t waiting_since;       /* since when the body waits for memory; 0: it does not */
	uint64_t patience_ns;         /* how long it may wait */
	struct bytes body;
	/* What the response says to browsers; strings NULL: nothing. */
	struct {
		bool preflight;
		char *origin, *method, *headers;
	} cors;
	struct http_answer answer; /* HTTP/1.1: server's mutex in HANDED */
};

/* Initializes zeroed memory. */
void http_exchange_init(struct http_exchange *exchange, struct http_server *server,
			const struct http_carrier *carrier, const char *target);
void http_exchange_fini(struct http_exchange *exchange);
/* Adds the names from the client's certificate. */
void http_exchange_add_owner(struct http_exchange *exchange, const struct fields *owner);
/* Sets the answer. */
void http_exchange_fill(struct http_exchange *exchange, const struct http_reply *reply);
/* The body exceeds a limit on time, after `ns`: sets the answer, which names the setting, and
 * counts it. */
void http_exchange_answer_late(struct http_exchange *exchange, uint64_t ns, const char *setting,
			       const char *value);
/* The line of a chunk's size and extensions does not fit into the buffer: sets the answer, counts
 * it, and ends the request for the route. */
void http_exchange_answer_stalled(struct http_exchange *exchange);
/* The headers of the answer, but for its length and those of the connection. The strings are valid
 * as long as the answer. */
typedef void http_add_header(void *context, const char *name, const char *value);
void http_exchange_each_header(struct http_exchange *exchange, http_add_header *add, void *context);
/* The request is refused: frees its headers, which are not needed while its body still arrives. */
void http_exchange_forget_headers(struct http_exchange *exchange);
/* Checks the request, finds the route and asks it. True: accepted. False: there is an answer;
 * *sound: the framing of the request can be trusted. */
bool http_exchange_open(struct http_exchange *exchange, bool *sound);
enum http_feed {
	HTTP_FEED_TAKEN,
	HTTP_FEED_LATER, /* no memory for it at the moment */
	HTTP_FEED_OVER   /* over the limit, or refused by `grow`; there is an answer */
};
enum http_feed http_exchange_feed(struct http_exchange *exchange, const void *data, size_t len);
/* The same without adding: makes room for a body of `need` bytes. */
enum http_feed http_exchange_grow(struct http_exchange *exchange, size_t need);

/* net/http/http_cors.c */
bool http_cors_is_on(const struct http_server_config *config);
/* Decides what the response says about CORS. True: a preflight, which ends with that. */
bool http_cors_judge(struct http_exchange *exchange);
void http_cors_each_header(const struct http_exchange *exchange, http_add_header *add,
			   void *context);
void http_cors_forget(struct http_exchange *exchange);
/* exposed_headers as the value of a header; NULL: none. */
char *http_cors_exposed(const struct http_server_config *config);

/* net/http/http_stall.c: is this body one that the library cannot continue? [I/O thread] */
struct http_stall {
	bool watched;
	int checks; /* in a row that found it without progress */
	uint64_t received;
	struct http_request *previous, *next; /* in the loop's list */
};

/* net/http/http_request.c */
struct http_request {
	struct http_exchange x;             /* first */
	struct http_connection *connection; /* NULL once the library is done with it */
	bool suspended;                     /* server's mutex */
	struct http_stall stall;
	/* in the server's list of suspended requests; guarded by its mutex */
	struct http_request *previous, *next;
};

struct http_request *http_request_new(struct http_server *server,
				      struct http_connection *connection, const char *target);
void http_request_free(struct http_request *request);
/* Suspends its connection until http_request_resume: until there is an answer, or possibly memory
 * for its body. Both under the server's mutex. */
void http_request_suspend(struct http_request *request);
void http_request_resume(struct http_request *request);
/* The answer as HTTP/1.1 bytes with Connection: close, for cases in which libmicrohttpd cannot
 * reply. */
void http_request_print(struct http_request *request, struct bytes *out);

/* net/http/http_auth.c */
/* Does the server's authenticator accept the request? Then the exchange has the sender's identity.
 * False: err gives the reason. */
bool http_auth_accepts(struct http_exchange *exchange, struct error *err);

/* net/http/http_judge.c */
struct http_fault {
	int status;
	const char *text;
};
/* NULL: the request is sound. Also sets content_length and expects_continue. */
const struct http_fault *http_judge(struct http_exchange *exchange);
bool http_is_token(const char *text);

/* Shared by all files; created and freed by http_state.c. */
struct http_daemon;

/* Requests that never reached a route, or whose body came too slowly (HTTP/2). */
enum {
	HTTP_MALFORMED,
	HTTP_HEADER_SIZE,
	HTTP_NO_PATH,
	HTTP_NO_METHOD,
	HTTP_NO_CREDENTIALS,
	HTTP_LATE_BODY,
	HTTP_MISDIRECTIONS
};

/* Why a connection is closed before it is served. */
enum http_over { HTTP_OVER_LIMIT, HTTP_OVER_PEER_LIMIT, HTTP_OVER_MEMORY, HTTP_OVER_REASONS };

/* net/http/http_arrival.c: connections whose protocol is not known yet. [listener thread] */
struct http_arrivals {
	struct http_arrival *first;
	int epoll; /* readable when one of them is; -1: HTTP/2 is not served */
};

struct http_server {
	_Atomic uint32_t holds; /* references: of its owner, and of each exchange */
	struct http_server_config const *config;
	struct http_route *routes;
	size_t route_count;
	const struct log *log;
	struct net_budget budget;
	int64_t connection_cost; /* bytes charged for each connection */
	struct fields_limits header_limits;
	struct authenticator *authenticator; /* NULL: none */
	struct http_listener *listener;
	struct http_deadlines deadlines;
	struct peer_count *peers;
	uint32_t peer_limit; /* the maximum number of connections of a peer; 0: no limit */
	pthread_mutex_t mutex;
	pthread_cond_t quiet;           /* open became 0 */
	struct http_daemon *daemons;    /* mutex; the first is the current one, others drain */
	struct http_request *suspended; /* mutex */
	struct io *io;                  /* NULL: no I/O threads, HTTP/1.1 only */
	struct h2_server *h2;           /* NULL likewise */
	struct http_arrivals arrivals;
	/* HTTP/2, by I/O thread: bytes of bodies that have arrived but are not granted */
	size_t *owed;
	char *cors_exposed, cors_max_age[24];
	struct limit_report report; /* listener thread */
	/* mutex: exchanges between the request line and their end */
	uint32_t open;
	/* new requests are refused, connections close after their reply */
	_Atomic bool stopping;
	bool cutting; /* mutex: nothing may be suspended any more */
	/* retiring: no new connection arrives; emptied (mutex, with quiet): none is left */
	_Atomic bool retiring;
	bool emptied;
	_Atomic int64_t connected;
	_Atomic uint32_t complaints; /* log lines of libmicrohttpd that were suppressed */
	/* listener thread: the earliest time of the next report about them */
	uint64_t complain_next;
	uint64_t reopen_ns; /* interval for reading the certificates again; 0: none */
	/* Listener thread: when to read certificates again, to ask for memory for bodies, and to
	 * check whether memory is short. */
	uint64_t reopen_next, ask_next, look_next;
	_Atomic uint32_t waiting; /* exchanges whose body waits for memory */
	struct metric_series *connections, *paused, *over[HTTP_OVER_REASONS],
		*misdirected[HTTP_MISDIRECTIONS];
};

/* net/http/http_state.c */
/* Creates the state, without listener, daemons and metrics. The owner has the first reference, each
 * exchange another one. options is not needed later, but what it points to is. */
struct http_server *http_state_new(const struct http_server_options *options);
void http_state_unref(struct http_server *server);
/* Fills header_limits from the configuration; without one, with the defaults. */
void http_state_limit_headers(struct http_server *server);

/* What the library keeps for us as the address of a connection. */
struct http_origin {
	struct sockaddr_storage address; /* first */
	uint64_t since;                  /* of the connection's first phase */
};

/* The chunked bodies of a loop. */
struct http_stalls {
	struct http_request *first;
	int turns;     /* since the last check, in which the library wanted to run again at once */
	bool calm;     /* in one of them, it did not want to */
	uint64_t next; /* the earliest time of the next check */
	/* Called when the library cannot continue a body. */
	void (*stalled)(struct http_request *request);
};

/* All on the I/O thread. A body that is not chunked is never stalled. */
void http_stall_watch(struct http_stalls *stalls, struct http_request *request);
void http_stall_unwatch(struct http_stalls *stalls, struct http_request *request); /* if watched */
/* After each turn. `again`: the library wants to run again at once. */
void http_stall_turn(struct http_stalls *stalls, bool again);

struct http_delivery;

/*
 * net/http/http_loop.c. One instance of libmicrohttpd: on an I/O thread, which runs it when its
 * descriptor is readable, or on a thread of the library's own. All callbacks of its connections run
 * on that thread.
 */
struct http_loop {
	struct http_daemon *daemon;
	struct io_thread *thread; /* NULL: the library's own */
	struct MHD_Daemon *library;
	struct io_watch *watch;
	_Atomic int64_t connections; /* connections passed to it and not closed yet */
	/* Called when the library could not take a socket, and has closed it. */
	void (*lost)(struct http_loop *loop, const struct sockaddr *address);
	/* I/O thread: has the library called back since it was called, and for how many turns has
	 * it not? */
	bool called_back;
	int silent_turns;
	/* I/O thread, both in order of arrival: sockets that the library does not have yet, and
	 * connections whose TLS handshake waits. They are counted and charged like others. */
	struct http_delivery *first, **last;
	struct http_connection *held, **last_held;
	int handshakes; /* in this turn */
	struct http_stalls stalls;
};

/* library and thread are set. */
bool http_loop_start(struct http_loop *loop, struct error *err);
/* Closes its connections. None may be suspended, except for a handshake. Safe if the library is
 * NULL. */
void http_loop_stop(struct http_loop *loop);
/* Sets what the loop supplies: suspend for the loop's thread, resume for any. */
void http_loop_connect(struct http_connection *connection);
/* [listener thread] */
void http_loop_add(struct http_loop *loop, int socket, const struct http_origin *origin);

/* net/http/http_daemon.c. One set of certificates, with a loop for each thread. When the
 * certificates change, a new daemon gets the new connections, while the old one drains. */
struct http_daemon {
	struct http_daemon *next;
	struct http_server *server;
	struct tls_material material;
	_Atomic int64_t connections; /* of all loops */
	_Atomic bool draining;
	uint32_t loop_count;
	struct http_loop loops[];
};

/* Takes over the material, even if it fails. */
struct http_daemon *http_daemon_new(struct http_server *server, const struct tls_material *material,
				    struct error *err);
/* Closes its connections. None may be suspended. */
void http_daemon_unref(struct http_daemon **daemon);
/* The numeric address; "" for a unix socket. An IPv4 address mapped to IPv6 is written as IPv4. */
void http_peer_text(const struct sockaddr *address, socklen_t len, char *out, size_t room);
/* Gives the socket to the loop of the current daemon with the fewest connections. [listener
 * thread] */
void http_daemon_add(struct http_server *server, int socket, const struct http_origin *origin);

/* net/http/http_memory.c */
/* Charges an accepted connection; `count` is the number of connections of its peer, including this
 * one. True if these hold less than is left, or if an idle connection could be replaced. */
bool http_memory_hold(struct http_server *server, uint32_t count);
/* The connection is closed. */
void http_memory_release(struct http_server *server, bool replaced);
/* There is no memory for the next part of the body: suspends the connection for a moment. False:
 * the server ends all suspensions. */
bool http_memory_wait(struct http_request *request);
/* The body has been read further, or the request ends. */
void http_memory_waited(struct http_request *request);
/* A body begins to wait for memory: sets waiting_since and patience_ns, and counts it. False: it
 * already waits. */
bool http_memory_begin_wait(struct http_exchange *exchange);
/* Closes idle connections while memory is short, and lets bodies ask for memory again; returns when
 * to check again. [listener thread] */
uint64_t http_memory_relieve(struct http_server *server, uint64_t now);

/* net/http/http_count.c */
/* Counts and charges a new connection. False: it must be closed; *why is the limit. [listener
 * thread] */
bool http_count_in(struct http_server *server, const char *peer, enum http_over *why);
/* The connection is closed, and its charge released. [any thread] */
void http_count_out(struct http_server *server, const char *peer);

/* net/http/http_report.c: the limits whose excesses are logged. Once the metrics and the HTTP/2
 * server exist. */
void http_report_init(struct http_server *server, struct metrics *metrics);

/* net/http/http_stream.c: the context of its route is the struct http_server. */
extern const struct h2_service http_stream_service;

/* net/http/http_arrival.c [listener thread]. Takes a counted socket, and finds out which protocol
 * the client speaks. */
void http_arrivals_take(struct http_server *server, int socket, const struct sockaddr *address,
			socklen_t len, const char *peer);
/* Looks at those that have sent something. */
void http_arrivals_pass(struct http_server *server);
void http_arrivals_close(struct http_server *server);

#endif
