/* SPDX-License-Identifier: Apache-2.0 */
#include "net/rpc_private.h"

#include "base/clock.h"
#include "net/grpc_core.h"
#include "status.pb-c.h"

#include <assert.h>
#include <grpc/byte_buffer.h>
#include <string.h>

enum { RETRY_MS = 1000 };

/* google.rpc.Status with RetryInfo, serialized: 80 bytes and the text. */
static grpc_slice retry_details(int status, const char *text, int64_t retry_ms)
{
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
	Google__Rpc__Status message = GOOGLE__RPC__STATUS__INIT;
	message.code = status;
	message.message = (char *)text;
	message.n_details = 1;
	message.details = details;
	grpc_slice slice = grpc_slice_malloc(google__rpc__status__get_packed_size(&message));
	google__rpc__status__pack(&message, GRPC_SLICE_START_PTR(slice));
	return slice;
}

static void fill_status(struct rpc_call *call, grpc_op *op, int status, const char *text,
			int64_t retry_ms)
{
	op->op = GRPC_OP_SEND_STATUS_FROM_SERVER;
	op->data.send_status_from_server.status = (grpc_status_code)status;
	if (status == GRPC_STATUS_OK)
		return;
	call->status_text = grpc_slice_from_copied_string(text);
	op->data.send_status_from_server.status_details = &call->status_text;
	if (retry_ms < 0)
		return;
	call->trailer.key = grpc_slice_from_static_string("grpc-status-details-bin");
	call->trailer.value = retry_details(status, text, retry_ms);
	call->has_trailer = true;
	op->data.send_status_from_server.trailing_metadata = &call->trailer;
	op->data.send_status_from_server.trailing_metadata_count = 1;
}

static grpc_byte_buffer *add_message(grpc_op *ops, size_t *count, const struct view *message)
{
	grpc_slice slice = grpc_slice_from_copied_buffer((const char *)message->at, message->len);
	grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
	grpc_slice_unref(slice);
	ops[*count].op = GRPC_OP_SEND_MESSAGE;
	ops[(*count)++].data.send_message.send_message = buffer;
	return buffer;
}

void rpc_call_push(struct rpc_call *call, const struct view *message)
{
	grpc_op ops[2] = { { .op = GRPC_OP_SEND_INITIAL_METADATA } };
	size_t count = !call->begun;
	assert(!call->pushing);
	grpc_byte_buffer *buffer = add_message(ops, &count, message);
	call->begun = call->pushing = true;
	call->pending++;
	grpc_call_error code = grpc_call_start_batch(call->core, ops, count, &call->pushed, NULL);
	assert(code == GRPC_CALL_OK);
	(void)code;
	grpc_byte_buffer_destroy(buffer);
}

/* Once the batch has started the call belongs to the queue's thread, which may free it at once. */
void rpc_call_finish(struct rpc_call *call, int status, const char *text, int64_t retry_ms,
		     const struct view *response)
{
	grpc_op ops[3] = { { .op = GRPC_OP_SEND_INITIAL_METADATA } };
	size_t count = !call->begun;
	grpc_byte_buffer *message = response ? add_message(ops, &count, response) : NULL;
	fill_status(call, &ops[count++], status, text, retry_ms);
	bool twice = atomic_exchange_explicit(&call->replied, true, memory_order_release);
	assert(!twice);
	(void)twice;
	grpc_call_error code = grpc_call_start_batch(call->core, ops, count, &call->sent, NULL);
	assert(code == GRPC_CALL_OK);
	(void)code;
	if (message)
		grpc_byte_buffer_destroy(message);
}

/* Up to half as long again, so that those who were refused together do not come back together. */
static int64_t with_jitter(int64_t ms)
{
	return ms + (int64_t)(clock_now() / 1000 % (uint64_t)(ms / 2 + 1));
}

void rpc_call_reply(struct rpc_call *call, const struct error *err, struct view response)
{
	if (!err) {
		rpc_call_finish(call, GRPC_STATUS_OK, "", -1, &response);
		return;
	}
	int64_t retry_ms = -1;
	if (err->kind == ERROR_BUSY)
		retry_ms = with_jitter(err->retry_after_ms ? err->retry_after_ms : RETRY_MS);
	rpc_call_finish(call, grpc_core_status(err->kind), err->text, retry_ms, NULL);
}
