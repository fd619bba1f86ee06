/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/http/http_internal.h"
#include "net/places.h"

#define SECOND_NS 1000000000ull
#define COMPLAIN_EVERY_NS (60 * SECOND_NS)
static const struct metric connections_metric = { "otelcol_http_server_open_connections",
						  METRIC_GAUGE, "{connections}",
						  "Open connections of an HTTP server." };
static const struct metric refused_metric = {
	"otelcol_http_server_refused_connections", METRIC_COUNTER, "{connections}",
	"Connections closed without a response, by reason: limit (max_connections), peer_limit "
	"(max_connections_per_peer), memory (none is available, or the client's connections "
	"hold its full share, and no connection is idle), files (no file descriptor is "
	"available)."
};
static const struct metric ended_metric = {
	"otelcol_http_server_closed_connections", METRIC_COUNTER, "{connections}",
	"Connections that the server closed, by reason: the timeout that expired (handshake, "
	"header, body, write, idle), rate (min_body_rate), memory (the longest-idle connections "
	"when memory is short)."
};
static const struct metric misdirected_metric = {
	"otelcol_http_server_refused_requests", METRIC_COUNTER, "{requests}",
	"Requests that the server refused before they reached the receiver, by reason: "
	"malformed, header (414 or 431: too large or too many), path (404), method (405), "
	"unauthenticated (401); or whose body exceeded read_timeout or min_body_rate over HTTP/2: "
	"late_body (408)."
};
static const struct metric paused_metric = {
	"otelcol_http_server_paused_requests", METRIC_COUNTER, "{requests}",
	"Requests whose body was paused because there was no memory for it."
};
const struct metric *const http_server_metrics[] = {
	&connections_metric, &refused_metric, &ended_metric, &misdirected_metric,
	&paused_metric,      H2_METRICS,      NULL
};

static void accepted(void *context, int socket, const struct sockaddr *address, socklen_t len)
{
	struct http_server *server = context;
	char peer[HTTP_PEER_MAX];
	enum http_over why;
	http_peer_text(address, len, peer, sizeof peer);
	if (http_count_in(server, peer, &why)) {
		http_arrivals_take(server, socket, address, len, peer);
	} else {
		close(socket);
		metric_add(server->over[why], 1);
	}
}

static struct http_daemon *daemon_load(struct http_server *server, struct error *err)
{
	struct tls_material material = { 0 };
	if (server->config->tls.present.enabled &&
	    !tls_load_server(&server->config->tls, &material, err)) {
		tls_release(&material);
		error_prefix(err, "tls");
		return NULL;
	}
	return http_daemon_new(server, &material, err);
}

/* The one before it drains; the listener's thread frees it as soon as the mutex is released. */
static void push_daemon(struct http_server *server, struct http_daemon *daemon)
{
	pthread_mutex_lock(&server->mutex);
	daemon->next = server->daemons;
	server->daemons = daemon;
	if (daemon->next)
		atomic_store(&daemon->next->draining, true);
	pthread_mutex_unlock(&server->mutex);
}

/* Removes one drained daemon from the list. [listener thread] */
static struct http_daemon *take_drained(struct http_server *server)
{
	struct http_daemon *found = NULL;
	pthread_mutex_lock(&server->mutex);
	for (struct http_daemon **at = &server->daemons->next; *at && !found; at = &(*at)->next) {
		if (!atomic_load(&(*at)->connections)) {
			found = *at;
			*at = found->next;
			break;
		}
	}
	pthread_mutex_unlock(&server->mutex);
	return found;
}

static void tell_complaints(struct http_server *server)
{
	uint64_t now = clock_now();
	if (now < server->complain_next || !atomic_load(&server->complaints))
		return;
	server->complain_next = now + COMPLAIN_EVERY_NS;
	log_debug(server->log, "A library reported a problem; its message is withheld",
		  log_text("library", "libmicrohttpd"),
		  log_number("count", atomic_exchange(&server->complaints, 0)));
}

