/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2/rpc_private.h"

#include "base/clock.h"
#include "base/memory.h"

#include <string.h>

#define SECOND UINT64_C(1000000000)

/* The life of a gRPC server; calls are in rpc.c. */

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

static void name_methods(struct rpc_server *s)
{
	struct bytes text;
	bytes_init(&text, 4096);
	bytes_add_text(&text, "unknown method, supported: [");
	for (size_t i = 0; i < s->method_count; i++) {
		bytes_add_text(&text, i ? ", " : "");
		bytes_add_text(&text, s->methods[i].path);
	}
	bytes_add_byte(&text, ']');
	s->unknown = memory_text_of(text.at, text.len);
	bytes_fini(&text);
}

static struct rpc_server *server_new(const struct rpc_server_options *options)
{
	struct rpc_server *s = memory_new(sizeof *s);
	s->options = *options;
	s->authenticator = authenticator_ref(options->authenticator);
	s->message_timeout = options->message_timeout.ns > 0 ? (uint64_t)options->message_timeout.ns
							     : 60 * SECOND;
	s->threads = memory_array(io_count(options->h2.io), sizeof *s->threads);
	pthread_mutex_init(&s->mutex, NULL);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	atomic_init(&s->serving, true);
	copy_methods(s);
	name_methods(s);
	return s;
}

static void server_free(struct rpc_server *s)
{
	h2_server_unref(&s->h2);
	for (uint32_t i = 0; i < io_count(s->options.h2.io); i++)
		bytes_fini(&s->threads[i].spare);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->mutex);
	memory_free(s->threads);
	memory_free(s->methods);
	memory_free(s->unknown);
	authenticator_unref(&s->authenticator);
	memory_free(s);
}

struct rpc_server *rpc_server_start(const struct rpc_server_options *options, struct error *err)
{
	struct rpc_server *s = server_new(options);
	struct h2_options h2 = options->h2;
	struct h2_route *routes = memory_array(h2.route_count + 1, sizeof *routes);
	if (h2.route_count)
		memcpy(routes, h2.routes, h2.route_count * sizeof *routes);
	routes[h2.route_count++] = (struct h2_route){ NULL, "application/grpc", &rpc_service, s };
	h2.routes = routes;
	s->h2 = h2_server_start(&h2, err);
	memory_free(routes);
	if (s->h2)
		return s;
	server_free(s);
	return NULL;
}

int rpc_server_port(const struct rpc_server *s)
{
	return h2_server_port(s->h2);
}

void rpc_server_set_serving(struct rpc_server *s, bool serving)
{
	if (atomic_exchange(&s->serving, serving) != serving)
		h2_server_each_thread(s->h2, rpc_health_report, s);
}

bool rpc_server_reopen(struct rpc_server *s, struct error *err)
{
	return h2_server_reopen(s->h2, err);
}

void rpc_server_call_done(struct rpc_server *s)
{
	pthread_mutex_lock(&s->mutex);
	if (--s->accepted == 0)
		pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->mutex);
}

/* Waits for every call, even past the deadline (0: none): whoever holds a call still uses it. */
static void wait_for_calls(struct rpc_server *s, uint64_t deadline)
{
	struct timespec at = { (time_t)(deadline / SECOND), (long)(deadline % SECOND) };
	int code = 0;
	pthread_mutex_lock(&s->mutex);
	while (s->accepted && code == 0)
		code = deadline ? pthread_cond_timedwait(&s->changed, &s->mutex, &at)
				: pthread_cond_wait(&s->changed, &s->mutex);
	pthread_mutex_unlock(&s->mutex);
}

void rpc_server_stop(struct rpc_server **slot, uint64_t grace_ns)
{
	struct rpc_server *s = *slot;
	uint64_t deadline = clock_now() + grace_ns;
	if (!s)
		return;
	*slot = NULL;
	rpc_server_set_serving(s, false);
	atomic_store(&s->stopping, true);
	h2_server_each_thread(s->h2, rpc_health_report, s);
	wait_for_calls(s, deadline);
	h2_server_drain(s->h2, deadline);
	wait_for_calls(s, 0);
	server_free(s);
}

void rpc_server_retire(struct rpc_server **slot, uint64_t grace_ns)
{
	struct rpc_server *s = *slot;
	uint64_t deadline = clock_now() + grace_ns;
	if (!s)
		return;
	*slot = NULL;
	h2_server_retire(s->h2, deadline);
	wait_for_calls(s, 0);
	server_free(s);
}
