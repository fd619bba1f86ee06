/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "tests/bench/peers/counting.h"

/*
 * sink_http
 *
 * An OTLP server over HTTP/1.1 that counts what it gets (counting.h): requests with a
 * Content-Length, on connections that stay open, on one thread. Prints "port N".
 */
enum { READ_BYTES = 1 << 20, EVENTS = 64 };

struct link {
	int fd;
	bool continued;  /* the client got 100 Continue */
	struct bytes in; /* the current request, as far as it has come */
};

static const char accepted[] = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n"
			       "Content-Length: 0\r\n\r\n";
static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

static void answer(const struct link *l, const char *text)
{
	size_t len = strlen(text);
	if (send(l->fd, text, len, MSG_NOSIGNAL) != (ssize_t)len)
		die("a response cannot be sent");
}

/* The value of a header, NULL if it is absent. `head` ends with a zero. */
static const char *header(const char *head, const char *name)
{
	size_t len = strlen(name);
	for (const char *at = strchr(head, '\n'); at; at = strchr(at + 1, '\n'))
		if (!strncasecmp(at + 1, name, len) && at[1 + len] == ':')
			return at + 2 + len;
	return NULL;
}

/* The length of the first request in the buffer when it is complete; 0 before. */
static size_t whole(struct link *l)
{
	uint8_t *end = memmem(l->in.at, l->in.len, "\r\n\r\n", 4);
	if (!end)
		return 0;
	size_t head = (size_t)(end - l->in.at) + 4;
	*end = '\0';
	const char *length = header((const char *)l->in.at, "Content-Length");
	bool expects = header((const char *)l->in.at, "Expect");
	*end = '\r';
	if (!length)
		die("a request has no Content-Length");
	if (expects && !l->continued)
		answer(l, go_on);
	l->continued = expects;
	size_t body = strtoul(length, NULL, 10);
	if (l->in.len < head + body)
		return 0;
	count_request((struct view){ l->in.at + head, body });
	return head + body;
}

static void serve(struct link *l)
{
	size_t len;
	while (l->in.len && (len = whole(l))) {
		memmove(l->in.at, l->in.at + len, l->in.len - len);
		l->in.len -= len;
		l->continued = false;
		answer(l, accepted);
	}
}

static void take(struct link *l)
{
	static uint8_t part[READ_BYTES];
	ssize_t n = recv(l->fd, part, sizeof part, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0) {
		if (!bytes_add(&l->in, part, (size_t)n))
			die("a request is too large");
		serve(l);
		return;
	}
	close(l->fd);
	bytes_fini(&l->in);
	memory_free(l);
}

static void watch(int poll, int fd, struct link *l)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = l };
	if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event))
		die("a connection cannot be watched");
}

static void let_in(int poll, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), on = 1;
	if (fd < 0)
		die("a connection cannot be accepted");
	struct link *l = memory_new(sizeof *l);
	l->fd = fd;
	bytes_init(&l->in, BODY_MAX);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	watch(poll, fd, l);
}

int main(void)
{
	struct sockaddr_in own = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof own;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int poll = epoll_create1(EPOLL_CLOEXEC);
	if (bind(listener, (struct sockaddr *)&own, len) || listen(listener, SOMAXCONN) ||
	    getsockname(listener, (struct sockaddr *)&own, &len))
		die("no port");
	watch(poll, listener, NULL);
	counting_start(ntohs(own.sin_port));
	for (;;) {
		struct epoll_event events[EVENTS];
		int count = epoll_wait(poll, events, EVENTS, -1);
		for (int i = 0; i < count; i++)
			if (events[i].data.ptr)
				take(events[i].data.ptr);
			else
				let_in(poll, listener);
	}
}
