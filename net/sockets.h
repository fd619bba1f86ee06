/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_SOCKETS_H
#define NET_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The listening sockets of the process, by address. They outlive the servers that accept from them:
 * a server that is started for an address on which another one listens accepts from the same
 * socket, so that connections are never refused while one takes the other's place.
 *
 * A socket is shared between owners, never within one: two servers of one configuration with the
 * same address are an error, as bind reports it. An owner is the number of a graph. A server that
 * passes from one graph to the next gets another one. Any thread.
 */
struct sockets;

/* Of every listening socket: connections that the kernel keeps until they are accepted. */
enum { SOCKETS_BACKLOG = 4096 };

struct sockets *sockets_new(void);
void sockets_unref(struct sockets **sockets); /* nobody listens any more */

/* A server's way to them. sockets NULL: its sockets are its own. */
struct sockets_access {
	struct sockets *sockets;
	const _Atomic uint64_t *owner;
};

/* A descriptor of the socket that another owner has at the address, -1: there is none. */
int sockets_share(const struct sockets_access *access, const char *address);
/* The caller listens at the address with fd, which stays its own. */
void sockets_add(const struct sockets_access *access, const char *address, int fd);
/* Closes fd, which came from sockets_share or was given to sockets_add; true: nobody else listens
 * there, and the address is free. */
bool sockets_close(const struct sockets_access *access, const char *address, int fd);

#endif
