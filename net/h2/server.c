/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2/private.h"

#include "base/clock.h"
#include "base/memory.h"

#include <string.h>
#include <time.h>

#define SECOND UINT64_C(1000000000)
#define CA_WATCH_NS (5 * SECOND) /* client_ca_file_reload without reload_interval */

#define REPORT_NS (5 * SECOND)
#define REPORT_HTTP1_NS (60 * SECOND)
#define SECTION "limits." /* of the keys that gRPC receivers have */

enum { DEFAULT_BUFFER = 1 << 18 };

static uint64_t reopen_interval(const struct tls_server_config *tls)
{
	if (tls->reload_interval.ns > 0)
		return (uint64_t)tls->reload_interval.ns;
	return tls->client_ca_file_reload ? CA_WATCH_NS : 0;
}

static void reopen_by_time(void *argument)
{
	struct h2_server *s = argument;
	struct error err;
	if (!h2_server_reopen(s, &err))
		log_error(s->options.log,
			  "Failed to reload certificates; keeping the current "
			  "ones",
			  log_text("error", err.text));
	loop_timer_start(s->reopen_timer, reopen_interval(s->options.tls));
}

/* One line a minute at most. */
static void report_http1(struct h2_server *s, uint64_t now)
{
	int64_t count = metric_get(s->counters.closed[H2_HTTP1]), more = count - s->http1_reported;
	if (!more || now < s->http1_next)
		return;
	s->http1_reported = count;
	s->http1_next = now + REPORT_HTTP1_NS;
	log_warn(s->options.log, "Clients speak HTTP/1 to a gRPC port",
		 log_text("endpoint", s->options.endpoint), log_number("connections", more));
}

static void report_by_time(void *argument)
{
	struct h2_server *s = argument;
	limit_report_pass(&s->report, s->options.log, clock_now());
	report_http1(s, clock_now());
	loop_timer_start(s->report_timer, REPORT_NS);
}

/* The connections of a server without an endpoint are its owner's to report. */
static void start_reporting(struct h2_server *s)
{
	const struct h2_options *o = &s->options;
	const struct h2_limits *l = &o->limits;
	const struct h2_counters *n = &s->counters;
	struct limit_report *r = &s->report;
	if (!o->loop || !o->endpoint || !o->metrics)
		return;
	limit_report_number(r, n->refused[H2_MAX_CONNECTIONS], SECTION, "max_connections",
			    l->max_connections, "");
	limit_report_number(r, n->refused[H2_MAX_CONNECTIONS_PER_PEER], SECTION,
			    "max_connections_per_peer", l->max_connections_per_peer, "");
	limit_report_number(r, n->closed[H2_HEADERS], SECTION, "max_header_bytes, max_headers",
			    l->max_header_bytes, " bytes");
	limit_report_time(r, n->closed[H2_HANDSHAKE_TIMEOUT], SECTION, "handshake_timeout",
			  l->handshake_timeout);
	limit_report_time(r, n->closed[H2_HEADER_TIMEOUT], SECTION, "header_timeout",
			  l->header_timeout);
	limit_report_number(r, n->closed[H2_BODY_RATE], SECTION, "min_body_rate", l->min_body_rate,
			    " bytes/s");
	limit_report_time(r, n->closed[H2_OUTBOUND], SECTION, "write_timeout, max_outbound_bytes",
			  l->write_timeout);
	limit_report_time(r, n->closed[H2_PINGS], "", "keepalive.enforcement_policy.min_time",
			  o->min_ping_interval);
	limit_report_number(r, n->closed[H2_STREAMS], "", "max_concurrent_streams",
			    h2_session_max_streams(o), "");
	h2_counters_report(n, r, l, SECTION);
	s->http1_reported = metric_get(n->closed[H2_HTTP1]);
	s->report_timer = loop_timer_new(o->loop, report_by_time, s);
	loop_timer_start(s->report_timer, REPORT_NS);
}

static void start_reopening(struct h2_server *s)
{
	const struct h2_options *o = &s->options;
	if (!o->tls || !o->loop || !reopen_interval(o->tls))
		return;
	s->reopen_timer = loop_timer_new(o->loop, reopen_by_time, s);
	loop_timer_start(s->reopen_timer, reopen_interval(o->tls));
}

/* On the loop thread, so the timers cannot fire meanwhile. */
static void end_timers(void *argument)
{
	struct h2_server *s = argument;
	loop_timer_unref(&s->reopen_timer);
	loop_timer_unref(&s->report_timer);
}

bool h2_server_reopen(struct h2_server *s, struct error *err)
{
	bool changed = false;
	if (s->tls && !tls_server_reopen(s->tls, &changed, err))
		return error_prefix(err, "tls");
	if (changed && s->options.endpoint) /* otherwise it is its owner's to report */
		log_info(s->options.log, "Certificates reloaded");
	return true;
}

static void copy_routes(struct h2_server *s)
{
	const struct h2_options *o = &s->options;
	s->routes = memory_array(o->route_count + 1, sizeof *s->routes);
	memcpy(s->routes, o->routes, o->route_count * sizeof *s->routes);
	s->stream_size = sizeof(struct h2_stream);
	for (size_t i = 0; i < o->route_count; i++)
		if (o->routes[i].service->size > s->stream_size)
			s->stream_size = o->routes[i].service->size;
	s->options.routes = NULL;
}

static size_t buffer_size(size_t wanted)
{
	return wanted ? wanted : DEFAULT_BUFFER;
}

static void make_shards(struct h2_server *s)
{
	s->shard_count = io_count(s->options.io);
	s->shards = memory_array(s->shard_count, sizeof *s->shards);
	for (uint32_t i = 0; i < s->shard_count; i++) {
		s->shards[i].server = s;
		pthread_mutex_init(&s->shards[i].asking, NULL);
		s->shards[i].thread = io_thread_at(s->options.io, IO_HTTP_2, i);
	}
}

