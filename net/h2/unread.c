/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2/private.h"

enum {
	SESSION_COST =
		1024,   /* memory of nghttp2 for a stream and its headers, with malloc's overhead */
	ROOM_SHARE = 32 /* the divisor of what is left that bounds one connection */
};

static int64_t unread_bytes(const struct h2_connection *c)
{
	return (int64_t)(c->unread + c->pending.len);
}

static bool passes_limit(const struct h2_connection *c)
{
	return unread_bytes(c) + (int64_t)c->unread_replies * H2_REPLY_COST >
	       c->shard->server->options.limits.max_outbound_bytes;
}

/* Charges what the client has not read to the memory budget, and leaves room in it for others. */
static bool charge(struct h2_connection *c, int64_t bytes)
{
	const struct net_budget *budget = &c->shard->server->options.budget;
	int64_t more = bytes - c->unread_charged;
	if (more > 0 &&
	    (bytes > net_budget_room(budget) / ROOM_SHARE || !net_budget_hold(budget, more)))
		return false;
	if (more < 0)
		net_budget_release(budget, -more);
	c->unread_charged = bytes;
	return true;
}

void h2_connection_judge_unread(struct h2_connection *c)
{
	int64_t reply = (int64_t)c->shard->server->stream_size + SESSION_COST;
	if (c->fault)
		return;
	if (passes_limit(c))
		c->fault = H2_OUTBOUND;
	else if (!charge(c, unread_bytes(c) + c->unread_replies * reply))
		c->fault = H2_MEMORY;
}

void h2_connection_release_unread(struct h2_connection *c)
{
	charge(c, 0);
}