/* Called after the last connection was accepted, on the thread that accepts. */
static void report_emptied(struct http_server *server)
{
	if (!atomic_load(&server->retiring) || atomic_load(&server->connected))
		return;
	pthread_mutex_lock(&server->mutex);
	server->emptied = true;
	pthread_cond_broadcast(&server->quiet);
	pthread_mutex_unlock(&server->mutex);
}

static uint64_t turn(void *context, uint64_t now)
{
	struct http_server *server = context;
	struct http_daemon *drained;
	struct error err;
	if (now >= server->reopen_next) {
		server->reopen_next = now + server->reopen_ns;
		if (!http_server_reopen(server, &err))
			log_error(server->log,
				  "Failed to reload certificates; keeping the "
				  "current ones",
				  log_text("error", err.text));
	}
	while ((drained = take_drained(server)))
		http_daemon_unref(&drained);
	tell_complaints(server);
	report_emptied(server);
	http_arrivals_pass(server);
	limit_report_pass(&server->report, server->log, now);
	uint64_t next = http_memory_relieve(server, now);
	return next < server->reopen_next ? next : server->reopen_next;
}

bool http_server_reopen(struct http_server *server, struct error *err)
{
	if (!server->config->tls.present.enabled)
		return true;
	struct tls_material fresh = { 0 };
	if (!tls_load_server(&server->config->tls, &fresh, err)) {
		tls_release(&fresh);
		return error_prefix(err, "tls");
	}
	pthread_mutex_lock(&server->mutex);
	bool same = tls_equal(&fresh, &server->daemons->material);
	pthread_mutex_unlock(&server->mutex);
	if (same) {
		tls_release(&fresh);
		return true;
	}
	struct http_daemon *daemon = http_daemon_new(server, &fresh, err);
	if (!daemon)
		return false;
	if (server->h2 && !h2_server_reopen(server->h2, err)) {
		http_daemon_unref(&daemon);
		return false;
	}
	push_daemon(server, daemon);
	http_deadlines_end_idle(&server->deadlines);
	http_listener_wake(server->listener);
	log_info(server->log, "Certificates reloaded");
	return true;
}

static void make_series(struct http_server *server, struct metrics *metrics,
			struct metric_series **no_files)
{
	static const char *const phases[] = { [HTTP_PHASE_HANDSHAKE] = "handshake",
					      [HTTP_PHASE_HEADER] = "header",
					      [HTTP_PHASE_BODY] = "body",
					      [HTTP_PHASE_WRITE] = "write",
					      [HTTP_PHASE_IDLE] = "idle" };
	static const char *const misdirections[] = { [HTTP_MALFORMED] = "malformed",
						     [HTTP_HEADER_SIZE] = "header",
						     [HTTP_NO_PATH] = "path",
						     [HTTP_NO_METHOD] = "method",
						     [HTTP_NO_CREDENTIALS] = "unauthenticated",
						     [HTTP_LATE_BODY] = "late_body" };
	static const char *const overs[] = { [HTTP_OVER_LIMIT] = "limit",
					     [HTTP_OVER_PEER_LIMIT] = "peer_limit",
					     [HTTP_OVER_MEMORY] = "memory" };
	const struct log *log = server->log;
	struct metric_label labels[] = { { "service", "telemetry" },
					 { NULL, NULL },
					 { NULL, NULL } };
	if (log->component_id)
		labels[0] = (struct metric_label){ log->component_kind, log->component_id };
	server->connections = metrics_series(metrics, &connections_metric, labels);
	server->paused = metrics_series(metrics, &paused_metric, labels);
	labels[1].name = "reason";
	for (int i = 0; i < HTTP_OVER_REASONS; i++) {
		labels[1].value = overs[i];
		server->over[i] = metrics_series(metrics, &refused_metric, labels);
	}
	labels[1].value = "files";
	*no_files = metrics_series(metrics, &refused_metric, labels);
	for (int i = 0; i < HTTP_PHASES; i++) {
		labels[1].value = phases[i];
		server->deadlines.count[i] = metrics_series(metrics, &ended_metric, labels);
	}
	labels[1].value = "rate";
	server->deadlines.slow = metrics_series(metrics, &ended_metric, labels);
	labels[1].value = "memory";
	server->deadlines.unwanted = metrics_series(metrics, &ended_metric, labels);
	for (int i = 0; i < HTTP_MISDIRECTIONS; i++) {
		labels[1].value = misdirections[i];
		server->misdirected[i] = metrics_series(metrics, &misdirected_metric, labels);
	}
}

