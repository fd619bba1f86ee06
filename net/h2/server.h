/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_H2_SERVER_H
#define NET_H2_SERVER_H

#include "base/bytes.h"
#include "base/log.h"
#include "net/budget.h"
#include "net/fields.h"
#include "net/h2/bounds.h"
#include "net/io.h"
#include "net/loop.h"
#include "net/peer_count.h"
#include "net/sockets.h"
#include "net/tls/tls.h"

/*
 * An HTTP/2 server (RFC 9113) on nghttp2 and libuv: cleartext by prior knowledge, or TLS with ALPN
 * "h2". It handles connections, streams, windows, limits and shutdown. The service of a route
 * interprets its requests. gRPC is one such service (net/h2/rpc.h).
 *
 * Flow: accept -> the I/O thread with the fewest connections -> frames -> `headers` of the route ->
 * `data` for each part of the body -> `end` -> h2_stream_respond -> `closed`. All of it runs on the
 * connection's I/O thread (net/io.h).
 *
 * Windows: the connection window is always returned immediately. A stream's window is 64 KiB until
 * its service opens it further (h2_stream_window), so a sender is paused while there is no memory
 * for its bytes.
 */
struct h2_server;
struct h2_connection;

/* The other end of a connection. Its streams hold it too, so its strings live as long as any of
 * them. */
struct h2_peer {
	int holds; /* [the I/O thread] */
	/* names from a verified client certificate (net/tls/tls.h); empty without one */
	struct fields auth;
	char address[64]; /* without the port: "127.0.0.1"; "" for unix sockets */
};

struct h2_service;

/* One request. The first member of the service's own struct, of which the server allocates
 * h2_service.size zeroed bytes. */
struct h2_stream {
	struct h2_connection *connection; /* NULL: closed */
	struct io_thread *thread;
	struct h2_peer *peer;
	const struct h2_service *service;
	void *context;         /* of the route */
	struct fields headers; /* pseudo-headers too, names in lower case */
	int32_t id;
	int holds; /* the connection's and those of h2_stream_hold */
	/* The server's: */
	struct h2_stream *prev, *next;
	size_t header_bytes, header_count;
	const struct net_budget *budget; /* of the charge */
	int64_t charged;
	bool without_body; /* the headers end the request */
	bool headers_too_large, ended, responded, finished, deferred;
	uint64_t deadline; /* clock_now; 0: none */
	struct bytes out;
	size_t out_taken;
	const struct h2_header *trailers; /* until they are sent */
	size_t trailer_count;
	struct bytes trailer_text;
};

struct h2_header {
	const char *name;
	struct view value;
};

struct h2_service {
	size_t size; /* of its struct that begins with a struct h2_stream */
	/* The headers are complete. [I/O thread, as all that follow] */
	void (*headers)(struct h2_stream *stream);
	/* Some of the body; never called after the response has ended. */
	void (*data)(struct h2_stream *stream, struct view data);
	/* The client has ended its side. */
	void (*end)(struct h2_stream *stream);
	/* The deadline has passed; may set another. */
	void (*late)(struct h2_stream *stream, uint64_t now);
	/* Everything that was sent is on its way, and the response has not ended: the service may
	 * h2_stream_send more or h2_stream_finish, and nothing else. NULL: it does not want to
	 * know. */
	void (*drained)(struct h2_stream *stream);
	/* The stream is closed: by its end, a reset, or the connection's end. */
	void (*closed)(struct h2_stream *stream);
	/* The last hold is gone: releases what the service's struct owns. */
	void (*fini)(struct h2_stream *stream);
};

/* The first matching route handles a request. */
struct h2_route {
	const char *path;         /* NULL: any */
	const char *content_type; /* without its parameters and suffix; NULL: any */
	const struct h2_service *service;
	void *context;
};

struct h2_options {
	/* "127.0.0.1:4317", "localhost:0", ":4317", "unix:/path". NULL: the server does not listen;
	 * connections come from h2_server_adopt. */
	const char *endpoint;
	/* NULL: tcp; tcp4, tcp6, unix (then the endpoint may be a bare path) */
	const char *transport;
	const struct tls_server_config *tls; /* NULL: cleartext; outlives the server */
	struct h2_limits limits;
	int64_t max_concurrent_streams; /* of one connection; 0: 100 */
	/* read, and written, with one system call; 0: 256 KiB */
	size_t read_buffer_bytes, write_buffer_bytes;
	/* 0: no limit for age and grace; keepalive 2 h and 20 s; pings at least 5 min apart. idle
	 * overrides limits. */
	struct duration max_connection_idle, max_connection_age, max_connection_age_grace;
	struct duration keepalive_time, keepalive_timeout, min_ping_interval;
	bool pings_without_streams;    /* are permitted; else at most one in 2 h */
	const struct h2_route *routes; /* copied; their strings outlive the server */
	size_t route_count;
	struct net_budget budget; /* what connections cost */
	struct io *io;
	struct loop *loop; /* for reopening at an interval; NULL: no interval */
	struct sockets_access sockets;
	const struct log *log;   /* outlives the server */
	struct metrics *metrics; /* may be NULL */
	const char *name;        /* the receiver's ID, for metrics */
	/* The number of connections of each peer, which the owner of adopted connections counts.
	 * NULL: the server counts those that it accepts. Outlives the server. */
	struct peer_count *peers;
	/* An adopted connection is closed; `address` as given. [I/O thread] */
	void (*left)(void *context, const char *address);
	void *left_context;
};

