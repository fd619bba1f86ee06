/* SPDX-License-Identifier: Apache-2.0 */
#include "net/rpc_private.h"

#include "health.pb-c.h"

#include <string.h>

enum { REQUEST_MAX = 1024 };

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

static void answer(struct rpc_server *s, struct rpc_call *call)
{
	Grpc__Health__V1__HealthCheckResponse response = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
	response.status = atomic_load(&s->serving) ?
				  GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING :
				  GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING;
	uint8_t packed[16];
	struct view view = { packed, grpc__health__v1__health_check_response__pack(&response, packed) };
	rpc_call_finish(call, GRPC_STATUS_OK, "", -1, &view);
}

static void headers(void *context, struct rpc_call *call)
{
	(void)context;
	rpc_call_accept(call);
}

static void message(void *context, struct rpc_call *call, size_t len)
{
	(void)len;
	struct bytes body;
	bytes_init(&body, REQUEST_MAX);
	Grpc__Health__V1__HealthCheckRequest *request = NULL;
	if (rpc_call_read(call, &body))
		request = grpc__health__v1__health_check_request__unpack(NULL, body.len, body.at);
	if (!request)
		rpc_call_finish(call, GRPC_STATUS_INVALID_ARGUMENT, "not a HealthCheckRequest", -1,
				NULL);
	else if (!is_known(context, request->service))
		rpc_call_finish(call, GRPC_STATUS_NOT_FOUND, "unknown service", -1, NULL);
	else
		answer(context, call);
	if (request)
		grpc__health__v1__health_check_request__free_unpacked(request, NULL);
	bytes_fini(&body);
}

static void lost(void *context, struct rpc_call *call, bool too_large)
{
	(void)context, (void)call, (void)too_large;
}

struct rpc_method rpc_health_method(struct rpc_server *server)
{
	return (struct rpc_method){ "/grpc.health.v1.Health/Check", headers, message, lost, server };
}
