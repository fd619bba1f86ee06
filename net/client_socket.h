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
 * write may therefore succeed (what it would have sent is lost either way), and the read that would
 * report the end of the stream fails with the error instead. So the error follows all that the
 * server has sent.
 *
 * The program defines its own send, sendmsg and recv for this. They take precedence over those of
 * the C library. [any thread]
 */

#define CLIENT_SOCKETS_MAX (1 << 20) /* the kernel's default of fs.nr_open */

/* A new socket, before it is connected. False: the descriptor is out of range. Nothing has to be
 * said when it is closed. reads_on: writes succeed as above. Not for the gRPC C core, which now and
 * then does not read to the end: requests would wait for their timeout. */
bool client_socket_watch(int fd, bool reads_on);
/* Has the descriptor been passed to client_socket_watch, and is it still the same socket? */
bool client_socket_is_watched(int fd);

#endif
