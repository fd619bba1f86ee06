/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/eventfd.h>

#include "base/clock.h"
#include "net/http/http_internal.h"

#define SECOND_NS UINT64_C(1000000000)
#define RATE_GRACE_NS (5 * SECOND_NS) /* a body may start slowly */
#define RATE_CHECK_NS SECOND_NS
/* A connection that has waited longer than this for its first byte is as idle as one that waits for
 * its next request. */
#define FIRST_BYTE_NS SECOND_NS
/* a client that sends one request after another is not idle between them */
#define IDLE_NS SECOND_NS

void http_deadlines_init(struct http_deadlines *d, const struct http_server_config *config,
			 int wake)
{
	pthread_mutex_init(&d->mutex, NULL);
	d->wake = wake;
	d->next = UINT64_MAX;
	d->min_rate = (uint64_t)config->min_body_rate;
	d->timeout[HTTP_PHASE_HANDSHAKE] = (uint64_t)config->tls_handshake_timeout.ns;
	d->timeout[HTTP_PHASE_HEADER] = (uint64_t)config->read_header_timeout.ns;
	d->timeout[HTTP_PHASE_BODY] = (uint64_t)config->read_timeout.ns;
	d->timeout[HTTP_PHASE_WRITE] = (uint64_t)config->write_timeout.ns;
	d->timeout[HTTP_PHASE_IDLE] = (uint64_t)config->idle_timeout.ns;
}

void http_deadlines_fini(struct http_deadlines *d)
{
	pthread_mutex_destroy(&d->mutex);
}

