/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2/private.h"

/* Enough for the preface, SETTINGS, WINDOW_UPDATE and one or two PINGs of every known client. */
enum { HISTORY_MAX = 512 };

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

/* Not for a peer that has more connections than theirs. */
void h2_connection_make_room_to_wake(struct h2_connection *c)
{
	struct h2_server *s = c->shard->server;
	if (!c->asleep || net_budget_room(&s->options.budget) >= H2_WAKE_COST)
		return;
	uint32_t own = peer_count_of(s->peers, c->key); /* 0: its owner counts it */
	h2_shard_close_idle(c->shard, H2_IDLE_TO_CLOSE, H2_JUST_ANSWERED_NS, own ? own - 1 : 0);
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
