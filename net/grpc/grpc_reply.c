/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_reply.h"

#include <grpc/byte_buffer_reader.h>
#include <grpc/support/alloc.h>
#include <string.h>

#include "net/compress.h"
#include "net/grpc/grpc_cause.h"
#include "status.pb-c.h"

void grpc_reply_init(struct grpc_reply *reply)
{
	*reply = (struct grpc_reply){ .details = grpc_empty_slice() };
	grpc_metadata_array_init(&reply->initial);
	grpc_metadata_array_init(&reply->trailing);
}

void grpc_reply_fini(struct grpc_reply *reply)
{
	grpc_metadata_array_destroy(&reply->initial);
	grpc_metadata_array_destroy(&reply->trailing);
}

void grpc_reply_ops(struct grpc_reply *reply, grpc_op *ops)
{
	ops[0] = (grpc_op){ .op = GRPC_OP_RECV_INITIAL_METADATA,
			    .data.recv_initial_metadata.recv_initial_metadata = &reply->initial };
	ops[1] = (grpc_op){ .op = GRPC_OP_RECV_MESSAGE,
			    .data.recv_message.recv_message = &reply->message };
	ops[2] = (grpc_op){ .op = GRPC_OP_RECV_STATUS_ON_CLIENT,
			    .data.recv_status_on_client = { .trailing_metadata = &reply->trailing,
							    .status = &reply->status,
							    .status_details = &reply->details,
							    .error_string = &reply->origin } };
}

void grpc_reply_clear(struct grpc_reply *reply)
{
	if (reply->message)
		grpc_byte_buffer_destroy(reply->message);
	grpc_slice_unref(reply->details);
	gpr_free((char *)reply->origin);
	reply->message = NULL;
	reply->details = grpc_empty_slice();
	reply->origin = NULL;
	reply->initial.count = reply->trailing.count = 0;
}

/* ---- RetryInfo */

static int64_t milliseconds(const Google__Rpc__Duration *delay)
{
	if (!delay || delay->seconds < 0 || delay->nanos < 0)
		return 0;
	int64_t seconds = delay->seconds < INT32_MAX ? delay->seconds : INT32_MAX;
	return seconds * 1000 + (delay->nanos + 999999LL) / 1000000;
}

/* -1: it is not a RetryInfo. */
static int64_t retry_delay_of(const Google__Rpc__Any *detail)
{
	const char *name = strrchr(detail->type_url, '/');
	if (!name || strcmp(name, "/google.rpc.RetryInfo"))
		return -1;
	Google__Rpc__RetryInfo *info =
		google__rpc__retry_info__unpack(NULL, detail->value.len, detail->value.data);
	if (!info)
		return -1;
	int64_t delay = milliseconds(info->retry_delay);
	google__rpc__retry_info__free_unpacked(info, NULL);
	return delay;
}

static int64_t retry_delay_in(grpc_slice details)
{
	int64_t delay = -1;
	if (GRPC_SLICE_LENGTH(details) > GRPC_REPLY_METADATA_MAX)
		return -1;
	Google__Rpc__Status *status = google__rpc__status__unpack(NULL, GRPC_SLICE_LENGTH(details),
								  GRPC_SLICE_START_PTR(details));
	for (size_t i = 0; status && i < status->n_details && delay < 0; i++)
		delay = retry_delay_of(status->details[i]);
	if (status)
		google__rpc__status__free_unpacked(status, NULL);
	return delay;
}

static int64_t find_retry_delay(const grpc_metadata_array *trailing)
{
	int64_t delay = -1;
	for (size_t i = 0; i < trailing->count && delay < 0; i++)
		if (grpc_slice_str_cmp(trailing->metadata[i].key, "grpc-status-details-bin") == 0)
			delay = retry_delay_in(trailing->metadata[i].value);
	return delay;
}

/* ---- the message */

/* Some servers compress a response as the request was. Core does not know zstd and snappy, but no
 * message in protobuf begins as they do. */
static enum coding coding_of(const grpc_byte_buffer *buffer, struct view in)
{
	switch (buffer->data.raw.compression) {
	case GRPC_COMPRESS_GZIP:
		return CODING_GZIP;
	case GRPC_COMPRESS_DEFLATE:
		return CODING_ZLIB;
	default:
		return compress_sniff(in);
	}
}

static struct view view_of_slice(const grpc_slice *slice)
{
	return (struct view){ GRPC_SLICE_START_PTR(*slice), GRPC_SLICE_LENGTH(*slice) };
}