static struct h2_server *server_new(const struct h2_options *options)
{
	struct h2_server *s = memory_new(sizeof *s);
	s->options = *options;
	s->options.read_buffer_bytes = buffer_size(options->read_buffer_bytes);
	s->options.write_buffer_bytes = buffer_size(options->write_buffer_bytes);
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	h2_counters_init(&s->counters, options->metrics, options->name);
	s->own_peers = options->peers ? NULL : peer_count_new();
	s->peers = options->peers ? options->peers : s->own_peers;
	s->callbacks = h2_session_callbacks();
	s->session_options = h2_session_options(&options->limits);
	copy_routes(s);
	make_shards(s);
	return s;
}

static bool prepare(struct h2_server *s, struct error *err)
{
	const struct h2_options *o = &s->options;
	if (!s->callbacks || !s->session_options)
		return error_set(err, ERROR_INTERNAL, "cannot initialize nghttp2");
	if (o->tls && !(s->tls = tls_server_new(o->tls, "h2", err)))
		return error_prefix(err, "tls");
	return !o->endpoint || (h2_address_resolve(o->endpoint, o->transport, &s->addresses, err) &&
				h2_listeners_open(s, err));
}

struct h2_server *h2_server_start(const struct h2_options *options, struct error *err)
{
	struct h2_server *s = server_new(options);
	if (!prepare(s, err)) {
		h2_server_unref(&s);
		return NULL;
	}
	if (options->endpoint)
		io_call(s->shards[0].thread, h2_listeners_start, s);
	start_reopening(s);
	start_reporting(s);
	return s;
}

int h2_server_port(const struct h2_server *s)
{
	return s->port;
}

int64_t h2_server_connection_cost(const struct h2_server *s)
{
	return H2_CONNECTION_COST + (s->tls ? H2_TLS_COST : 0);
}

void h2_server_close_idle(struct h2_server *s)
{
	h2_server_ask_to_close_idle(s, NULL, H2_JUST_ANSWERED_NS, 0);
}

void h2_server_ask_to_close_idle(struct h2_server *s, const struct h2_shard *but, uint64_t idle_ns,
				 uint32_t keep)
{
	for (uint32_t i = 0; i < s->shard_count; i++)
		if (&s->shards[i] != but)
			h2_shard_ask_to_close_idle(&s->shards[i], idle_ns, keep);
}

void h2_server_uncount(struct h2_server *s, const char *address, struct hash128 key)
{
	if (s->options.left)
		s->options.left(s->options.left_context, address);
	else
		peer_count_remove(s->peers, key);
}

void h2_server_entered(struct h2_server *s)
{
	pthread_mutex_lock(&s->lock);
	s->open++;
	pthread_mutex_unlock(&s->lock);
}

void h2_server_left(struct h2_server *s)
{
	pthread_mutex_lock(&s->lock);
	if (--s->open == 0)
		pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

struct each {
	void (*run)(void *context, uint32_t index);
	void *context;
	uint32_t index;
};

static void run_each(void *argument)
{
	struct each *each = argument;
	each->run(each->context, each->index);
}

void h2_server_each_thread(struct h2_server *s, void (*run)(void *context, uint32_t index),
			   void *context)
{
	for (uint32_t i = 0; i < s->shard_count; i++)
		io_call(s->shards[i].thread, run_each, &(struct each){ run, context, i });
}

static void drain_shard(void *context, uint32_t index)
{
	struct h2_server *s = context;
	struct h2_shard *shard = &s->shards[index];
	struct h2_connection *next;
	shard->draining = true;
	for (struct h2_connection *c = shard->connections; c; c = next) {
		next = c->next;
		h2_connection_end(c, H2_REASON_NONE, true, shard->drain_deadline);
	}
}

/* Connections whose SETTINGS have not arrived yet follow when they do (session.c). */
static void retire_shard(void *context, uint32_t index)
{
	struct h2_server *s = context;
	struct h2_shard *shard = &s->shards[index];
	struct h2_connection *next;
	shard->retiring = true;
	for (struct h2_connection *c = shard->connections; c; c = next) {
		next = c->next;
		h2_connection_retire(c);
	}
}

/* Connections close themselves at the deadline, so the wait is bounded. */
static void wait_until_empty(struct h2_server *s)
{
	pthread_mutex_lock(&s->lock);
	while (s->open)
		pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

static void end_all(struct h2_server *s, uint64_t deadline,
		    void (*end_shard)(void *context, uint32_t index))
{
	if (s->options.loop)
		loop_call(s->options.loop, end_timers, s);
	io_call(s->shards[0].thread, h2_listeners_close, s);
	for (uint32_t i = 0; i < s->shard_count; i++)
		s->shards[i].drain_deadline = deadline;
	h2_server_each_thread(s, end_shard, s);
	wait_until_empty(s);
}

void h2_server_drain(struct h2_server *s, uint64_t deadline)
{
	end_all(s, deadline, drain_shard);
}

void h2_server_retire(struct h2_server *s, uint64_t deadline)
{
	end_all(s, deadline, retire_shard);
}

void h2_server_unref(struct h2_server **slot)
{
	struct h2_server *s = *slot;
	*slot = NULL;
	if (!s)
		return;
	tls_server_unref(&s->tls);
	nghttp2_session_callbacks_del(s->callbacks);
	nghttp2_option_del(s->session_options);
	peer_count_unref(&s->own_peers);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	memory_free(s->routes);
	for (uint32_t i = 0; i < s->shard_count; i++)
		pthread_mutex_destroy(&s->shards[i].asking);
	memory_free(s->shards);
	memory_free(s);
}
