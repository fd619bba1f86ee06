/* SPDX-License-Identifier: Apache-2.0 */
#include "net/rpc_private.h"

#include "base/clock.h"
#include "base/memory.h"
#include "net/grpc_core.h"

#include <fcntl.h>
#include <grpc/support/time.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define MESSAGE_TIMEOUT_NS (60 * SECOND)
#define CA_WATCH_NS (5 * SECOND) /* client_ca_file_reload without reload_interval */

enum { SPARE_FDS = 16 };

static bool is_unix(const struct rpc_server *s)
{
	return strncmp(s->addresses.at[0], "unix:", 5) == 0;
}

static bool spare_fds(void)
{
	int fds[SPARE_FDS], count = 0;
	while (count < SPARE_FDS && (fds[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		count++;
	for (int i = 0; i < count; i++)
		close(fds[i]);
	return count == SPARE_FDS;
}

/*
 * Core has stopped accepting for good (EMFILE): a new listener takes over the port and the old ones finish their
 * calls. A unix socket cannot have two: core removes the file when the old one ends.
 */
static bool take_over(struct rpc_server *s)
{
	if (is_unix(s) && s->listeners) {
		rpc_listener_drain(s->listeners);
		return false;
	}
	struct error err;
	if (!rpc_listener_open(s, &err))
		return false;
	for (struct rpc_listener *l = s->listeners->next; l; l = l->next)
		rpc_listener_drain(l);
	return true;
}

static void revive_accept(struct rpc_server *s)
{
	uint64_t failures = grpc_core_accept_failures();
	if (failures != s->failures_seen) {
		s->failures_seen = failures;
		s->accept_is_dead = true;
		log_warn(s->options.log, "Out of file descriptors: listening again when some are free");
	}
	if (!s->accept_is_dead || !spare_fds())
		return;
	pthread_mutex_lock(&s->mutex);
	bool taken = !s->stopping && take_over(s);
	pthread_mutex_unlock(&s->mutex);
	if (!taken)
		return;
	s->accept_is_dead = false;
	log_info(s->options.log, "Listening again", log_text("endpoint", s->options.endpoint));
}

static void tick(void *context)
{
	struct rpc_server *s = context;
	rpc_call_expire(s, clock_now());
	rpc_health_tick(s);
	revive_accept(s);
}

static void copy_methods(struct rpc_server *s)
{
	size_t count = s->options.method_count;
	s->methods = memory_array(count + RPC_HEALTH_METHODS, sizeof *s->methods);
	if (count)
		memcpy(s->methods, s->options.methods, count * sizeof *s->methods);
	rpc_health_methods(s, s->methods + count);
	s->method_count = count + RPC_HEALTH_METHODS;
	s->options.methods = NULL;
}

static uint64_t reload_period(const struct tls_server_config *tls)
{
	if (tls->reload_interval.ns > 0)
		return (uint64_t)tls->reload_interval.ns;
	return tls->client_ca_file_reload ? CA_WATCH_NS : 0;
}

static void reload_by_time(void *argument)
{
	struct rpc_server *s = argument;
	struct error err;
	if (!rpc_server_reload(s, &err))
		log_error(s->options.log, "Certificates are broken; keeping the old ones",
			  log_text("error", err.text));
	loop_timer_start(s->reload_timer, reload_period(s->options.tls));
}

static void start_reloading(struct rpc_server *s)
{
	const struct rpc_server_options *o = &s->options;
	if (!o->tls || !o->loop || !reload_period(o->tls))
		return;
	s->reload_timer = loop_timer_new(o->loop, reload_by_time, s);
	loop_timer_start(s->reload_timer, reload_period(o->tls));
}

/* On the loop thread, so that it is not firing meanwhile. */
static void end_reloading(void *argument)
{
	struct rpc_server *s = argument;
	loop_timer_unref(&s->reload_timer);
}

static struct rpc_server *server_new(const struct rpc_server_options *options)
{
	struct rpc_server *s = memory_new(sizeof *s);
	s->options = *options;
	s->message_timeout = options->message_timeout.ns > 0 ?
				     (uint64_t)options->message_timeout.ns : MESSAGE_TIMEOUT_NS;
	pthread_mutex_init(&s->mutex, NULL);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	atomic_init(&s->serving, true);
	copy_methods(s);
	s->queue = grpc_queue_hold();
	s->failures_seen = grpc_core_accept_failures();
	s->tick = (struct grpc_tick){ tick, s, NULL };
	return s;
}

static void server_free(struct rpc_server *s)
{
	grpc_queue_untick(&s->tick);
	grpc_queue_release();
	rpc_tls_fini(&s->tls);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->mutex);
	memory_free(s->methods);
	memory_free(s);
}

static bool prepare(struct rpc_server *s, struct error *err)
{
	const struct rpc_server_options *o = &s->options;
	return rpc_tls_init(&s->tls, o->tls, err) &&
	       rpc_address_resolve(o->endpoint, o->transport, &s->addresses, err) &&
	       (s->addresses.any_port || rpc_address_probe(&s->addresses, err));
}

static bool listen_first(struct rpc_server *s, struct error *err)
{
	pthread_mutex_lock(&s->mutex);
	bool ok = rpc_listener_open(s, err);
	while (!ok && s->listeners)
		pthread_cond_wait(&s->changed, &s->mutex);
	pthread_mutex_unlock(&s->mutex);
	return ok;
}

struct rpc_server *rpc_server_start(const struct rpc_server_options *options, struct error *err)
{
	struct rpc_server *s = server_new(options);
	if (!prepare(s, err) || !listen_first(s, err)) {
		server_free(s);
		return NULL;
	}
	grpc_queue_tick(&s->tick);
	start_reloading(s);
	return s;
}

int rpc_server_port(const struct rpc_server *s)
{
	return s->port;
}

void rpc_server_set_serving(struct rpc_server *s, bool serving)
{
	atomic_store(&s->serving, serving);
}

bool rpc_server_reload(struct rpc_server *s, struct error *err)
{
	bool changed = false;
	if (s->options.tls && !rpc_tls_reload(&s->tls, &changed, err))
		return false;
	if (changed)
		log_info(s->options.log, "Certificates reloaded");
	return true;
}

void rpc_server_call_done(struct rpc_server *s)
{
	if (--s->accepted || !s->stopping)
		return;
	pthread_mutex_lock(&s->mutex);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->mutex);
}

static bool none_accepted(const struct rpc_server *s)
{
	return !s->accepted;
}

/* Hence no tag is out either. */
static bool none_listening(const struct rpc_server *s)
{
	return !s->listeners;
}

/* False: the deadline has passed. [holding the mutex] */
static bool wait_until(struct rpc_server *s, bool (*done)(const struct rpc_server *), uint64_t deadline)
{
	struct timespec at = { (time_t)(deadline / SECOND), (long)(deadline % SECOND) };
	int code = 0;
	while (!done(s) && code == 0)
		code = pthread_cond_timedwait(&s->changed, &s->mutex, &at);
	return done(s);
}

/*
 * With the last call of a connection that was told GOAWAY core closes it, and what the client still sends then makes
 * the kernel reset it, the last replies perhaps unread. So GOAWAY follows the replies: core closes when the ping that
 * it sends along was answered, by a client that has therefore read all.
 *
 * Cancelled calls may still sit with a worker, and to start a batch on a queue that was shut down aborts the process:
 * the server ends only with the last call's last tag, however long that takes.
 */
void rpc_server_stop(struct rpc_server **server, uint64_t grace_ns)
{
	struct rpc_server *s = *server;
	uint64_t deadline = clock_now() + grace_ns;
	if (!s)
		return;
	*server = NULL;
	if (s->options.loop)
		loop_call(s->options.loop, end_reloading, s);
	rpc_server_set_serving(s, false);
	pthread_mutex_lock(&s->mutex);
	s->stopping = true;
	wait_until(s, none_accepted, deadline);
	for (struct rpc_listener *l = s->listeners; l; l = l->next)
		rpc_listener_drain(l);
	if (!wait_until(s, none_listening, deadline))
		for (struct rpc_listener *l = s->listeners; l; l = l->next)
			grpc_server_cancel_all_calls(l->core);
	while (s->listeners)
		pthread_cond_wait(&s->changed, &s->mutex);
	pthread_mutex_unlock(&s->mutex);
	server_free(s);
}
