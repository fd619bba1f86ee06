/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/memory.h"
#include "net/http/http_internal.h"
#include "net/tls/tls_hello.h"

/* The first bytes of HTTP/2 without TLS (RFC 9113 §3.4). No HTTP/1.1 method is PRI. */
#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

enum {
	EVENTS = 64,
	/* A connection whose protocol is unknown after this number of reads is HTTP/1.1: a client
	 * that drips a ClientHello must not have it parsed again for each byte. */
	LOOKS_MAX = 24
};

struct http_arrival {
	struct http_deadline deadline;
	struct http_arrival *previous, *next;
	struct sockaddr_storage address;
	int looks;
	char peer[HTTP_PEER_MAX];
};

enum protocol { UNKNOWN, HTTP_1_1_OR_1_0, HTTP_2_0, GONE };

static enum protocol by_preface(struct view wire)
{
	size_t len = wire.len < sizeof PREFACE - 1 ? wire.len : sizeof PREFACE - 1;
	if (memcmp(wire.at, PREFACE, len) != 0)
		return HTTP_1_1_OR_1_0;
	return len == sizeof PREFACE - 1 ? HTTP_2_0 : UNKNOWN;
}

static enum protocol by_hello(struct view wire)
{
	static const enum protocol protocols[] = { [TLS_HELLO_PARTIAL] = UNKNOWN,
						   [TLS_HELLO_OFFERS] = HTTP_2_0,
						   [TLS_HELLO_OTHER] = HTTP_1_1_OR_1_0 };
	return protocols[tls_hello_look(wire, "h2")];
}

static enum protocol look(struct http_server *server, struct http_arrival *a)
{
	uint8_t wire[TLS_HELLO_MAX];
	bool secure = server->config->tls.present.enabled;
	ssize_t len = recv(a->deadline.socket, wire, secure ? sizeof wire : sizeof PREFACE - 1,
			   MSG_PEEK | MSG_DONTWAIT);
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return UNKNOWN;
	if (len <= 0)
		return GONE;
	struct view seen = { wire, (size_t)len };
	enum protocol found = secure ? by_hello(seen) : by_preface(seen);
	return found == UNKNOWN && ++a->looks >= LOOKS_MAX ? HTTP_1_1_OR_1_0 : found;
}

static void close_arrival(struct http_server *server, struct http_arrival *a)
{
	close(a->deadline.socket);
	http_memory_release(server, a->deadline.replaced);
	http_count_out(server, a->peer);
}

static void to_http_1(struct http_server *server, struct http_arrival *a)
{
	struct http_origin origin = { a->address, a->deadline.since };
	http_daemon_add(server, a->deadline.socket, &origin);
}

/* What the connection was charged in excess of an HTTP/2 connection is released. */
static void to_http_2(struct http_server *server, struct http_arrival *a)
{
	net_budget_release(&server->budget,
			   server->connection_cost - h2_server_connection_cost(server->h2));
	h2_server_adopt(server->h2, a->deadline.socket, a->peer);
}

static void settle(struct http_server *server, struct http_arrival *a, enum protocol protocol)
{
	struct http_arrivals *all = &server->arrivals;
	epoll_ctl(all->epoll, EPOLL_CTL_DEL, a->deadline.socket, NULL);
	bool ended = http_deadline_leave(&server->deadlines, &a->deadline);
	*(a->previous ? &a->previous->next : &all->first) = a->next;
	if (a->next)
		a->next->previous = a->previous;
	if (ended || protocol == GONE)
		close_arrival(server, a);
	else if (protocol == HTTP_2_0)
		to_http_2(server, a);
	else
		to_http_1(server, a);
	memory_free(a);
}

void http_arrivals_take(struct http_server *server, int socket, const struct sockaddr *address,
			socklen_t len, const char *peer)
{
	struct http_arrivals *all = &server->arrivals;
	struct http_arrival *a = memory_new(sizeof *a);
	struct epoll_event event = { EPOLLIN | EPOLLRDHUP | EPOLLET, { .ptr = a } };
	memcpy(&a->address, address, len);
	memcpy(a->peer, peer, strlen(peer) + 1);
	a->next = all->first;
	if (a->next)
		a->next->previous = a;
	all->first = a;
	http_deadline_join(&server->deadlines, &a->deadline, socket,
			   server->config->tls.present.enabled ? HTTP_PHASE_HANDSHAKE
							       : HTTP_PHASE_HEADER,
			   0);
	enum protocol protocol = server->h2 ? UNKNOWN : HTTP_1_1_OR_1_0;
	if (!protocol && epoll_ctl(all->epoll, EPOLL_CTL_ADD, socket, &event) != 0)
		protocol = GONE;
	if (protocol)
		settle(server, a, protocol);
}

void http_arrivals_pass(struct http_server *server)
{
	struct epoll_event events[EVENTS];
	int count;
	do {
		count = epoll_wait(server->arrivals.epoll, events, EVENTS, 0);
		for (int i = 0; i < count; i++) {
			struct http_arrival *a = events[i].data.ptr;
			enum protocol protocol = a->deadline.ended ? GONE : look(server, a);
			if (protocol)
				settle(server, a, protocol);
		}
	} while (count == EVENTS);
}

void http_arrivals_close(struct http_server *server)
{
	while (server->arrivals.first)
		settle(server, server->arrivals.first, GONE);
}