/* Core decompresses nothing for us, because it would do so without a limit. */
static struct view gather(grpc_byte_buffer *buffer, struct bytes *out)
{
	grpc_byte_buffer_reader reader;
	bytes_init(out, GRPC_CLIENT_ANSWER_MAX);
	if (!grpc_byte_buffer_reader_init(&reader, buffer))
		return (struct view){ 0 };
	grpc_slice all = grpc_byte_buffer_reader_readall(&reader);
	grpc_byte_buffer_reader_destroy(&reader);
	struct view in = view_of_slice(&all);
	if (!compress_inflate(coding_of(buffer, in), in, out, NULL))
		out->len = 0;
	grpc_slice_unref(all);
	return bytes_view(out);
}

/* A message in one piece is read in place. All others are copied to `copy`. */
static struct view read_message(grpc_byte_buffer *buffer, struct bytes *copy)
{
	if (!buffer || !grpc_byte_buffer_length(buffer))
		return (struct view){ 0 };
	bool unknown = buffer->data.raw.compression == GRPC_COMPRESS_NONE;
	if (unknown && grpc_byte_buffer_length(buffer) > GRPC_CLIENT_ANSWER_MAX)
		return (struct view){ 0 };
	const grpc_slice_buffer *slices = &buffer->data.raw.slice_buffer;
	struct view first = view_of_slice(&slices->slices[0]);
	if (slices->count == 1 && coding_of(buffer, first) == CODING_IDENTITY)
		return first;
	return gather(buffer, copy);
}

/* ---- the origin of the status */

bool grpc_reply_is_answer(const struct grpc_reply *reply)
{
	return reply->status == GRPC_STATUS_OK ||
	       (reply->origin && strstr(reply->origin, "Error received from peer"));
}

static bool begins_with_any(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (!strncmp(text, *words, strlen(*words)))
			return true;
	return false;
}

/*
 * The status messages of core's load balancers and resolvers when they have no connection for a
 * call. They may change in later versions. Requests are then no longer known to be unsent, which is
 * safe. A destination that also uses core can send the same messages about its own connections. A
 * message therefore counts only if it did not arrive over a connection.
 */
static bool is_unsent(const struct grpc_reply *reply, const char *message)
{
	static const char *const words[] = { "failed to connect to all addresses",
					     "connections to all backends failing",
					     "DNS resolution failed", "empty address list", NULL };
	return reply->status == GRPC_STATUS_UNAVAILABLE && !grpc_reply_is_answer(reply) &&
	       begins_with_any(message, words);
}

/* Core's message for headers, trailers or a status message that exceed their limit. Or the
 * allowance has closed the connection. (A server that uses core could send the message about our
 * headers, but these are few and configured.) */
static bool is_too_large(const struct grpc_reply *reply, const char *message, bool overrun)
{
	static const char *const words[] = { "received initial metadata size exceeds",
					     "received trailing metadata size exceeds", NULL };
	return reply->status == GRPC_STATUS_RESOURCE_EXHAUSTED
		       ? begins_with_any(message, words)
		       : overrun && reply->status == GRPC_STATUS_UNAVAILABLE;
}

static void copy_details(grpc_slice details, char text[GRPC_REPLY_TEXT_MAX])
{
	size_t len = GRPC_SLICE_LENGTH(details);
	if (len >= GRPC_REPLY_TEXT_MAX)
		len = GRPC_REPLY_TEXT_MAX - 1;
	memcpy(text, GRPC_SLICE_START_PTR(details), len);
	text[len] = '\0';
}

void grpc_reply_report(const struct grpc_reply *reply, struct grpc_reply_context context,
		       void (*done)(void *argument, const struct grpc_result *result),
		       void *argument)
{
	char text[GRPC_REPLY_TEXT_MAX];
	struct bytes copy = { 0 };
	struct grpc_result result = { .status = (int)reply->status,
				      .message = "",
				      .retry_delay_ms = -1 };
	if (reply->status == GRPC_STATUS_OK) {
		result.response = read_message(reply->message, &copy);
	} else {
		copy_details(reply->details, text);
		result.message = text;
		result.retry_delay_ms = find_retry_delay(&reply->trailing);
		result.unsent = is_unsent(reply, text);
		result.reply_too_large =
			!result.unsent && is_too_large(reply, text, context.overrun);
		result.http_status = grpc_cause_http_status(text);
		if (!grpc_reply_is_answer(reply) || result.http_status)
			result.cause = grpc_cause_of((int)reply->status, text, context.connected,
						     context.reached);
	}
	done(argument, &result);
	bytes_fini(&copy);
}
