/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/eventfd.h>

#include "base/clock.h"
#include "net/http_internal.h"

void http_deadlines_init(struct http_deadlines *d, const struct http_server_config *config, int wake)
{
	pthread_mutex_init(&d->mutex, NULL);
	d->wake = wake;
	d->next = UINT64_MAX;
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

static void append(struct http_deadlines *d, struct http_deadline *x, enum http_phase phase)
{
	uint64_t timeout = d->timeout[phase];
	x->phase = phase;
	x->at = timeout ? clock_now() + timeout : UINT64_MAX;
	x->previous = d->tail[phase];
	x->next = NULL;
	*(x->previous ? &x->previous->next : &d->head[phase]) = x;
	d->tail[phase] = x;
	if (x->at < d->next) {
		d->next = x->at;
		eventfd_write(d->wake, 1);
	}
}

void http_deadline_join(struct http_deadlines *d, struct http_deadline *x, int socket)
{
	pthread_mutex_lock(&d->mutex);
	x->socket = socket;
	append(d, x, HTTP_PHASE_HEADER);
	pthread_mutex_unlock(&d->mutex);
}

void http_deadline_enter(struct http_deadlines *d, struct http_deadline *x, enum http_phase phase)
{
	pthread_mutex_lock(&d->mutex);
	/* The first request's headers keep the deadline of the connection's start. */
	if (x->phase != phase) {
		unlink_from(d, x);
		append(d, x, phase);
	}
	pthread_mutex_unlock(&d->mutex);
}

bool http_deadline_leave(struct http_deadlines *d, struct http_deadline *x)
{
	pthread_mutex_lock(&d->mutex);
	unlink_from(d, x);
	pthread_mutex_unlock(&d->mutex);
	return x->ended;
}

/* The library sees the end of the connection and cleans it up. The socket is open: its owner has not left. */
static void end(struct http_deadlines *d, struct http_deadline *x)
{
	unlink_from(d, x);
	append(d, x, HTTP_PHASE_NONE);
	x->ended = true;
	shutdown(x->socket, SHUT_RDWR);
}

uint64_t http_deadlines_pass(struct http_deadlines *d, uint64_t now)
{
	pthread_mutex_lock(&d->mutex);
	d->next = UINT64_MAX;
	for (enum http_phase phase = 0; phase < HTTP_PHASES; phase++) {
		for (struct http_deadline *x; (x = d->head[phase]) && x->at <= now;) {
			series_add(d->count[phase], 1);
			end(d, x);
		}
		if (d->head[phase] && d->head[phase]->at < d->next)
			d->next = d->head[phase]->at;
	}
	uint64_t next = d->next;
	pthread_mutex_unlock(&d->mutex);
	return next;
}

void http_deadlines_end_idle(struct http_deadlines *d)
{
	pthread_mutex_lock(&d->mutex);
	for (struct http_deadline *x; (x = d->head[HTTP_PHASE_IDLE]);)
		end(d, x);
	pthread_mutex_unlock(&d->mutex);
}
