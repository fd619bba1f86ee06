/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2/rpc_private.h"

#include "base/memory.h"
#include "health.pb-c.h"
#include "net/compress.h"

#include <string.h>

/* grpc.health.v1 (grpc/doc/health-checking.md). The watchers of an I/O thread belong to it. */

enum {
	REQUEST_MAX = 1024,
	WATCHERS_MAX = 1000,
	WATCHERS_OF_CONNECTION = 8,
	RETRY_MS = 1000,
	SERVING = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING,
	NOT_SERVING = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING,
	SERVICE_UNKNOWN = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN
};

struct rpc_watcher { /* an open Watch; freed when its call has ended */
	struct rpc_watcher *next;
	struct rpc_call *call;
	bool known;
	int reported; /* the last status that was sent; -1: none */
};

/* "" or the service of one of the methods: "/package.Service/Method". */
static bool is_known(const struct rpc_server *s, const char *service)
{
	size_t len = strlen(service);
	for (size_t i = 0; i < s->method_count; i++) {
		const char *path = s->methods[i].path;
		if (strncmp(path + 1, service, len) == 0 && path[1 + len] == '/')
			return true;
	}
	return !len;
}

static int status_now(const struct rpc_server *s)
{
	return atomic_load(&s->serving) ? SERVING : NOT_SERVING;
}

static struct view pack(int status, uint8_t packed[16])
{
	Grpc__Health__V1__HealthCheckResponse response =
		GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
	response.status = (Grpc__Health__V1__HealthCheckResponse__ServingStatus)status;
	return (struct view){ packed,
			      grpc__health__v1__health_check_response__pack(&response, packed) };
}

static void headers(void *context, struct rpc_call *call)
{
	struct rpc_server *s = context;
	if (atomic_load(&s->stopping))
		rpc_call_finish(call, RPC_UNAVAILABLE, "the server is shutting down", RETRY_MS,
				NULL);
	else if (!h2_stream_charge(&call->stream))
		rpc_call_finish(call, RPC_UNAVAILABLE, "not enough memory", RETRY_MS, NULL);
	else
		rpc_call_accept(call);
}

static bool grow(void *context, struct rpc_call *call, size_t bytes, struct error *err)
{
	(void)context, (void)call;
	return bytes <= REQUEST_MAX ||
	       error_set(err, ERROR_INVALID, "a HealthCheckRequest must not exceed %d bytes",
			 REQUEST_MAX);
}

static void lost(void *context, struct rpc_call *call, enum rpc_loss why)
{
	(void)context, (void)call, (void)why;
}

/* The decompressed request (grpc-js compresses everything). NULL: invalid. */
static Grpc__Health__V1__HealthCheckRequest *unpack(struct rpc_call *call)
{
	Grpc__Health__V1__HealthCheckRequest *request = NULL;
	struct bytes plain;
	bytes_init(&plain, REQUEST_MAX);
	if (compress_inflate((enum coding)rpc_call_coding(call), bytes_view(rpc_call_body(call)),
			     &plain, NULL))
		request = grpc__health__v1__health_check_request__unpack(NULL, plain.len, plain.at);
	bytes_fini(&plain);
	return request;
}

/* False: the call has already been answered. */
static bool read_request(struct rpc_server *s, struct rpc_call *call, bool *known)
{
	Grpc__Health__V1__HealthCheckRequest *request = unpack(call);
	if (!request) {
		rpc_call_finish(call, RPC_INVALID_ARGUMENT,
				"the message is not a valid "
				"HealthCheckRequest",
				-1, NULL);
		return false;
	}
	*known = is_known(s, request->service);
	grpc__health__v1__health_check_request__free_unpacked(request, NULL);
	return true;
}

static void check(void *context, struct rpc_call *call)
{
	bool known;
	uint8_t packed[16];
	if (!read_request(context, call, &known))
		return;
	struct view view = pack(status_now(context), packed);
	if (known)
		rpc_call_finish(call, RPC_OK, "", -1, &view);
	else
		rpc_call_finish(call, RPC_NOT_FOUND, "unknown service", -1, NULL);
}

