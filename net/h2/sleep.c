/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2/private.h"

#include "base/clock.h"

/* Enough for the preface, SETTINGS, WINDOW_UPDATE and one or two PINGs of every known client. */
enum { HISTORY_MAX = 512 };
/* How long, and how often, a session that is to wake asks for memory. */
#define PATIENCE_NS UINT64_C(2000000000)
#define RETRY_NS UINT64_C(20000000)

void h2_connection_remember(struct h2_connection *c, struct view data)
{
	if (c->wakeful)
		return;
	c->history.max = HISTORY_MAX;
	c->wakeful = c->last_stream || !bytes_add(&c->history, data.at, data.len);
	if (c->wakeful)
		bytes_fini(&c->history);
}

void h2_connection_fall_asleep(struct h2_connection *c)
{
	if (!c->session || c->wakeful || c->last_stream || !c->settled || c->ending != H2_OPEN ||
	    c->pending.len || nghttp2_session_want_write(c->session))
		return;
	nghttp2_session_del(c->session);
	c->session = NULL;
	c->asleep = true;
	net_budget_release(&c->shard->server->options.budget, H2_WAKE_COST);
}

/* A connection that has ended needs no session. */
static bool has_ended(const struct h2_connection *c)
{
	uint8_t byte;
	return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static bool has_room(const struct h2_connection *c)
{
	return net_budget_room(&c->shard->server->options.budget) >= H2_WAKE_COST;
}

/* Nothing is closed for a peer that has, or had at first, more connections than theirs. */
static bool make_room(struct h2_connection *c)
{
	uint32_t keep = c->drowsy_keep;
	h2_shard_close_idle(c->shard, H2_IDLE_TO_CLOSE, H2_JUST_ANSWERED_NS, keep);
	if (has_room(c))
		return true;
	h2_server_ask_to_close_idle(c->shard->server, c->shard, H2_JUST_ANSWERED_NS, keep);
	return false;
}

bool h2_connection_may_wake(struct h2_connection *c)
{
	uint64_t now = clock_now();
	if (c->ending >= H2_SHUT)
		return true;
	if (c->asleep && !c->drowsy_since) {
		c->drowsy_since = now;
		c->drowsy_keep = peer_count_of(c->shard->server->peers, c->key) - 1;
	}
	if (!c->asleep || has_room(c) || make_room(c) || has_ended(c) ||
	    now - c->drowsy_since >= PATIENCE_NS) {
		c->drowsy_since = 0;
		return true;
	}
	c->retry_at = now + RETRY_NS;
	h2_connection_wake_by(c, c->retry_at);
	return false;
}

/* Recreates the session. Its output for the replayed input has already been sent, and is
 * discarded. */
bool h2_connection_wake(struct h2_connection *c)
{
	const uint8_t *frame;
	if (!c->asleep)
		return true;
	if (!net_budget_hold(&c->shard->server->options.budget, H2_WAKE_COST)) {
		c->fault = H2_MEMORY;
		return false;
	}
	c->asleep = false;
	if (!h2_session_open(c))
		return false;
	c->replaying = true;
	ssize_t taken = nghttp2_session_mem_recv(c->session, c->history.at, c->history.len);
	while (nghttp2_session_mem_send(c->session, &frame) > 0)
		;
	c->replaying = false;
	return taken >= 0;
}
