/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2/rpc_status.h"

#include "status.pb-c.h"

#include <assert.h>

int rpc_status(const struct error *err)
{
	static const int status[] = {
		[ERROR_NONE] = RPC_OK,
		[ERROR_CONFIG] = RPC_INTERNAL,
		[ERROR_INVALID] = RPC_INVALID_ARGUMENT,
		[ERROR_TOO_LARGE] = RPC_RESOURCE_EXHAUSTED,
		[ERROR_UNSUPPORTED] = RPC_UNIMPLEMENTED,
		[ERROR_UNAUTHENTICATED] = RPC_UNAUTHENTICATED,
		[ERROR_FORBIDDEN] = RPC_PERMISSION_DENIED,
		[ERROR_BUSY] = RPC_UNAVAILABLE,
		[ERROR_INTERNAL] = RPC_INTERNAL,
	};
	return err->over_quota ? RPC_RESOURCE_EXHAUSTED : status[err->kind];
}

static size_t pack(const Google__Rpc__Status *message, uint8_t *out, size_t room)
{
	assert(google__rpc__status__get_packed_size(message) <= room);
	(void)room;
	return google__rpc__status__pack(message, out);
}

size_t rpc_status_pack(int code, const char *message, int64_t retry_ms, uint8_t *out, size_t room)
{
	Google__Rpc__Status status = GOOGLE__RPC__STATUS__INIT;
	status.code = code;
	status.message = (char *)message;
	if (retry_ms < 0)
		return pack(&status, out, room);
	Google__Rpc__Duration delay = GOOGLE__RPC__DURATION__INIT;
	delay.seconds = retry_ms / 1000;
	delay.nanos = (int32_t)(retry_ms % 1000) * 1000000;
	Google__Rpc__RetryInfo retry = GOOGLE__RPC__RETRY_INFO__INIT;
	retry.retry_delay = &delay;
	uint8_t packed[64];
	assert(google__rpc__retry_info__get_packed_size(&retry) <= sizeof packed);
	Google__Rpc__Any any = GOOGLE__RPC__ANY__INIT;
	any.type_url = (char *)"type.googleapis.com/google.rpc.RetryInfo";
	any.value.data = packed;
	any.value.len = google__rpc__retry_info__pack(&retry, packed);
	Google__Rpc__Any *details[] = { &any };
	status.n_details = 1;
	status.details = details;
	return pack(&status, out, room);
}