static struct rpc_watcher **list_of(struct rpc_call *call)
{
	return &call->server->threads[io_thread_index(call->stream.thread)].watchers;
}

static void remove_watcher(struct rpc_watcher *watcher)
{
	struct rpc_watcher **at = list_of(watcher->call);
	while (*at != watcher)
		at = &(*at)->next;
	*at = watcher->next;
	atomic_fetch_sub(&watcher->call->server->watchers, 1);
	watcher->call->ended = NULL;
	watcher->call->drained = NULL;
	memory_free(watcher);
}

static void gone(struct rpc_call *call)
{
	remove_watcher(rpc_call_user(call));
	rpc_call_finish(call, RPC_CANCELLED_STATUS, "", -1, NULL);
}

static int status_for(const struct rpc_watcher *watcher)
{
	return watcher->known ? status_now(watcher->call->server) : SERVICE_UNKNOWN;
}

static void push(struct rpc_watcher *watcher, int status)
{
	uint8_t packed[16];
	watcher->reported = status;
	rpc_call_push(watcher->call, pack(status, packed));
}

/* Reports a change that happened while a message was being sent. */
static void catch_up(struct rpc_call *call)
{
	struct rpc_watcher *watcher = rpc_call_user(call);
	int status = status_for(watcher);
	if (status != watcher->reported)
		push(watcher, status);
}

static void end(struct rpc_watcher *watcher)
{
	struct rpc_call *call = watcher->call;
	int status = status_for(watcher);
	bool news = status != watcher->reported;
	uint8_t packed[16];
	struct view view = pack(status, packed);
	remove_watcher(watcher);
	rpc_call_finish(call, RPC_UNAVAILABLE, "the server is shutting down", -1,
			news ? &view : NULL);
}

/* One message at a time: a change that happens before it has been sent is reported by catch_up.
 * True: something was sent, which may have ended the connection and all its watchers. */
static bool report(struct rpc_watcher *watcher)
{
	struct rpc_call *call = watcher->call;
	int status = status_for(watcher);
	if (atomic_load(&call->server->stopping)) {
		end(watcher);
		return true;
	}
	if (status == watcher->reported || call->stream.finished ||
	    !h2_stream_drained(&call->stream))
		return false;
	push(watcher, status);
	h2_stream_flush(&call->stream);
	return true;
}

static int watches_on(struct rpc_call *call)
{
	int count = 0;
	for (const struct rpc_watcher *w = *list_of(call); w; w = w->next)
		count += w->call->stream.connection == call->stream.connection;
	return count;
}

static void watch(void *context, struct rpc_call *call)
{
	struct rpc_server *s = context;
	bool known;
	if (!read_request(s, call, &known))
		return;
	if (watches_on(call) >= WATCHERS_OF_CONNECTION) {
		rpc_call_finish(call, RPC_RESOURCE_EXHAUSTED,
				"too many Watch calls on one "
				"connection",
				-1, NULL);
		return;
	}
	if (atomic_fetch_add(&s->watchers, 1) >= WATCHERS_MAX) {
		atomic_fetch_sub(&s->watchers, 1);
		rpc_call_finish(call, RPC_RESOURCE_EXHAUSTED, "too many Watch calls", -1, NULL);
		return;
	}
	struct rpc_watcher *watcher = memory_new(sizeof *watcher);
	*watcher = (struct rpc_watcher){
		.next = *list_of(call), .call = call, .known = known, .reported = -1
	};
	*list_of(call) = watcher;
	rpc_call_set_user(call, watcher);
	call->ended = gone;
	call->drained = catch_up;
	report(watcher);
}

void rpc_health_report(void *server, uint32_t index)
{
	struct rpc_server *s = server;
	struct rpc_watcher **first = &s->threads[index].watchers;
	for (struct rpc_watcher *w = *first; w;)
		w = report(w) ? *first : w->next;
}

void rpc_health_methods(struct rpc_server *server, struct rpc_method *out)
{
	out[0] = (struct rpc_method){
		"/grpc.health.v1.Health/Check", headers, grow, check, lost, server, true
	};
	out[1] = (struct rpc_method){
		"/grpc.health.v1.Health/Watch", headers, grow, watch, lost, server, true
	};
}
