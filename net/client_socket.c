/* SPDX-License-Identifier: Apache-2.0 */
#include "net/client_socket.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* One entry per descriptor. Untouched pages cost no memory. */
static struct watched {
	_Atomic bool used;
	_Atomic enum client_socket_way way;
	_Atomic int broken;      /* errno of the first write that failed; 0: none */
	_Atomic int left;        /* how often a failed write still says that it would block */
	_Atomic uint64_t cookie; /* the kernel's identifier of the socket */
} sockets[CLIENT_SOCKETS_MAX];

static uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &(socklen_t){ sizeof cookie });
	return cookie;
}

static bool is_in_range(int fd)
{
	return fd >= 0 && fd < CLIENT_SOCKETS_MAX;
}

bool client_socket_watch(int fd, enum client_socket_way way)
{
	if (!is_in_range(fd))
		return false;
	atomic_store(&sockets[fd].broken, 0);
	atomic_store(&sockets[fd].cookie, cookie_of(fd));
	atomic_store(&sockets[fd].left, CLIENT_SOCKET_BLOCKS_MAX);
	atomic_store(&sockets[fd].way, way);
	atomic_store(&sockets[fd].used, true);
	return true;
}

bool client_socket_is_watched(int fd)
{
	return is_in_range(fd) && atomic_load(&sockets[fd].used) &&
	       cookie_of(fd) == atomic_load(&sockets[fd].cookie);
}

/* ---- writing */

static size_t length_of(const struct msghdr *message)
{
	size_t length = 0;
	for (size_t i = 0; i < message->msg_iovlen; i++)
		length += message->msg_iov[i].iov_len;
	return length;
}

static bool is_readable(int fd)
{
	char byte;
	return recvfrom(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT, NULL, NULL) > 0;
}

/* A connection that was reset is shut down already. To do it again wakes those who wait for the
 * socket, also if they wait for an edge, so the library reads, and tries the write again. */
static bool blocks(int fd)
{
	if (!is_readable(fd) || atomic_fetch_sub(&sockets[fd].left, 1) <= 0)
		return false;
	shutdown(fd, SHUT_RDWR);
	return true;
}

/* The first error is the one that the peer has caused; later ones are always EPIPE. */
static ssize_t after_write(int fd, ssize_t sent, size_t length)
{
	int error = errno, first = 0;
	if (sent >= 0 || (error != EPIPE && error != ECONNRESET))
		return sent;
	if (client_socket_is_watched(fd)) {
		atomic_compare_exchange_strong(&sockets[fd].broken, &first, error);
		if (atomic_load(&sockets[fd].way) == CLIENT_SOCKET_DONE)
			sent = (ssize_t)length;
		else if (blocks(fd))
			error = EAGAIN;
		else if (first)
			error = first;
	}
	errno = error;
	return sent;
}

__attribute__((visibility("default"))) ssize_t send(int fd, const void *data, size_t length,
						    int flags)
{
	return after_write(fd, sendto(fd, data, length, flags, NULL, 0), length);
}

__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *message,
						       int flags)
{
	ssize_t sent = syscall(SYS_sendmsg, fd, message, flags);
	return sent < 0 ? after_write(fd, sent, length_of(message)) : sent;
}

/* ---- reading */

ssize_t client_socket_after_read(int fd, ssize_t got)
{
	int error = !got && is_in_range(fd) ? atomic_load(&sockets[fd].broken) : 0;
	if (!error || !client_socket_is_watched(fd))
		return got;
	errno = error;
	return -1;
}

__attribute__((visibility("default"))) ssize_t recv(int fd, void *data, size_t length, int flags)
{
	ssize_t got = recvfrom(fd, data, length, flags, NULL, NULL);
	return length ? client_socket_after_read(fd, got) : got;
}
