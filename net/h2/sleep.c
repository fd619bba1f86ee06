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
	net_budget_release(&c->shard->server->options.budget, H2_CONNECTION_COST - H2_ASLEEP_COST);
}

/* Recreates the session. Its output for the replayed input has already been sent, and is
 * discarded. */
bool h2_connection_wake(struct h2_connection *c)
{
	const uint8_t *frame;
	if (!c->asleep)
		return true;
	if (!net_budget_hold(&c->shard->server->options.budget,
			     H2_CONNECTION_COST - H2_ASLEEP_COST)) {
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
