/* SPDX-License-Identifier: Apache-2.0 */
#include "net/rpc_private.h"

#include "base/clock.h"
#include "base/memory.h"
#include "net/compress.h"
#include "net/grpc_core.h"

#include <assert.h>
#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>
#include <string.h>

static void start_batch(struct rpc_call *call, const grpc_op *ops, size_t count,
			struct grpc_tag *tag)
{
	grpc_call_error code = grpc_call_start_batch(call->core, ops, count, tag, NULL);
	assert(code == GRPC_CALL_OK);
	(void)code;
}

static void call_free(struct rpc_call *call)
{
	struct rpc_listener *listener = call->listener;
	if (call->accepted_at)
		rpc_server_call_done(listener->server);
	if (call->payload)
		grpc_byte_buffer_destroy(call->payload);
	grpc_metadata_array_destroy(&call->headers);
	grpc_call_details_destroy(&call->details);
	grpc_slice_unref(call->status_text);
	if (call->has_trailer)
		grpc_slice_unref(call->trailer.value);
	if (call->core)
		grpc_call_unref(call->core);
	memory_free(call->peer);
	fields_fini(&call->auth);
	memory_free(call->metadata);
	memory_free(call);
	rpc_listener_call_gone(listener);
}

static void came_back(struct rpc_call *call)
{
	if (--call->pending == 0)
		call_free(call);
}

static void wait_begin(struct rpc_call *call)
{
	struct rpc_server *s = call->listener->server;
	call->accepted_at = clock_now();
	s->accepted++;
	call->waiting = true;
	call->older = s->newest;
	*(s->newest ? &s->newest->newer : &s->oldest) = call;
	s->newest = call;
}

static void wait_end(struct rpc_call *call)
{
	struct rpc_server *s = call->listener->server;
	if (!call->waiting)
		return;
	call->waiting = false;
	*(call->older ? &call->older->newer : &s->oldest) = call->newer;
	*(call->newer ? &call->newer->older : &s->newest) = call->older;
}

void rpc_call_expire(struct rpc_server *s, uint64_t now)
{
	struct rpc_call *call;
	while ((call = s->oldest) && now - call->accepted_at >= s->message_timeout) {
		wait_end(call);
		grpc_call_cancel_with_status(call->core, GRPC_STATUS_DEADLINE_EXCEEDED,
					     "the message did not arrive in time", NULL);
	}
}

static void message_came(void *owner, bool ok)
{
	struct rpc_call *call = owner;
	const struct rpc_method *m = call->method;
	wait_end(call);
	if (call->payload) {
		m->message(m->context, call, grpc_byte_buffer_length(call->payload));
	} else {
		/* The batch itself fails for one reason only: core's limit. */
		m->lost(m->context, call, !ok);
		/* Core has answered already unless the client ended its side without a message. */
		rpc_call_finish(call, GRPC_STATUS_INVALID_ARGUMENT,
				"the call has no complete message", -1, NULL);
	}
	came_back(call);
}

void rpc_call_accept(struct rpc_call *call)
{
	grpc_op op = { .op = GRPC_OP_RECV_MESSAGE,
		       .data.recv_message.recv_message = &call->payload };
	call->pending++;
	wait_begin(call);
	start_batch(call, &op, 1, &call->message);
}

static void closed(void *owner, bool ok)
{
	struct rpc_call *call = owner;
	(void)ok;
	call->over = true;
	if (call->ended)
		call->ended(call);
	came_back(call);
}

static void pushed(void *owner, bool ok)
{
	struct rpc_call *call = owner;
	(void)ok;
	call->pushing = false;
	came_back(call);
}

static void sent(void *owner, bool ok)
{
	struct rpc_call *call = owner;
	(void)ok; /* false: the client is gone */
	bool replied = atomic_load_explicit(&call->replied, memory_order_acquire);
	assert(replied);
	(void)replied;
	came_back(call);
}

static void watch_close(struct rpc_call *call)
{
	grpc_op op = { .op = GRPC_OP_RECV_CLOSE_ON_SERVER,
		       .data.recv_close_on_server.cancelled = &call->cancelled };
	start_batch(call, &op, 1, &call->closed);
}

static void arrived(void *owner, bool ok)
{
	struct rpc_call *call = owner;
	const struct rpc_method *m = call->method;
	struct rpc_server *s = call->listener->server;
	if (!ok) { /* the listener drains */
		came_back(call);
		return;
	}
	rpc_call_await(call->listener, m ? (size_t)(m - s->methods) : s->method_count, 1);
	call->pending = 2; /* closed and sent */
	watch_close(call);
	if (m) {
		m->headers(m->context, call);
		return;
	}
	if (s->options.unknown)
		series_add(s->options.unknown, 1);
	rpc_call_finish(call, GRPC_STATUS_UNIMPLEMENTED, "this server has no such method", -1, NULL);
}

static struct rpc_call *call_new(struct rpc_listener *listener, const struct rpc_method *method)
{
	struct rpc_call *call = memory_new(sizeof *call);
	call->listener = listener;
	call->method = method;
	call->pending = 1;
	call->status_text = grpc_empty_slice();
	grpc_tag_init(&call->arrived, arrived, call);
	grpc_tag_init(&call->message, message_came, call);
	grpc_tag_init(&call->closed, closed, call);
	grpc_tag_init(&call->sent, sent, call);
	grpc_tag_init(&call->pushed, pushed, call);
	grpc_metadata_array_init(&call->headers);
	grpc_call_details_init(&call->details);
	listener->calls++;
	return call;
}