static void left_http_2(void *context, const char *peer)
{
	http_count_out(context, peer);
}

/* The settings that HTTP/1.1 has too are the same. The limits on pings are gRPC's: here, a ping is
 * limited like any other control frame. */
static void configure_http_2(const struct http_server *server, struct h2_options *options)
{
	const struct http_server_config *config = server->config;
	struct h2_limits *limits = &options->limits;
	*limits = config->http2_limits;
	limits->max_header_bytes = (int64_t)server->header_limits.total;
	limits->max_headers = (int64_t)server->header_limits.count;
	limits->handshake_timeout = config->tls_handshake_timeout;
	limits->header_timeout = config->read_header_timeout;
	limits->write_timeout = config->write_timeout;
	limits->idle_timeout = config->idle_timeout;
	options->tls = config->tls.present.enabled ? &config->tls : NULL;
	options->pings_without_streams = true;
	options->min_ping_interval.ns = 1;
}

static bool start_http_2(struct http_server *server, const struct http_server_options *options,
			 struct error *err)
{
	const struct h2_route route = { .service = &http_stream_service, .context = server };
	struct h2_options h2 = { .routes = &route,
				 .route_count = 1,
				 .budget = options->budget,
				 .io = options->io,
				 .log = options->log,
				 .metrics = options->metrics,
				 .name = options->log->component_id,
				 .peers = server->peers,
				 .left = left_http_2,
				 .left_context = server };
	configure_http_2(server, &h2);
	server->h2 = h2_server_start(&h2, err);
	if (!server->h2)
		return false;
	int64_t cost = h2_server_connection_cost(server->h2);
	if (server->connection_cost < cost)
		server->connection_cost = cost;
	server->owed = memory_array(io_count(options->io), sizeof *server->owed);
	server->arrivals.epoll = epoll_create1(EPOLL_CLOEXEC);
	return server->arrivals.epoll >= 0 ||
	       error_set(err, ERROR_INTERNAL, "cannot create an epoll descriptor: %s",
			 strerror(errno));
}

static const char *route_of(const void *context, const char *path)
{
	const struct http_server *server = context;
	for (size_t i = 0; i < server->route_count; i++)
		if (server->routes[i].path && !strcmp(server->routes[i].path, path) &&
		    strcmp(path, "/") != 0)
			return server->routes[i].path;
	return NULL;
}

struct http_server *http_server_start(const struct http_server_options *options, struct error *err)
{
	const struct http_server_config *config = options->config;
	struct http_listener_options listener = { .accepted = accepted, .turn = turn };
	if (!config->endpoint || !*config->endpoint) {
		error_set(err, ERROR_CONFIG, "endpoint: must be specified");
		return NULL;
	}
	if (!http_endpoint_parse(config->transport, config->endpoint, &listener.endpoint, err))
		return NULL;
	if (config->auth.present.enabled && !options->authenticator) {
		error_set(err, ERROR_CONFIG, "auth: this server cannot authenticate requests");
		return NULL;
	}
	struct http_server *server = http_state_new(options);
	make_series(server, options->metrics, &listener.no_files);
	server->peer_limit =
		listener.endpoint.is_unix ? 0 : (uint32_t)config->max_connections_per_peer;
	if (options->io && !start_http_2(server, options, err)) {
		http_server_stop(&server, 0);
		return NULL;
	}
	http_report_init(server, options->metrics);
	listener.transport = config->transport;
	listener.address = config->endpoint;
	listener.sockets = options->sockets;
	listener.deadlines = &server->deadlines;
	listener.watched = server->arrivals.epoll;
	listener.context = server;
	server->listener = http_listener_new(&listener, err);
	struct http_daemon *daemon = server->listener ? daemon_load(server, err) : NULL;
	if (daemon)
		push_daemon(server, daemon);
	if (!daemon || !http_listener_start(server->listener, err)) {
		http_server_stop(&server, 0);
		return NULL;
	}
	if (config->cors.allowed_headers.count && !http_cors_is_on(config))
		log_warn(server->log, "cors has allowed_headers but no allowed_origins, and has "
				      "no effect");
	log_info(server->log, "Starting HTTP server",
		 log_text("endpoint", http_server_address(server)));
	places_join(&(struct places_server){ .kind = server->log->component_kind,
					     .id = server->log->component_id,
					     .address = http_server_address(server),
					     .route = route_of,
					     .server = server });
	return server;
}