static void unlink_from(struct http_deadlines *d, struct http_deadline *x)
{
	*(x->previous ? &x->previous->next : &d->head[x->phase]) = x->next;
	*(x->next ? &x->next->previous : &d->tail[x->phase]) = x->previous;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The time at which the first of a list may need attention. */
static uint64_t due(const struct http_deadlines *d, const struct http_deadline *x)
{
	bool measured = x->phase == HTTP_PHASE_BODY && d->min_rate;
	return measured ? earlier(x->at, x->since + RATE_GRACE_NS) : x->at;
}

/* Nearly always at the end. */
static void append(struct http_deadlines *d, struct http_deadline *x, enum http_phase phase,
		   uint64_t since)
{
	uint64_t timeout = d->timeout[phase];
	x->phase = phase;
	x->since = since;
	x->at = timeout ? x->since + timeout : UINT64_MAX;
	atomic_store(&x->received, 0);
	x->next = NULL;
	x->previous = d->tail[phase];
	while (x->previous && x->previous->at > x->at) {
		x->next = x->previous;
		x->previous = x->previous->previous;
	}
	*(x->previous ? &x->previous->next : &d->head[phase]) = x;
	*(x->next ? &x->next->previous : &d->tail[phase]) = x;
	if (due(d, x) < d->next) {
		d->next = due(d, x);
		eventfd_write(d->wake, 1);
	}
}

void http_deadline_join(struct http_deadlines *d, struct http_deadline *x, int socket,
			enum http_phase phase, uint64_t since)
{
	pthread_mutex_lock(&d->mutex);
	x->socket = socket;
	append(d, x, phase, since ? since : clock_now());
	pthread_mutex_unlock(&d->mutex);
}

void http_deadline_enter(struct http_deadlines *d, struct http_deadline *x, enum http_phase phase)
{
	pthread_mutex_lock(&d->mutex);
	/* The headers of the first request keep the deadline from the start of the connection. */
	if (x->phase != phase && !x->ended) {
		unlink_from(d, x);
		append(d, x, phase, clock_now());
	}
	pthread_mutex_unlock(&d->mutex);
}

void http_deadline_pause(struct http_deadlines *d, struct http_deadline *x)
{
	pthread_mutex_lock(&d->mutex);
	x->paused_since = clock_now();
	pthread_mutex_unlock(&d->mutex);
}

void http_deadline_resume(struct http_deadlines *d, struct http_deadline *x)
{
	pthread_mutex_lock(&d->mutex);
	x->since += clock_now() - x->paused_since;
	x->paused_since = 0;
	pthread_mutex_unlock(&d->mutex);
}

bool http_deadline_leave(struct http_deadlines *d, struct http_deadline *x)
{
	pthread_mutex_lock(&d->mutex);
	unlink_from(d, x);
	pthread_mutex_unlock(&d->mutex);
	return x->ended;
}

/* The library notices the end of the connection and cleans it up. The socket is still open, because
 * its owner has not left. */
static void end(struct http_deadlines *d, struct http_deadline *x, struct metric_series *count)
{
	unlink_from(d, x);
	append(d, x, HTTP_PHASE_NONE, clock_now());
	x->ended = true;
	if (count)
		metric_add(count, 1);
	shutdown(x->socket, SHUT_RDWR);
}

static bool is_slow(const struct http_deadlines *d, struct http_deadline *x, uint64_t now)
{
	if (x->paused_since || now < x->since + RATE_GRACE_NS)
		return false;
	return atomic_load(&x->received) <
	       (now - x->since - RATE_GRACE_NS) / 1000 * d->min_rate / 1000000;
}

/* Ends connections whose body is too slow; returns when to check again. */
static uint64_t pass_bodies(struct http_deadlines *d, uint64_t now)
{
	struct http_deadline *next;
	if (!d->min_rate || !d->head[HTTP_PHASE_BODY])
		return UINT64_MAX;
	if (now >= d->measure_next) {
		d->measure_next = now + RATE_CHECK_NS;
		for (struct http_deadline *x = d->head[HTTP_PHASE_BODY]; x; x = next) {
			next = x->next;
			if (is_slow(d, x, now))
				end(d, x, d->slow);
		}
	}
	const struct http_deadline *oldest = d->head[HTTP_PHASE_BODY];
	if (!oldest)
		return UINT64_MAX;
	return later(d->measure_next, oldest->since + RATE_GRACE_NS);
}

uint64_t http_deadlines_pass(struct http_deadlines *d, uint64_t now)
{
	pthread_mutex_lock(&d->mutex);
	d->next = UINT64_MAX;
	for (enum http_phase phase = 0; phase < HTTP_PHASES; phase++) {
		for (struct http_deadline *x; (x = d->head[phase]) && x->at <= now;)
			end(d, x, d->count[phase]);
		if (d->head[phase])
			d->next = earlier(d->next, d->head[phase]->at);
	}
	d->next = earlier(d->next, pass_bodies(d, now));
	uint64_t next = d->next;
	pthread_mutex_unlock(&d->mutex);
	return next;
}

void http_deadlines_end_idle(struct http_deadlines *d)
{
	pthread_mutex_lock(&d->mutex);
	for (struct http_deadline *x; (x = d->head[HTTP_PHASE_IDLE]);)
		end(d, x, NULL);
	pthread_mutex_unlock(&d->mutex);
}

/* The connection that has waited longest for a request: at least idle_ns, or long enough for its
 * first byte. */
static struct http_deadline *find_idle(const struct http_deadlines *d, uint64_t idle_ns)
{
	static const enum http_phase phases[] = { HTTP_PHASE_IDLE, HTTP_PHASE_HEADER,
						  HTTP_PHASE_HANDSHAKE };
	uint64_t now = clock_now();
	struct http_deadline *oldest = NULL;
	for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
		struct http_deadline *x = d->head[phases[i]];
		uint64_t wait = phases[i] == HTTP_PHASE_IDLE ? idle_ns : FIRST_BYTE_NS;
		if (x && x->since + wait <= now && (!oldest || x->since < oldest->since))
			oldest = x;
	}
	return oldest;
}

uint32_t http_deadlines_end_oldest(struct http_deadlines *d, uint32_t count)
{
	uint32_t ended = 0;
	struct http_deadline *x;
	pthread_mutex_lock(&d->mutex);
	while (ended < count && (x = find_idle(d, IDLE_NS))) {
		end(d, x, d->unwanted);
		ended++;
	}
	pthread_mutex_unlock(&d->mutex);
	return ended;
}

bool http_deadlines_replace_oldest(struct http_deadlines *d)
{
	pthread_mutex_lock(&d->mutex);
	struct http_deadline *x = find_idle(d, 0);
	if (x) {
		x->replaced = true;
		end(d, x, d->unwanted);
	}
	pthread_mutex_unlock(&d->mutex);
	return x != NULL;
}
