/* SPDX-License-Identifier: Apache-2.0 */
#include "net/rpc_private.h"

#include "base/memory.h"
#include "health.pb-c.h"

#include <string.h>

enum {
	REQUEST_MAX = 1024,
	WATCHERS_MAX = 100,
	SERVING = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING,
	NOT_SERVING = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING,
	SERVICE_UNKNOWN = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN
};

struct rpc_watcher { /* an open Watch; freed when its call has its status */
	struct rpc_watcher *next;
	struct rpc_call *call;
	bool known;
	int told; /* the last status; -1: none */
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
	Grpc__Health__V1__HealthCheckResponse response = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
	response.status = (Grpc__Health__V1__HealthCheckResponse__ServingStatus)status;
	return (struct view){ packed, grpc__health__v1__health_check_response__pack(&response, packed) };
}

static void headers(void *context, struct rpc_call *call)
{
	(void)context;
	rpc_call_accept(call);
}

static void lost(void *context, struct rpc_call *call, bool too_large)
{
	(void)context, (void)call, (void)too_large;
}

/* False: the call has its answer. */
static bool read_request(struct rpc_server *s, struct rpc_call *call, bool *known)
{
	struct bytes body;
	bytes_init(&body, REQUEST_MAX);
	Grpc__Health__V1__HealthCheckRequest *request = NULL;
	if (rpc_call_read(call, &body))
		request = grpc__health__v1__health_check_request__unpack(NULL, body.len, body.at);
	bytes_fini(&body);
	if (!request) {
		rpc_call_finish(call, GRPC_STATUS_INVALID_ARGUMENT, "not a HealthCheckRequest", -1, NULL);
		return false;
	}
	*known = is_known(s, request->service);
	grpc__health__v1__health_check_request__free_unpacked(request, NULL);
	return true;
}

static void check(void *context, struct rpc_call *call, size_t len)
{
	bool known;
	uint8_t packed[16];
	(void)len;
	if (!read_request(context, call, &known))
		return;
	struct view view = pack(status_now(context), packed);
	if (known)
		rpc_call_finish(call, GRPC_STATUS_OK, "", -1, &view);
	else
		rpc_call_finish(call, GRPC_STATUS_NOT_FOUND, "unknown service", -1, NULL);
}

static void remove_watcher(struct rpc_watcher *watcher)
{
	struct rpc_server *s = watcher->call->listener->server;
	struct rpc_watcher **at = &s->watchers;
	while (*at != watcher)
		at = &(*at)->next;
	*at = watcher->next;
	watcher->call->ended = NULL;
	memory_free(watcher);
}

static void gone(struct rpc_call *call)
{
	remove_watcher(rpc_call_user(call));
	rpc_call_finish(call, GRPC_STATUS_CANCELLED, "", -1, NULL);
}

/* What changes while a message is on its way is told by a later tick, if it still holds then. */
static void tell(struct rpc_watcher *watcher)
{
	struct rpc_call *call = watcher->call;
	int status = watcher->known ? status_now(call->listener->server) : SERVICE_UNKNOWN;
	bool ends = call->listener->server->stopping || call->listener->draining;
	bool news = status != watcher->told;
	uint8_t packed[16];
	struct view view = pack(status, packed);
	if (call->pushing || (!news && !ends))
		return;
	watcher->told = status;
	if (!ends) {
		rpc_call_push(call, &view);
		return;
	}
	remove_watcher(watcher);
	rpc_call_finish(call, GRPC_STATUS_UNAVAILABLE, "the server is stopping", -1, news ? &view : NULL);
}

static bool has_room(const struct rpc_server *s)
{
	size_t count = 0;
	for (const struct rpc_watcher *w = s->watchers; w; w = w->next)
		count++;
	return count < WATCHERS_MAX;
}

static void watch(void *context, struct rpc_call *call, size_t len)
{
	struct rpc_server *s = context;
	bool known;
	(void)len;
	if (!read_request(s, call, &known))
		return;
	if (call->over || !has_room(s)) {
		rpc_call_finish(call, GRPC_STATUS_RESOURCE_EXHAUSTED, "too many watchers", -1, NULL);
		return;
	}
	struct rpc_watcher *watcher = memory_new(sizeof *watcher);
	*watcher = (struct rpc_watcher){ .next = s->watchers, .call = call, .known = known, .told = -1 };
	s->watchers = watcher;
	rpc_call_set_user(call, watcher);
	call->ended = gone;
	tell(watcher);
}

void rpc_health_tick(struct rpc_server *s)
{
	struct rpc_watcher *next;
	for (struct rpc_watcher *w = s->watchers; w; w = next) {
		next = w->next;
		tell(w);
	}
}

void rpc_health_methods(struct rpc_server *server, struct rpc_method *out)
{
	out[0] = (struct rpc_method){ "/grpc.health.v1.Health/Check", headers, check, lost, server };
	out[1] = (struct rpc_method){ "/grpc.health.v1.Health/Watch", headers, watch, lost, server };
}
