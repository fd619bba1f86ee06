/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2/rpc_private.h"

#include "base/base64.h"
#include "base/clock.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { RETRY_MS = 1000, TEXT_MAX = sizeof((struct error *)0)->text };

/* PROTOCOL-HTTP2.md, Status-Message: '%' and everything that is not printable ASCII is
 * percent-encoded. What does not fit is left out. */
static size_t percent_encode(const char *text, char *out, size_t room)
{
	static const char digits[] = "0123456789ABCDEF";
	char *at = out;
	for (; *text && (size_t)(at - out) + 3 <= room; text++) {
		uint8_t c = (uint8_t)*text;
		if (c >= 0x20 && c <= 0x7e && c != '%') {
			*at++ = (char)c;
			continue;
		}
		*at++ = '%';
		*at++ = digits[c >> 4];
		*at++ = digits[c & 15];
	}
	return (size_t)(at - out);
}

static const struct h2_header content_type = { "content-type",
					       { (const uint8_t *)"application/grpc", 16 } };
static const struct h2_header accept_encoding = {
	"grpc-accept-encoding", { (const uint8_t *)"identity,deflate,gzip,snappy,zstd", 33 }
};

static void begin(struct rpc_call *call)
{
	if (!call->begun)
		h2_stream_respond(&call->stream, "200",
				  (const struct h2_header[]){ content_type, accept_encoding }, 2);
	call->begun = true;
}

void rpc_call_push(struct rpc_call *call, struct view message)
{
	const uint8_t prefix[5] = { 0, (uint8_t)(message.len >> 24), (uint8_t)(message.len >> 16),
				    (uint8_t)(message.len >> 8), (uint8_t)message.len };
	begin(call);
	h2_stream_send(&call->stream, (struct view){ prefix, sizeof prefix });
	h2_stream_send(&call->stream, message);
}

void rpc_reply_write(struct rpc_call *call, int status, const char *text, int64_t retry_ms,
		     const struct view *response)
{
	uint8_t packed[TEXT_MAX + 128];
	char number[12], message[3 * TEXT_MAX];
	struct bytes details;
	struct h2_header fields[5];
	size_t count = 0;
	if (response)
		rpc_call_push(call, *response);
	if (!call->begun) {
		fields[count++] = content_type;
		fields[count++] = accept_encoding;
	}
	int len = snprintf(number, sizeof number, "%d", status);
	fields[count++] =
		(struct h2_header){ "grpc-status", { (const uint8_t *)number, (size_t)len } };
	if (*text)
		fields[count++] =
			(struct h2_header){ "grpc-message",
					    { (const uint8_t *)message,
					      percent_encode(text, message, sizeof message) } };
	bytes_init(&details, 2 * sizeof packed);
	if (retry_ms >= 0) {
		base64_add(&details,
			   (struct view){ packed, rpc_status_pack(status, text, retry_ms, packed,
								  sizeof packed) },
			   false);
		fields[count++] =
			(struct h2_header){ "grpc-status-details-bin", bytes_view(&details) };
	}
	if (status != RPC_OK &&
	    retry_ms < 0) /* a refusal with a retry hint is not the client's fault */
		h2_stream_count_error(&call->stream);
	h2_stream_finish(&call->stream, "200", fields, count);
	bytes_fini(&details);
}

/* Adds up to half, at random, so that senders that were refused together do not return together. */
static int64_t with_jitter(int64_t ms)
{
	return ms + (int64_t)(clock_now() / 1000 % (uint64_t)(ms / 2 + 1));
}

void rpc_call_reply(struct rpc_call *call, const struct error *err, struct view response)
{
	if (!err) {
		rpc_call_finish(call, RPC_OK, "", -1, &response);
		return;
	}
	int64_t retry_ms = -1;
	if (err->kind == ERROR_BUSY)
		retry_ms = with_jitter(err->retry_after_ms ? err->retry_after_ms : RETRY_MS);
	rpc_call_finish(call, rpc_status(err), err->text, retry_ms, NULL);
}
