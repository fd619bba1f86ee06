/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/ioctl.h>

#include "base/clock.h"
#include "net/http/http_internal.h"

/*
 * libmicrohttpd cannot continue a chunked body if the line of a chunk's size and extensions
 * (RFC 9112, section 7.1) does not fit into the connection's buffer. It then neither reads nor
 * calls back, and wants to run again at once. What the client has sent beyond the buffer stays in
 * the socket.
 *
 * While a buffer is not full, each turn of the library reads into it, or grows it by 128 bytes or
 * more and reads into that. After CHECKS checks of TURNS_PER_CHECK turns without progress, it is
 * full.
 */
enum { TURNS_PER_CHECK = 8, CHECKS = 16 };
#define CHECK_NS UINT64_C(20000000) /* a check looks at each chunked body */

void http_stall_watch(struct http_stalls *all, struct http_request *r)
{
	r->stall = (struct http_stall){ .watched = true, .next = all->first };
	if (all->first)
		all->first->stall.previous = r;
	all->first = r;
}

void http_stall_unwatch(struct http_stalls *all, struct http_request *r)
{
	struct http_stall *s = &r->stall;
	if (!s->watched)
		return;
	*(s->previous ? &s->previous->stall.next : &all->first) = s->next;
	if (s->next)
		s->next->stall.previous = s->previous;
	s->watched = false;
}

static bool has_unread(const struct http_connection *c)
{
	int unread = 0;
	return (!ioctl(c->deadline.socket, FIONREAD, &unread) && unread) ||
	       (c->session && http_tls_has_unread(c->session));
}

/* True: for the last time that was necessary. */
static bool check(struct http_request *r, bool calm)
{
	struct http_stall *s = &r->stall;
	uint64_t received = atomic_load(&r->connection->deadline.received);
	bool progress =
		calm || received != s->received || r->x.waiting_since || !has_unread(r->connection);
	s->received = received;
	s->checks = progress ? 0 : s->checks + 1;
	return s->checks >= CHECKS;
}

void http_stall_turn(struct http_stalls *all, bool again)
{
	struct http_request *next;
	if (!again)
		all->calm = true;
	if (!again || !all->first || ++all->turns < TURNS_PER_CHECK)
		return;
	uint64_t now = clock_now();
	if (now < all->next)
		return;
	for (struct http_request *r = all->first; r; r = next) {
		next = r->stall.next;
		if (!check(r, all->calm))
			continue;
		http_stall_unwatch(all, r);
		all->stalled(r);
	}
	all->turns = 0;
	all->calm = false;
	all->next = now + CHECK_NS;
}
