/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_sockets.h"

#include "base/memory.h"

struct http_socket {
	struct http_sockets *owner;
	struct http_socket *next;
	struct loop_socket *watch;
	int fd;
	unsigned wanted; /* by libcurl; 0: no request uses it */
};

void http_sockets_init(struct http_sockets *sockets, struct loop *loop,
		       void (*ready)(void *argument, int fd, unsigned events), void *argument)
{
	*sockets = (struct http_sockets){ .loop = loop, .ready = ready, .argument = argument };
}

static void on_ready(void *argument, int fd, unsigned events)
{
	struct http_socket *s = argument;
	if (s->wanted)
		s->owner->ready(s->owner->argument, fd, events);
	else
		loop_socket_watch(s->watch, 0);
}

/* Takes it out of the list; NULL: there is none. */
static struct http_socket *take(struct http_sockets *sockets, int fd)
{
	struct http_socket **link = &sockets->first, *s;
	while ((s = *link) && s->fd != fd)
		link = &s->next;
	if (s)
		*link = s->next;
	return s;
}

static struct http_socket *socket_new(struct http_sockets *sockets, int fd)
{
	struct http_socket *s = memory_new(sizeof *s);
	*s = (struct http_socket){ .owner = sockets, .fd = fd };
	s->watch = loop_socket_new(sockets->loop, fd, on_ready, s);
	return s;
}

static void socket_free(struct http_socket *s)
{
	loop_socket_unref(&s->watch);
	memory_free(s);
}

void http_sockets_watch(struct http_sockets *sockets, int fd, unsigned events)
{
	struct http_socket *s = take(sockets, fd);
	if (!s && events)
		s = socket_new(sockets, fd);
	if (!s)
		return;
	s->next = sockets->first;
	sockets->first = s;
	s->wanted = events;
	loop_socket_watch(s->watch, events ? events : LOOP_READABLE);
}

void http_sockets_forget(struct http_sockets *sockets, int fd)
{
	struct http_socket *s = take(sockets, fd);
	if (s)
		socket_free(s);
}

void http_sockets_fini(struct http_sockets *sockets)
{
	while (sockets->first)
		http_sockets_forget(sockets, sockets->first->fd);
}
