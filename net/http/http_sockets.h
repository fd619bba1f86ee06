/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_HTTP_SOCKETS_H
#define NET_HTTP_HTTP_SOCKETS_H

#include "net/loop.h"

/*
 * The sockets of libcurl that the loop watches. libcurl has a socket watched only while a request
 * uses it. To end that and to begin it again takes six system calls. The socket of a connection
 * that libcurl keeps is therefore watched until it is closed. If something arrives while no request
 * uses it, the server has ended the connection, and the watch ends: libcurl looks before it uses
 * the connection again. [loop thread]
 */
struct http_socket;

struct http_sockets {
	struct loop *loop;
	void (*ready)(void *argument, int fd, unsigned events);
	void *argument;
	struct http_socket *first; /* the one that was used last */
};

void http_sockets_init(struct http_sockets *sockets, struct loop *loop,
		       void (*ready)(void *argument, int fd, unsigned events), void *argument);
/* libcurl wants to know of these events (LOOP_READABLE, LOOP_WRITABLE), which replace earlier ones.
 * 0: of none, but it keeps the connection. */
void http_sockets_watch(struct http_sockets *sockets, int fd, unsigned events);
/* Must be called before the socket of a connection that was kept is closed. libcurl closes others,
 * of attempts to connect and of look-ups, before it says that they need not be watched. */
void http_sockets_forget(struct http_sockets *sockets, int fd);
void http_sockets_fini(struct http_sockets *sockets);

#endif
