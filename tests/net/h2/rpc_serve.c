/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gRPC server alone, for test_rpc_server.py. Options are KEY=VALUE arguments. Commands are
 * lines on stdin; the reply to each is one line on stdout.
 *
 *	/test.Test/Echo    a worker replies with what it knows of the call and of its message
 *	/test.Test/Busy    refused at the headers, with a retry hint of 1500 ms
 *	/test.Test/Hold    the reply follows after the command `release`
 *	/text              text/plain, not gRPC: the reply is "text: " and the body
 *
 *	count          prints how often each callback was called
 *	release        replies to all held calls
 *	reload         reads the certificates again
 *	serving 0|1    sets the state that the health service reports
 *	budget BYTES   sets the bytes of its message that each call may hold
 *	room BYTES     sets the bytes that all connections may hold
 *	held           the bytes that they hold
 *	rss            resident KiB
 *	io             the largest sizes passed to recv and to send so far
 *	stop MS        stops with this grace period and exits
 *	stop_held MS   the same, but releases held calls only when the stop is overdue
 */
#include "base/clock.h"
#include "base/memory.h"
#include "config/load.h"
#include "config/node.h"
#include "net/h2/rpc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { HELD_MAX = 4096 };

static struct tls_server_config tls;
static struct rpc_server_options options = { .message_limit = { 0, "max_message", 4 << 20 } };
static struct io *io;
static const char *limits = "{}";
static int64_t read_buffer, write_buffer;
static struct rpc_server *server;
static _Atomic int seen_headers, seen_messages, seen_lost, seen_too_large, replied;
static _Atomic bool stopping;
static _Atomic long budget = 1L << 40;

/* Replaces functions of the C library, to record how the server uses its sockets: the program's own
 * recv and send (net/client_socket.h) call them. */
static _Atomic size_t largest_recv, largest_send;

static void note(_Atomic size_t *largest, size_t len)
{
	size_t before = atomic_load(largest);
	while (len > before && !atomic_compare_exchange_weak(largest, &before, len))
		;
}

ssize_t recvfrom(int fd, void *buffer, size_t len, int flags, struct sockaddr *from,
		 socklen_t *from_len)
{
	note(&largest_recv, len);
	return syscall(SYS_recvfrom, fd, buffer, len, flags, from, from_len);
}

ssize_t sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
	       socklen_t to_len)
{
	note(&largest_send, len);
	return syscall(SYS_sendto, fd, data, len, flags, to, to_len);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct rpc_call *queue[HELD_MAX], *held[HELD_MAX];
static size_t queued, holding;
static bool ending;

static void put(struct rpc_call **list, size_t *count, struct rpc_call *call)
{
	pthread_mutex_lock(&mutex);
	list[(*count)++] = call;
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&mutex);
}

static void answer(struct rpc_call *call)
{
	struct bytes text;
	const struct bytes *body = rpc_call_body(call);
	bytes_init(&text, 1 << 20);
	bytes_format(&text,
		     "coding=%d len=%zu first=%02x "
		     "peer=%s",
		     rpc_call_coding(call), body->len, body->len ? body->at[0] : 0,
		     rpc_call_peer(call));
	for (const struct metadatum *m = rpc_call_auth(call); m && m->name; m++)
		bytes_format(&text, "\nauth.%s=%s", m->name, m->value);
	for (const struct metadatum *m = rpc_call_metadata(call); m->name; m++)
		bytes_format(&text, "\n%s=%s", m->name, m->value);
	atomic_fetch_add(&replied, 1);
	rpc_call_reply(call, NULL, bytes_view(&text));
	bytes_fini(&text);
}