const char *http_server_address(const struct http_server *server)
{
	return http_listener_address(server->listener);
}

static void wait_quiet(struct http_server *server, uint64_t end)
{
	struct timespec until = { (time_t)(end / SECOND_NS), (long)(end % SECOND_NS) };
	while (server->open && !pthread_cond_timedwait(&server->quiet, &server->mutex, &until))
		;
}

/* An exchange that a worker still holds is lost for its client; the reply will free it. */
static void cut(struct http_server *server)
{
	server->cutting = true;
	for (struct http_request *r; (r = server->suspended);) {
		if (r->x.stage == HTTP_STAGE_HANDED)
			r->x.stage = HTTP_STAGE_LOST;
		http_request_resume(r);
	}
}

/* The library does not report connections that it was given but had not looked at before it was
 * stopped. */
static void forget_connections(struct http_server *server)
{
	int64_t count = atomic_exchange(&server->connected, 0);
	net_budget_release(&server->budget, count * server->connection_cost);
	metric_add(server->connections, -count);
}

/* No connection arrives any more. The last ones may have been adopted after the drain. */
static void end_http_2(struct http_server *server)
{
	http_arrivals_close(server);
	if (server->h2)
		h2_server_drain(server->h2, clock_now());
	h2_server_unref(&server->h2);
}

void http_server_stop(struct http_server **own, uint64_t grace_ns)
{
	struct http_server *server = *own;
	if (!server)
		return;
	uint64_t deadline = clock_now() + grace_ns;
	places_leave(server);
	atomic_store(&server->stopping, true);
	if (server->listener)
		http_listener_refuse(server->listener);
	http_deadlines_end_idle(&server->deadlines);
	if (server->h2)
		h2_server_drain(server->h2, deadline);
	pthread_mutex_lock(&server->mutex);
	wait_quiet(server, deadline);
	cut(server);
	pthread_mutex_unlock(&server->mutex);
	if (server->listener)
		http_listener_stop(server->listener);
	end_http_2(server);
	for (struct http_daemon *daemon; (daemon = server->daemons);) {
		server->daemons = daemon->next;
		http_daemon_unref(&daemon);
	}
	forget_connections(server);
	http_listener_unref(&server->listener);
	close(server->deadlines.wake);
	http_state_unref(server);
	*own = NULL;
}

/* Called before the listener's thread checks for the last time whether a connection is left.
 * Connections that close later wake it. */
static void drain_daemons(struct http_server *server)
{
	pthread_mutex_lock(&server->mutex);
	for (struct http_daemon *daemon = server->daemons; daemon; daemon = daemon->next)
		atomic_store(&daemon->draining, true);
	pthread_mutex_unlock(&server->mutex);
}

static void wait_emptied(struct http_server *server, uint64_t end)
{
	struct timespec until = { (time_t)(end / SECOND_NS), (long)(end % SECOND_NS) };
	pthread_mutex_lock(&server->mutex);
	while (!server->emptied && !pthread_cond_timedwait(&server->quiet, &server->mutex, &until))
		;
	pthread_mutex_unlock(&server->mutex);
}

void http_server_retire(struct http_server **own, uint64_t grace_ns)
{
	struct http_server *server = *own;
	if (!server)
		return;
	uint64_t deadline = clock_now() + grace_ns;
	places_leave(server);
	http_listener_refuse(server->listener);
	drain_daemons(server);
	atomic_store(&server->retiring, true);
	http_listener_wake(server->listener);
	if (server->h2)
		h2_server_retire(server->h2, deadline);
	wait_emptied(server, deadline);
	http_server_stop(own, 0);
}
