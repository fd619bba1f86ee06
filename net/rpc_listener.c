/* SPDX-License-Identifier: Apache-2.0 */
#include "net/rpc_private.h"

#include "base/memory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SLOTS_PER_METHOD = 64,
	SLOTS_UNKNOWN = 2,
	LOOKAHEAD_BYTES = 65536,   /* per stream that nobody reads yet */
	METADATA_BYTES = 16384,
	HANDSHAKE_MS = 20000,
	STREAMS = 100,
	KEEPALIVE_MS = 7200000,
	KEEPALIVE_TIMEOUT_MS = 20000,
	MIN_PING_MS = 300000,
	ARGS_MAX = 24
};

struct args {
	grpc_arg at[ARGS_MAX];
	size_t count;
};

static void add(struct args *args, const char *key, int value)
{
	args->at[args->count++] = (grpc_arg){ .type = GRPC_ARG_INTEGER, .key = (char *)key,
					      .value.integer = value };
}

static int at_most_int(int64_t value)
{
	return value > INT_MAX ? INT_MAX : (int)value;
}

/* Rounded up, so that a short time never becomes "none". */
static int milliseconds(struct duration d, int if_zero)
{
	return d.ns > 0 ? at_most_int((d.ns + 999999) / 1000000) : if_zero;
}

static void fill_args(struct args *args, const struct rpc_server_options *o)
{
	/* Core would inflate whatever it is sent before it looks at a limit. */
	add(args, GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
	add(args, GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, at_most_int(o->max_message_bytes));
	add(args, GRPC_ARG_MAX_METADATA_SIZE, METADATA_BYTES);
	/* With bandwidth probing on, core offers 4 MB windows for streams that nobody reads. */
	add(args, GRPC_ARG_HTTP2_BDP_PROBE, 0);
	add(args, GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, LOOKAHEAD_BYTES);
	add(args, GRPC_ARG_MAX_CONCURRENT_STREAMS,
	    o->max_concurrent_streams > 0 ? at_most_int(o->max_concurrent_streams) : STREAMS);
	/* Without the permission core never notices a dead peer that has no call open. */
	add(args, GRPC_ARG_KEEPALIVE_TIME_MS, milliseconds(o->keepalive_time, KEEPALIVE_MS));
	add(args, GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
	    milliseconds(o->keepalive_timeout, KEEPALIVE_TIMEOUT_MS));
	add(args, GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
	add(args, GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
	add(args, GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
	    milliseconds(o->min_ping_interval, MIN_PING_MS));
	add(args, GRPC_ARG_MAX_CONNECTION_IDLE_MS, milliseconds(o->max_connection_idle, INT_MAX));
	add(args, GRPC_ARG_MAX_CONNECTION_AGE_MS, milliseconds(o->max_connection_age, INT_MAX));
	add(args, GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS,
	    milliseconds(o->max_connection_age_grace, INT_MAX));
	add(args, GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, HANDSHAKE_MS);
	add(args, GRPC_ARG_ENABLE_CHANNELZ, 0);
	/* A second listener must be able to take over the port. */
	add(args, GRPC_ARG_ALLOW_REUSEPORT, 1);
}

static void add_quota(struct args *args, grpc_resource_quota *quota)
{
	args->at[args->count++] = (grpc_arg){
		.type = GRPC_ARG_POINTER,
		.key = (char *)GRPC_ARG_RESOURCE_QUOTA,
		.value.pointer = { quota, grpc_resource_quota_arg_vtable() },
	};
}

static grpc_server *core_new(const struct rpc_server_options *o)
{
	struct args args = { .count = 0 };
	fill_args(&args, o);
	grpc_resource_quota *quota = NULL;
	if (o->max_core_bytes > 0) {
		quota = grpc_resource_quota_create("portcullis");
		grpc_resource_quota_resize(quota, (size_t)o->max_core_bytes);
		add_quota(&args, quota);
	}
	grpc_channel_args all = { args.count, args.at };
	grpc_server *core = grpc_server_create(&all, NULL);
	if (quota)
		grpc_resource_quota_unref(quota);
	return core;
}

static void gone_if_done(struct rpc_listener *l)
{
	struct rpc_server *s = l->server;
	if (l->calls || !l->core_done)
		return;
	pthread_mutex_lock(&s->mutex);
	struct rpc_listener **at = &s->listeners;
	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	grpc_server_destroy(l->core);
	memory_free(l->registered);
	memory_free(l);
	if (!s->listeners)
		pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->mutex);
}

void rpc_listener_call_gone(struct rpc_listener *l)
{
	l->calls--;
	gone_if_done(l);
}

static void drained(void *owner, bool ok)
{
	struct rpc_listener *l = owner;
	(void)ok;
	l->core_done = true;
	gone_if_done(l);
}

void rpc_listener_drain(struct rpc_listener *l)
{
	if (l->draining)
		return;
	l->draining = true;
	grpc_server_shutdown_and_notify(l->core, l->server->queue, &l->drained);
}

/* The port that the system chose once is kept for all addresses and later listeners. */
static bool add_port(struct rpc_listener *l, const char *address, struct error *err)
{
	struct rpc_server *s = l->server;
	char fixed[sizeof s->addresses.at[0] + 8];
	int len = (int)(strrchr(address, ':') - address);
	if (s->addresses.any_port && s->port)
		snprintf(fixed, sizeof fixed, "%.*s:%d", len, address, s->port);
	else
		snprintf(fixed, sizeof fixed, "%s", address);
	grpc_server_credentials *credentials = rpc_tls_credentials(&l->view);
	int port = grpc_server_add_http2_port(l->core, fixed, credentials);
	grpc_server_credentials_release(credentials);
	if (!port)
		return error_set(err, ERROR_CONFIG, "cannot listen on %s", fixed);
	if (!s->port && strncmp(address, "unix:", 5) != 0)
		s->port = port;
	return true;
}

static bool add_ports(struct rpc_listener *l, struct error *err)
{
	const struct rpc_addresses *addresses = &l->server->addresses;
	for (size_t i = 0; i < addresses->count; i++)
		if (!add_port(l, addresses->at[i], err))
			return false;
	return true;
}

static struct rpc_listener *listener_new(struct rpc_server *s)
{
	struct rpc_listener *l = memory_new(sizeof *l);
	*l = (struct rpc_listener){
		.server = s,
		.view.tls = s->options.tls ? &s->tls : NULL,
		.registered = memory_array(s->method_count, sizeof *l->registered),
	};
	grpc_tag_init(&l->drained, drained, l);
	l->core = core_new(&s->options);
	grpc_server_register_completion_queue(l->core, s->queue, NULL);
	for (size_t i = 0; i < s->method_count; i++)
		l->registered[i] = grpc_server_register_method(l->core, s->methods[i].path, NULL,
							       GRPC_SRM_PAYLOAD_NONE, 0);
	return l;
}

bool rpc_listener_open(struct rpc_server *s, struct error *err)
{
	struct rpc_listener *l = listener_new(s);
	l->next = s->listeners;
	s->listeners = l;
	if (!add_ports(l, err)) {
		rpc_listener_drain(l);
		return false;
	}
	grpc_server_start(l->core);
	for (size_t i = 0; i < s->method_count; i++)
		rpc_call_await(l, i, SLOTS_PER_METHOD);
	rpc_call_await(l, s->method_count, SLOTS_UNKNOWN);
	return true;
}