static void *work(void *argument)
{
	(void)argument;
	pthread_mutex_lock(&mutex);
	while (!ending || queued) {
		if (!queued) {
			pthread_cond_wait(&more, &mutex);
			continue;
		}
		struct rpc_call *call = queue[--queued];
		pthread_mutex_unlock(&mutex);
		answer(call);
		pthread_mutex_lock(&mutex);
	}
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void refuse(struct rpc_call *call, const char *why)
{
	struct error err;
	error_set(&err, ERROR_BUSY, "%s", why);
	err.retry_after_ms = 1500;
	rpc_call_reply(call, &err, (struct view){ 0 });
}

static void on_headers(void *context, struct rpc_call *call)
{
	(void)context;
	atomic_fetch_add(&seen_headers, 1);
	if (stopping) {
		refuse(call, "stopping");
		return;
	}
	rpc_call_set_user(call, &queue);
	rpc_call_peer(call);
	rpc_call_auth(call);
	rpc_call_metadata(call);
	rpc_call_accept(call);
}

static void be_busy(void *context, struct rpc_call *call)
{
	(void)context;
	atomic_fetch_add(&seen_headers, 1);
	refuse(call, "the memory limit is reached");
}

/* Grants `budget` bytes, to all calls together. */
static bool grow(void *context, struct rpc_call *call, size_t bytes, struct error *err)
{
	(void)context, (void)call;
	return bytes <= (size_t)budget || error_set(err, ERROR_BUSY, "the memory limit is reached");
}

/* ---- the memory of connections */

static _Atomic int64_t room = INT64_C(1) << 40, connections_hold;

static bool hold_connection(void *context, int64_t bytes)
{
	(void)context;
	if (atomic_fetch_add(&connections_hold, bytes) + bytes <= room)
		return true;
	atomic_fetch_sub(&connections_hold, bytes);
	return false;
}

static void release_connection(void *context, int64_t bytes)
{
	(void)context;
	atomic_fetch_sub(&connections_hold, bytes);
}

static int64_t room_for_connections(void *context)
{
	(void)context;
	return room - connections_hold;
}

/* Before it is confirmed: what comes next must find it. */
static void set(_Atomic int64_t *number, const char *text)
{
	*number = strtoll(text, NULL, 10);
	puts("ok");
}

static const struct net_budget connections = { .hold = hold_connection,
					       .release = release_connection,
					       .room = room_for_connections };

static void on_message(void *context, struct rpc_call *call)
{
	if (rpc_call_user(call) != &queue)
		abort();
	atomic_fetch_add(&seen_messages, 1);
	if (context)
		put(held, &holding, call);
	else
		put(queue, &queued, call);
}

static void on_lost(void *context, struct rpc_call *call, enum rpc_loss why)
{
	(void)context, (void)call;
	atomic_fetch_add(why == RPC_TOO_LARGE ? &seen_too_large : &seen_lost, 1);
}

static const struct rpc_method methods[] = {
	{ "/test.Test/Echo", on_headers, grow, on_message, on_lost, NULL },
	{ "/test.Test/Busy", be_busy, NULL, NULL, NULL, NULL },
	{ "/test.Test/Hold", on_headers, grow, on_message, on_lost, &held },
};

/* ---- a service other than gRPC, with a struct of another size */

struct text_request {
	struct h2_stream stream; /* first */
	struct bytes body;
	char padding[8192];
};

static struct text_request *text_of(struct h2_stream *stream)
{
	return (struct text_request *)stream;
}

static void text_headers(struct h2_stream *stream)
{
	const struct h2_header type = { "content-type", { (const uint8_t *)stream->context, 10 } };
	bytes_init(&text_of(stream)->body, 65536);
	h2_stream_respond(stream, "200", &type, 1);
	h2_stream_send(stream, (struct view){ (const uint8_t *)"text: ", 6 });
}

static void text_data(struct h2_stream *stream, struct view data)
{
	bytes_add(&text_of(stream)->body, data.at, data.len);
}

static void text_end(struct h2_stream *stream)
{
	h2_stream_send(stream, bytes_view(&text_of(stream)->body));
	h2_stream_finish(stream, NULL, NULL, 0);
}

static void text_late(struct h2_stream *stream, uint64_t now)
{
	(void)stream, (void)now;
}

static void text_closed(struct h2_stream *stream)
{
	(void)stream;
}

static void text_fini(struct h2_stream *stream)
{
	bytes_fini(&text_of(stream)->body);
}

static const struct h2_service text_service = {
	.size = sizeof(struct text_request),
	.headers = text_headers,
	.data = text_data,
	.end = text_end,
	.late = text_late,
	.closed = text_closed,
	.fini = text_fini,
};

static const struct h2_route text_route = { "/text", "text/plain", &text_service,
					    (void *)"text/plain" };

static void set_option(const char *key, char *value)
{
	const struct {
		const char *key;
		char **text;
		int64_t *number;
	} rows[] = {
		{ "endpoint", (char **)&options.h2.endpoint, NULL },
		{ "transport", (char **)&options.h2.transport, NULL },
		{ "limits", (char **)&limits, NULL },
		{ "cert", &tls.cert_file, NULL },
		{ "key", &tls.key_file, NULL },
		{ "client_ca", &tls.client_ca_file, NULL },
		{ "max_message", NULL, &options.message_limit.value },
		{ "streams", NULL, &options.h2.max_concurrent_streams },
		{ "age", NULL, &options.h2.max_connection_age.ns },
		{ "idle", NULL, &options.h2.max_connection_idle.ns },
		{ "age_grace", NULL, &options.h2.max_connection_age_grace.ns },
		{ "keepalive_time", NULL, &options.h2.keepalive_time.ns },
		{ "keepalive_timeout", NULL, &options.h2.keepalive_timeout.ns },
		{ "min_ping", NULL, &options.h2.min_ping_interval.ns },
		{ "reload_interval", NULL, &tls.reload_interval.ns },
		{ "read_buffer", NULL, &read_buffer },
		{ "write_buffer", NULL, &write_buffer },
		{ "message_timeout", NULL, &options.message_timeout.ns },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (strcmp(rows[i].key, key) == 0) {
			if (rows[i].text)
				*rows[i].text = value;
			else
				*rows[i].number = atoll(value);
			return;
		}
	fprintf(stderr, "unknown option %s\n", key);
	exit(2);
}

static void set_limits(void)
{
	struct error err = { 0 };
	struct node *node = config_parse("limits", limits, strlen(limits), &err);
	if (!node || !config_bind(&h2_limits_table, node, "limits", &options.h2.limits, &err)) {
		printf("error %s\n", err.text);
		exit(1);
	}
	node_unref(&node);
}

static void release(void)
{
	pthread_mutex_lock(&mutex);
	while (holding)
		queue[queued++] = held[--holding];
	pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&mutex);
}

static long resident(void)
{
	long pages = 0, ignored;
	FILE *f = fopen("/proc/self/statm", "r");
	if (!f || fscanf(f, "%ld %ld", &ignored, &pages) != 2)
		pages = -1;
	if (f)
		fclose(f);
	return pages * 4;
}

static void *release_later(void *argument)
{
	struct timespec time = { 0, 300000000 };
	nanosleep(&time, NULL);
	release();
	return argument;
}

static void stop(const char *grace_ms, bool overdue)
{
	pthread_t later;
	stopping = true;
	if (overdue)
		pthread_create(&later, NULL, release_later, NULL);
	rpc_server_stop(&server, strtoull(grace_ms, NULL, 10) * 1000000);
	if (overdue)
		pthread_join(later, NULL);
}

static void obey(char *line)
{
	struct error err = { 0 };
	if (strcmp(line, "count") == 0)
		printf("headers=%d messages=%d lost=%d too_large=%d replied=%d\n", seen_headers,
		       seen_messages, seen_lost, seen_too_large, replied);
	else if (strcmp(line, "release") == 0)
		release(), puts("released");
	else if (strcmp(line, "reload") == 0)
		puts(rpc_server_reopen(server, &err) ? "ok" : err.text);
	else if (strncmp(line, "serving ", 8) == 0)
		rpc_server_set_serving(server, line[8] == '1'), puts("ok");
	else if (strncmp(line, "budget ", 7) == 0)
		set(&budget, line + 7);
	else if (strncmp(line, "room ", 5) == 0)
		set(&room, line + 5);
	else if (strcmp(line, "held") == 0)
		printf("%lld\n", (long long)connections_hold);
	else if (strcmp(line, "rss") == 0)
		printf("%ld\n", resident());
	else if (strcmp(line, "io") == 0)
		printf("recv=%zu send=%zu\n", largest_recv, largest_send);
	else if (strncmp(line, "stop ", 5) == 0)
		stop(line + 5, false);
	else if (strncmp(line, "stop_held ", 10) == 0)
		stop(line + 10, true);
	else
		puts("?");
}

static void end(pthread_t worker)
{
	rpc_server_stop(&server, 0);
	pthread_mutex_lock(&mutex);
	ending = true;
	pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&mutex);
	pthread_join(worker, NULL);
}

