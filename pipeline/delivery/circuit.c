/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/circuit.h"

#include "base/clock.h"

#include <assert.h>

/* A single request that fails must not slow down the others. */
enum { FAILURES_MAX = 3 };

static void due(void *argument);

void circuit_init(struct circuit *c, const struct circuit_options *options)
{
	*c = (struct circuit){ .options = *options, .timed = UINT64_MAX };
	c->end = &c->line;
	c->timer = loop_timer_new(options->loop, due, c);
	pthread_mutex_init(&c->lock, NULL);
}

void circuit_fini(struct circuit *c)
{
	assert(!c->line);
	loop_timer_unref(&c->timer);
	pthread_mutex_destroy(&c->lock);
}

/* Under the lock. */
static void set_state(struct circuit *c, enum circuit_state state)
{
	c->state = state;
	if (c->options.gauge)
		metric_set(c->options.gauge, state);
}

/* Under the lock. */
static void append(struct circuit *c, struct circuit_place *place)
{
	place->next = NULL;
	*c->end = place;
	c->end = &place->next;
}

/* Under the lock. The first `count` places of the line. */
static struct circuit_place *take(struct circuit *c, uint32_t count)
{
	struct circuit_place *first = c->line, **link = &first;
	while (count-- && *link)
		link = &(*link)->next;
	c->line = *link;
	*link = NULL;
	if (!c->line)
		c->end = &c->line;
	return first;
}

/* Under the lock. Those that a half-open circuit permits now. */
static struct circuit_place *take_allowed(struct circuit *c)
{
	uint32_t count = c->allowed > c->flying ? c->allowed - c->flying : 0;
	struct circuit_place *taken = take(c, count);
	for (struct circuit_place *p = taken; p; p = p->next) {
		p->counted = true;
		c->flying++;
	}
	return taken;
}

static void each(struct circuit_place *list, void (*call)(struct circuit_place *place))
{
	while (list) {
		struct circuit_place *place = list;
		list = list->next;
		call(place);
	}
}

static void start(struct circuit *c, struct circuit_place *list)
{
	each(list, c->options.start);
}

/* ---- the timer: for the next probe, and for the deadlines of those in line */

/* On the loop thread, under the lock. */
static void set_timer(struct circuit *c, uint64_t now)
{
	c->timed = c->state == CIRCUIT_OPEN ? c->probe_at : UINT64_MAX;
	for (struct circuit_place *p = c->line; p; p = p->next)
		if (p->deadline < c->timed)
			c->timed = p->deadline;
	if (c->timed != UINT64_MAX)
		loop_timer_start(c->timer, c->timed > now ? c->timed - now : 0);
}

static void set_timer_later(void *argument)
{
	struct circuit *c = argument;
	pthread_mutex_lock(&c->lock);
	set_timer(c, clock_now());
	pthread_mutex_unlock(&c->lock);
}

/* Under the lock. The circuit outlives what is posted: the place is still in line. */
static void wait_in_line(struct circuit *c, struct circuit_place *place)
{
	append(c, place);
	if (place->deadline >= c->timed)
		return;
	c->timed = place->deadline;
	loop_post(c->options.loop, set_timer_later, c);
}

/* Under the lock. Takes the places whose deadline is before this time. */
static struct circuit_place *take_expired(struct circuit *c, uint64_t time)
{
	struct circuit_place *expired = NULL, **link = &c->line;
	c->end = &c->line;
	while (*link) {
		struct circuit_place *place = *link;
		if (place->deadline < time) {
			*link = place->next;
			place->next = expired;
			expired = place;
		} else {
			link = &place->next;
			c->end = link;
		}
	}
	return expired;
}

/* The next probe is due, unless the destination has asked for more time since, or a place in line
 * has waited long enough. */
static void due(void *argument)
{
	struct circuit *c = argument;
	struct circuit_place *next = NULL;
	uint64_t now = clock_now();
	pthread_mutex_lock(&c->lock);
	struct circuit_place *expired = take_expired(c, now + 1);
	if (c->state == CIRCUIT_OPEN && now >= c->probe_at) {
		set_state(c, CIRCUIT_HALF_OPEN);
		c->allowed = 1;
		next = take_allowed(c);
	}
	set_timer(c, now);
	pthread_mutex_unlock(&c->lock);
	start(c, next);
	each(expired, c->options.expired);
}

