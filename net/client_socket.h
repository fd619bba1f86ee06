/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_CLIENT_SOCKET_H
#define NET_CLIENT_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * The sockets of the clients that libraries own.
 *
 * A server that ends a connection may have said why before: by an alert of TLS, or by an early
 * response. If it then resets the connection, the client still has that to read, but its next write
 * fails, and a library that stops at the failed write never reads it. On a watched socket such a
 * write is therefore reported as done, or as one that would block, and the read that would report
 * the end of the stream fails with the error instead. So the error follows all that the server has
 * sent.
 *
 * The program defines its own send, sendmsg and recv for this, and recvmsg in
 * net/grpc/grpc_allowance.c. They take precedence over those of the C library. [any thread]
 */

#define CLIENT_SOCKETS_MAX (1 << 20) /* the kernel's default of fs.nr_open */

/* What a write says that has failed. */
enum client_socket_way {
	/* It is done: what it would have sent is lost either way. For a library that reads to the
	 * end while it waits for an answer. */
	CLIENT_SOCKET_DONE,
	/* While the socket has something to read: it would block. Whoever waits for the socket is
	 * woken at once. After this number of times it fails, for a library may not be reading. */
	CLIENT_SOCKET_BLOCKS,
};
#define CLIENT_SOCKET_BLOCKS_MAX 16

/* A new socket, before it is connected. False: the descriptor is out of range. Nothing has to be
 * said when it is closed. */
bool client_socket_watch(int fd, enum client_socket_way way);
/* Has the descriptor been passed to client_socket_watch, and is it still the same socket? */
bool client_socket_is_watched(int fd);
/* What a read that has returned `got` is to return; sets errno. */
ssize_t client_socket_after_read(int fd, ssize_t got);

#endif