static void *run_loop(void *argument)
{
	loop_run(argument);
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct log log;
	for (int i = 1; i < argc; i++) {
		char *value = strchr(argv[i], '=');
		*value++ = '\0';
		set_option(argv[i], value);
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	set_limits();
	options.message_limit.max = (size_t)options.message_limit.value;
	options.h2.tls = tls.cert_file ? &tls : NULL;
	options.h2.budget = connections;
	options.h2.pings_without_streams = true;
	options.h2.read_buffer_bytes = (size_t)read_buffer;
	options.h2.write_buffer_bytes = (size_t)write_buffer;
	options.h2.routes = &text_route;
	options.h2.route_count = 1;
	options.methods = methods;
	options.method_count = sizeof methods / sizeof *methods;
	options.h2.log = &log;
	struct error err;
	struct loop *loop = loop_new(&err);
	options.h2.loop = loop;
	io = io_start(2, &err);
	options.h2.io = io;
	server = rpc_server_start(&options, &err);
	if (!server) {
		printf("error %s\n", err.text);
		io_stop(&io);
		loop_unref(&loop);
		return 1;
	}
	pthread_t worker, looper;
	if (tls.reload_interval.ns) /* its commands would arrive on the wrong thread */
		pthread_create(&looper, NULL, run_loop, loop);
	pthread_create(&worker, NULL, work, NULL);
	printf("port %d\n", rpc_server_port(server));
	char line[256];
	while (server && fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = '\0';
		obey(line);
	}
	if (tls.reload_interval.ns) {
		loop_stop(loop);
		pthread_join(looper, NULL);
	}
	end(worker);
	io_stop(&io);
	loop_unref(&loop);
	puts("stopped");
	return 0;
}
