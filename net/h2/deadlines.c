/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2/private.h"

#include "base/clock.h"

#include <string.h>

/* Each connection has one timer. It fires at the earliest of the connection's deadlines or before,
 * and then checks them all. */

#define SECOND UINT64_C(1000000000)

static void earlier(uint64_t *when, uint64_t candidate)
{
	if (candidate && candidate < *when)
		*when = candidate;
}

static uint64_t ns(struct duration d, uint64_t if_zero)
{
	return d.ns > 0 ? (uint64_t)d.ns : if_zero;
}

static uint64_t after(uint64_t since, uint64_t delay)
{
	return since && delay ? since + delay : 0;
}

static uint64_t idle_time(const struct h2_options *o)
{
	return ns(o->max_connection_idle, (uint64_t)o->limits.idle_timeout.ns);
}

static uint64_t silence_ends(const struct h2_connection *c)
{
	const struct h2_options *o = &c->shard->server->options;
	return c->ping_at ? c->ping_at + ns(o->keepalive_timeout, 20 * SECOND)
			  : c->read_at + ns(o->keepalive_time, 7200 * SECOND);
}

static uint64_t next_deadline(const struct h2_connection *c)
{
	const struct h2_options *o = &c->shard->server->options;
	uint64_t when = UINT64_MAX;
	earlier(&when, c->ends_at);
	earlier(&when, c->retry_at);
	if (c->ending == H2_SHUT)
		return when;
	if (!c->settled)
		earlier(&when, after(c->opened_at, (uint64_t)o->limits.handshake_timeout.ns));
	else
		earlier(&when, silence_ends(c));
	earlier(&when, after(c->header_since, (uint64_t)o->limits.header_timeout.ns));
	earlier(&when, after(c->stalled_since, (uint64_t)o->limits.write_timeout.ns));
	if (c->idle && c->ending == H2_OPEN)
		earlier(&when, after(c->idle_since, idle_time(o)));
	if (c->ending == H2_OPEN)
		earlier(&when, c->ages_at);
	for (const struct h2_stream *s = c->streams; s; s = s->next)
		earlier(&when, s->deadline);
	return when;
}

static bool passed(uint64_t when, uint64_t now)
{
	return when && now >= when;
}

/* The reason why the connection must end immediately, if there is one. */
static enum h2_reason overdue(const struct h2_connection *c, uint64_t now)
{
	const struct h2_options *o = &c->shard->server->options;
	if (!c->settled &&
	    passed(after(c->opened_at, (uint64_t)o->limits.handshake_timeout.ns), now))
		return H2_HANDSHAKE_TIMEOUT;
	if (passed(after(c->header_since, (uint64_t)o->limits.header_timeout.ns), now))
		return H2_HEADER_TIMEOUT;
	if (passed(after(c->stalled_since, (uint64_t)o->limits.write_timeout.ns), now))
		return H2_OUTBOUND;
	if (c->ping_at && passed(silence_ends(c), now))
		return H2_KEEPALIVE;
	return H2_REASON_NONE;
}

static void end_by_time(struct h2_connection *c, uint64_t now)
{
	const struct h2_options *o = &c->shard->server->options;
	if (c->ending == H2_OPEN && c->idle && passed(after(c->idle_since, idle_time(o)), now))
		h2_connection_end(c, H2_IDLE, false, now + H2_ENDING_NS);
	else if (c->ending == H2_OPEN && passed(c->ages_at, now))
		h2_connection_end(c, H2_AGE, false,
				  o->max_connection_age_grace.ns
					  ? now + ns(o->max_connection_age_grace, 0)
					  : 0);
}

static const uint8_t alive_ping[8] = "alive?";

static void send_keepalive(struct h2_connection *c, uint64_t now)
{
	if (c->ping_at || !c->settled || !passed(silence_ends(c), now) || !h2_connection_wake(c))
		return;
	c->ping_at = now;
	nghttp2_submit_ping(c->session, NGHTTP2_FLAG_NONE, alive_ping);
}

static void call_late_streams(struct h2_connection *c, uint64_t now)
{
	struct h2_stream *next;
	for (struct h2_stream *s = c->streams; s; s = next) {
		next = s->next;
		if (!passed(s->deadline, now))
			continue;
		s->deadline = 0;
		if (s->finished)
			c->fault = H2_OUTBOUND; /* its reply is not read */
		else
			s->service->late(s, now);
	}
}

static void on_time(uv_timer_t *timer)
{
	struct h2_connection *c = timer->data;
	uint64_t now = clock_now();
	c->wakes_at = 0;
	if (passed(c->ends_at, now)) {
		h2_connection_abort(c);
		return;
	}
	if (passed(c->retry_at, now))
		c->retry_at = 0;
	if (c->ending != H2_SHUT) {
		c->in_turn = true;
		c->fault = c->fault ? c->fault : overdue(c, now);
		if (!c->fault) {
			end_by_time(c, now);
			send_keepalive(c, now);
			call_late_streams(c, now);
		}
		c->in_turn = false;
		h2_connection_flush(c);
	}
	if (c->ending != H2_CLOSED)
		h2_connection_watch(c);
}

void h2_connection_wake_by(struct h2_connection *c, uint64_t when)
{
	if (c->ending == H2_CLOSED || when == UINT64_MAX || (c->wakes_at && c->wakes_at <= when))
		return;
	uint64_t now = clock_now();
	uv_update_time(c->timer.loop);
	uv_timer_start(&c->timer, on_time, when > now ? (when - now + 999999) / 1000000 : 0, 0);
	c->wakes_at = when;
}

void h2_connection_watch(struct h2_connection *c)
{
	h2_connection_wake_by(c, next_deadline(c));
}