void rpc_call_await(struct rpc_listener *l, size_t method, size_t count)
{
	struct rpc_server *s = l->server;
	bool known = method < s->method_count;
	for (size_t i = 0; i < count; i++) {
		struct rpc_call *c = call_new(l, known ? &s->methods[method] : NULL);
		grpc_call_error code =
			known ? grpc_server_request_registered_call(l->core, l->registered[method],
								    &c->core, &c->deadline,
								    &c->headers, NULL, s->queue,
								    s->queue, &c->arrived) :
				grpc_server_request_call(l->core, &c->core, &c->details, &c->headers,
							 s->queue, s->queue, &c->arrived);
		assert(code == GRPC_CALL_OK);
		(void)code;
	}
}

void rpc_call_set_user(struct rpc_call *call, void *user)
{
	call->user = user;
}

void *rpc_call_user(struct rpc_call *call)
{
	return call->user;
}

/* "ipv4:127.0.0.1:36380", "ipv6:%5B::1%5D:36380", "unix:..." -> "127.0.0.1", "::1", "" */
static char *host_of(const char *uri)
{
	const char *from = strchr(uri, ':'), *to = strrchr(uri, ':');
	if (!from || to <= from || strncmp(uri, "unix", 4) == 0)
		return memory_text("");
	from++;
	if (strncmp(from, "%5B", 3) == 0)
		from += 3;
	if (to - from >= 3 && strncmp(to - 3, "%5D", 3) == 0)
		to -= 3;
	return memory_text_of(from, (size_t)(to - from));
}

const char *rpc_call_peer(struct rpc_call *call)
{
	if (!call->peer) {
		char *uri = grpc_call_get_peer(call->core);
		call->peer = host_of(uri);
		gpr_free(uri);
	}
	return call->peer;
}

static void add_owner(struct fields *auth, const grpc_auth_context *context, const char *property, const char *name)
{
	const grpc_auth_property *found;
	grpc_auth_property_iterator all = grpc_auth_context_find_properties_by_name(context, property);
	while ((found = grpc_auth_property_iterator_next(&all)))
		tls_owner_add(auth, name, found->value, found->value_length);
}

static void read_owner(struct fields *auth, const grpc_auth_context *context)
{
	fields_init(auth, &tls_owner_limits);
	add_owner(auth, context, GRPC_X509_SUBJECT_PROPERTY_NAME, "subject");
	add_owner(auth, context, GRPC_X509_CN_PROPERTY_NAME, "common_name");
	add_owner(auth, context, GRPC_PEER_URI_PROPERTY_NAME, "uri");
	add_owner(auth, context, GRPC_PEER_EMAIL_PROPERTY_NAME, "email");
	add_owner(auth, context, GRPC_PEER_DNS_PROPERTY_NAME, "dns");
}

const struct metadatum *rpc_call_auth(struct rpc_call *call)
{
	if (call->auth.at || !call->listener->view.tls)
		return call->auth.at;
	grpc_auth_context *context = grpc_call_auth_context(call->core);
	if (!context)
		return NULL;
	if (grpc_auth_context_peer_is_authenticated(context)) {
		read_owner(&call->auth, context);
		fields_list(&call->auth);
	}
	grpc_auth_context_release(context);
	return call->auth.at;
}

static bool is_text(const grpc_metadata *m)
{
	size_t len = GRPC_SLICE_LENGTH(m->key);
	return len < 4 || memcmp(GRPC_SLICE_START_PTR(m->key) + len - 4, "-bin", 4) != 0;
}

static const char *put(char **at, grpc_slice slice)
{
	char *text = *at;
	size_t len = GRPC_SLICE_LENGTH(slice);
	memcpy(text, GRPC_SLICE_START_PTR(slice), len);
	*at += len + 1; /* the block was zeroed */
	return text;
}

const struct metadatum *rpc_call_metadata(struct rpc_call *call)
{
	if (call->metadata)
		return call->metadata;
	const grpc_metadata_array *all = &call->headers;
	size_t head = (all->count + 1) * sizeof(struct metadatum), texts = 0, count = 0;
	for (size_t i = 0; i < all->count; i++)
		texts += GRPC_SLICE_LENGTH(all->metadata[i].key) +
			 GRPC_SLICE_LENGTH(all->metadata[i].value) + 2;
	call->metadata = memory_new(head + texts);
	char *at = (char *)call->metadata + head;
	for (size_t i = 0; i < all->count; i++)
		if (is_text(&all->metadata[i])) {
			struct metadatum *m = &call->metadata[count++];
			m->name = put(&at, all->metadata[i].key);
			m->value = put(&at, all->metadata[i].value);
		}
	return call->metadata;
}

bool rpc_call_read(struct rpc_call *call, struct bytes *out)
{
	grpc_byte_buffer *payload = call->payload;
	bool ok = bytes_reserve(out, grpc_byte_buffer_length(payload));
	grpc_byte_buffer_reader reader;
	if (ok && grpc_byte_buffer_reader_init(&reader, payload)) {
		grpc_slice *slice;
		while (grpc_byte_buffer_reader_peek(&reader, &slice))
			ok = ok && bytes_add(out, GRPC_SLICE_START_PTR(*slice),
					     GRPC_SLICE_LENGTH(*slice));
		grpc_byte_buffer_reader_destroy(&reader);
	}
	grpc_byte_buffer_destroy(payload);
	call->payload = NULL;
	return ok;
}

int rpc_call_coding(struct rpc_call *call)
{
	switch (call->payload->data.raw.compression) {
	case GRPC_COMPRESS_GZIP:
		return CODING_GZIP;
	case GRPC_COMPRESS_DEFLATE:
		return CODING_ZLIB;
	default:
		return CODING_UNKNOWN;
	}
}
