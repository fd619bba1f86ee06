/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/http/http_internal.h"

#define WATCH_CA_NS UINT64_C(10000000000)
/* The memory of libmicrohttpd and of this server for a connection, in addition to its headers; and
 * that of GnuTLS. */
#define CONNECTION_BYTES 4096
#define TLS_BYTES 24576

static uint64_t watch_interval(const struct tls_server_config *tls)
{
	if (!tls->present.enabled || tls->reload_interval.ns > 0)
		return tls->present.enabled ? (uint64_t)tls->reload_interval.ns : 0;
	return tls->client_ca_file_reload ? WATCH_CA_NS : 0;
}

void http_state_limit_headers(struct http_server *server)
{
	const struct http_server_config *config = server->config;
	int64_t bytes =
		config && config->max_header_bytes ? config->max_header_bytes : HTTP_HEADER_BYTES;
	int64_t count =
		config && config->max_header_count ? config->max_header_count : HTTP_HEADER_COUNT;
	server->header_limits = (struct fields_limits){ .count = (size_t)count,
							.name = (size_t)bytes,
							.value = (size_t)bytes,
							.total = (size_t)bytes };
}

struct http_server *http_state_new(const struct http_server_options *options)
{
	struct http_server *server = memory_new(sizeof *server);
	atomic_store(&server->holds, 1);
	const struct http_server_config *config = options->config;
	server->config = config;
	server->log = options->log;
	server->budget = options->budget;
	server->authenticator = authenticator_ref(options->authenticator);
	server->peers = peer_count_new();
	server->arrivals.epoll = -1;
	server->io = options->io;
	server->cors_exposed = http_cors_exposed(config);
	snprintf(server->cors_max_age, sizeof server->cors_max_age, "%ld",
		 config->cors.max_age > 0 ? (long)config->cors.max_age : 0L);
	http_state_limit_headers(server);
	server->connection_cost = CONNECTION_BYTES + HTTP_CONNECTION_MEMORY +
				  (int64_t)server->header_limits.total +
				  (config->tls.present.enabled ? TLS_BYTES : 0);
	server->reopen_ns = watch_interval(&config->tls);
	server->reopen_next = server->reopen_ns ? clock_now() + server->reopen_ns : UINT64_MAX;
	server->route_count = options->route_count;
	server->routes = memory_array(options->route_count, sizeof *server->routes);
	memcpy(server->routes, options->routes, options->route_count * sizeof *server->routes);
	pthread_mutex_init(&server->mutex, NULL);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&server->quiet, &monotonic);
	pthread_condattr_destroy(&monotonic);
	http_deadlines_init(&server->deadlines, options->config,
			    eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	return server;
}

void http_state_unref(struct http_server *server)
{
	if (atomic_fetch_sub(&server->holds, 1) != 1)
		return;
	http_deadlines_fini(&server->deadlines);
	if (server->arrivals.epoll >= 0)
		close(server->arrivals.epoll);
	peer_count_unref(&server->peers);
	memory_free(server->owed);
	memory_free(server->cors_exposed);
	pthread_cond_destroy(&server->quiet);
	pthread_mutex_destroy(&server->mutex);
	memory_free(server->routes);
	authenticator_unref(&server->authenticator);
	memory_free(server);
}