/* ---- entering and leaving */

bool circuit_enter(struct circuit *c, struct circuit_place *place)
{
	place->counted = false;
	if (c->state == CIRCUIT_CLOSED)
		return true;
	pthread_mutex_lock(&c->lock);
	bool enters = c->state == CIRCUIT_CLOSED || c->bypassed;
	if (!enters && c->state == CIRCUIT_HALF_OPEN && c->flying < c->allowed) {
		place->counted = enters = true;
		c->flying++;
	}
	if (!enters)
		wait_in_line(c, place);
	pthread_mutex_unlock(&c->lock);
	return enters;
}

/* Under the lock. One more of those that a half-open circuit permits was answered. */
static struct circuit_place *widen(struct circuit *c)
{
	if (++c->allowed < c->options.consumers)
		return take_allowed(c);
	set_state(c, CIRCUIT_CLOSED);
	c->failures = 0;
	return take(c, UINT32_MAX);
}

void circuit_leave(struct circuit *c, struct circuit_place *place, bool answered)
{
	struct circuit_place *next = NULL;
	if (!place->counted) {
		if (answered && c->failures && c->state == CIRCUIT_CLOSED)
			c->failures = 0;
		return;
	}
	pthread_mutex_lock(&c->lock);
	place->counted = false;
	c->flying--;
	if (c->state == CIRCUIT_HALF_OPEN)
		next = answered ? widen(c) : take_allowed(c);
	pthread_mutex_unlock(&c->lock);
	start(c, next);
}

/* Under the lock. */
static void open(struct circuit *c, uint64_t now, int64_t asked_ms)
{
	const struct retry_config *r = c->options.retry;
	bool first = c->state == CIRCUIT_CLOSED;
	c->interval_ns = first ? r->initial_interval.ns : retry_next_interval(r, c->interval_ns);
	uint64_t delay = retry_delay(r, c->interval_ns, asked_ms);
	set_state(c, CIRCUIT_OPEN);
	c->failures = 0;
	c->probe_at = now + delay;
}

/* Under the lock. It is open already: the destination may ask for more time. */
static void postpone(struct circuit *c, uint64_t now, int64_t asked_ms)
{
	uint64_t asked = asked_ms > 0 ? now + retry_delay(c->options.retry, 0, asked_ms) : 0;
	if (asked > c->probe_at)
		c->probe_at = asked;
}

static bool is_in(const struct circuit_place *list, const struct circuit_place *place)
{
	while (list && list != place)
		list = list->next;
	return list != NULL;
}

enum circuit_outcome circuit_fail(struct circuit *c, struct circuit_place *place, int64_t asked_ms)
{
	uint64_t now = clock_now();
	pthread_mutex_lock(&c->lock);
	c->flying -= place->counted;
	place->counted = false;
	if (c->bypassed ||
	    (c->state == CIRCUIT_CLOSED && ++c->failures < FAILURES_MAX && asked_ms <= 0)) {
		pthread_mutex_unlock(&c->lock);
		return CIRCUIT_ALONE;
	}
	append(c, place);
	if (c->state == CIRCUIT_OPEN)
		postpone(c, now, asked_ms);
	else
		open(c, now, asked_ms);
	struct circuit_place *expired = take_expired(c, c->probe_at);
	set_timer(c, now);
	pthread_mutex_unlock(&c->lock);
	enum circuit_outcome outcome = is_in(expired, place) ? CIRCUIT_EXPIRED : CIRCUIT_WAITS;
	each(expired, c->options.expired);
	return outcome;
}

void circuit_reset(struct circuit *c)
{
	pthread_mutex_lock(&c->lock);
	set_state(c, CIRCUIT_CLOSED);
	c->failures = 0;
	struct circuit_place *all = take(c, UINT32_MAX);
	pthread_mutex_unlock(&c->lock);
	start(c, all);
}

void circuit_bypass(struct circuit *c, bool on)
{
	pthread_mutex_lock(&c->lock);
	c->bypassed = on;
	struct circuit_place *all = on ? take(c, UINT32_MAX) : NULL;
	pthread_mutex_unlock(&c->lock);
	start(c, all);
}