/* [main loop thread, or before it runs] Listens on return. Fails if anybody else listens there. */
/* Can a server listen there now? Listens for a moment. The error begins with "endpoint: ". */
bool h2_listen_probe(const char *endpoint, const char *transport, struct error *err);

struct h2_server *h2_server_start(const struct h2_options *options, struct error *err);
/*
 * Takes a connected socket from which nothing has been read, for a server without an endpoint. Its
 * other end has the given address. The caller has counted the connection, until `left`, and has
 * charged h2_server_connection_cost to the budget; that charge becomes the server's. [any thread]
 */
void h2_server_adopt(struct h2_server *server, int fd, const char *address);
/* Bytes that an idle connection costs at most. */
int64_t h2_server_connection_cost(const struct h2_server *server);
/* Every I/O thread closes the connections that have been idle longest, soon. [any thread] */
void h2_server_close_idle(struct h2_server *server);
/* The port, as chosen by the system for port 0; 0 for unix sockets. */
int h2_server_port(const struct h2_server *server);
/* Reads the certificate files again. If they are invalid, the current certificate stays in use (see
 * err). [main loop thread] */
bool h2_server_reopen(struct h2_server *server, struct error *err);
/* Stops accepting and sends GOAWAY on every connection. Closes each connection once its streams
 * have ended and the client has read everything. At the deadline (clock_now) it closes the rest.
 * Returns when no connection is left. [any thread but an I/O thread] */
void h2_server_drain(struct h2_server *server, uint64_t deadline);
/* The same for a server whose place another one takes at the same address: connections are noticed
 * first, and what clients send before they know is served. */
void h2_server_retire(struct h2_server *server, uint64_t deadline);
/* After h2_server_drain. No stream may still be charged (h2_stream_charge). */
void h2_server_unref(struct h2_server **server);
/* Calls run(context, index) once on each of the server's I/O threads, one after the other. [any
 * thread but an I/O thread] */
void h2_server_each_thread(struct h2_server *server, void (*run)(void *context, uint32_t index),
			   void *context);

/* The value of a header, NULL if there is none. */
const char *h2_stream_header(const struct h2_stream *stream, const char *name);

/* Keeps the struct after the stream was closed. */
void h2_stream_hold(struct h2_stream *stream);
void h2_stream_unref(struct h2_stream *stream);

/*
 * The response's headers, once: status (":status") and the fields given, copied. h2_stream_send
 * appends to its body; h2_stream_finish ends it, with trailers if there are any (copied). A
 * response without a body is h2_stream_finish with no h2_stream_respond before: its trailers are
 * the headers then ("Trailers-Only"). On a closed stream, all of this is discarded. Output is
 * written by h2_stream_flush, h2_stream_finish, or at the end of the turn that reads.
 */
void h2_stream_respond(struct h2_stream *stream, const char *status,
		       const struct h2_header *headers, size_t count);
/* "100 Continue" (RFC 9110, section 15.2.1), before the response. */
void h2_stream_continue(struct h2_stream *stream);
void h2_stream_send(struct h2_stream *stream, struct view data);
void h2_stream_flush(struct h2_stream *stream);
void h2_stream_finish(struct h2_stream *stream, const char *status,
		      const struct h2_header *trailers, size_t count);
/* Has all output been written to the connection? */
bool h2_stream_drained(const struct h2_stream *stream);

/* Charges the stream's memory to the connections' budget until the stream is freed, for services
 * without a gate of their own. False: memory is short. */
bool h2_stream_charge(struct h2_stream *stream);

/* The client may send `bytes` of body in total. */
void h2_stream_window(struct h2_stream *stream, size_t bytes);
/* When `late` is to be called; 0: never. */
void h2_stream_set_deadline(struct h2_stream *stream, uint64_t when);
/* Ends the connection because the peer has exceeded a limit. */
void h2_stream_abuse(struct h2_stream *stream, enum h2_reason reason);
/* Ends the connection gracefully: it takes no further streams, and closes when its streams have
 * ended. */
void h2_stream_leave(struct h2_stream *stream);
/* Counts an error response against the connection's max_errors_per_second. */
void h2_stream_count_error(struct h2_stream *stream);

#endif
