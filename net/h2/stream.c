/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2/private.h"

#include "base/clock.h"
#include "base/memory.h"
#include "net/places.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* A client that has just connected is about to call. */
#define NOT_YET_IDLE_NS (2 * UINT64_C(1000000000))

enum { OUT_MAX = 1 << 20, IDLE_TO_CLOSE = 2, REFUSAL_MAX = 1024 };

struct h2_peer *h2_peer_new(const char *address)
{
	struct h2_peer *peer = memory_new(sizeof *peer);
	peer->holds = 1;
	fields_init(&peer->auth, &tls_owner_limits);
	snprintf(peer->address, sizeof peer->address, "%s", address);
	return peer;
}

void h2_peer_unref(struct h2_peer *peer)
{
	if (--peer->holds)
		return;
	fields_fini(&peer->auth);
	memory_free(peer);
}

/* The connection's limits have been checked before; these only permit the list to grow. */
static const struct fields_limits header_limits = {
	.count = 1 << 20, .name = 1 << 24, .value = 1 << 24, .total = 1 << 26
};

struct h2_stream *h2_stream_new(struct h2_connection *c, int32_t id)
{
	struct h2_stream *stream = memory_new(c->shard->server->stream_size);
	stream->connection = c;
	stream->thread = c->shard->thread;
	stream->peer = c->peer;
	stream->peer->holds++;
	stream->id = id;
	stream->holds = 1;
	fields_init(&stream->headers, &header_limits);
	bytes_init(&stream->out, OUT_MAX);
	stream->next = c->streams;
	if (stream->next)
		stream->next->prev = stream;
	c->streams = stream;
	h2_connection_stream_opened(c);
	return stream;
}

void h2_stream_hold(struct h2_stream *stream)
{
	stream->holds++;
}

void h2_stream_unref(struct h2_stream *stream)
{
	if (--stream->holds)
		return;
	if (stream->service)
		stream->service->fini(stream);
	if (stream->charged)
		net_budget_release(stream->budget, stream->charged);
	fields_fini(&stream->headers);
	bytes_fini(&stream->out);
	bytes_fini(&stream->trailer_text);
	h2_peer_unref(stream->peer);
	memory_free(stream);
}

void h2_stream_close(struct h2_stream *stream)
{
	struct h2_connection *c = stream->connection;
	*(stream->prev ? &stream->prev->next : &c->streams) = stream->next;
	if (stream->next)
		stream->next->prev = stream->prev;
	c->unread -= stream->out.len - stream->out_taken;
	c->unread_replies -= stream->finished;
	nghttp2_session_set_stream_user_data(c->session, stream->id, NULL);
	stream->connection = NULL;
	h2_connection_stream_closed(c);
	if (stream->service)
		stream->service->closed(stream);
	h2_stream_unref(stream);
}

void h2_stream_add_header(struct h2_stream *stream, struct view name, struct view value)
{
	if (!fields_add(&stream->headers, name, value, NULL))
		stream->headers_too_large = true;
}

const char *h2_stream_header(const struct h2_stream *stream, const char *name)
{
	for (const struct metadatum *m = stream->headers.at; m && m->name; m++)
		if (strcmp(m->name, name) == 0)
			return m->value;
	return NULL;
}

/* RFC 9110, section 8.3.1: parameters may follow, or the suffix of a subtype
 * ("application/grpc+proto"). */
static bool is_type(const char *text, const char *type)
{
	size_t len = strlen(type);
	return text && strncmp(text, type, len) == 0 &&
	       (!text[len] || text[len] == '+' || text[len] == ';');
}

static bool begins_with(const char *text, const char *prefix)
{
	return text && strncmp(text, prefix, strlen(prefix)) == 0;
}

static const struct h2_route *find_route(const struct h2_server *s, const char *path,
					 const char *content_type)
{
	for (const struct h2_route *r = s->routes; r->service; r++)
		if ((!r->path || (path && strcmp(r->path, path) == 0)) &&
		    (!r->content_type || is_type(content_type, r->content_type)))
			return r;
	return NULL;
}

/* A request without a route gets a plain HTTP response, for clients that use that. */
static void refuse(struct h2_stream *stream, const char *status)
{
	const struct h2_header type = { "content-type", view_of("text/plain; charset=utf-8") };
	const char *path = h2_stream_header(stream, ":path");
	struct bytes text;
	bytes_init(&text, REFUSAL_MAX);
	bytes_add_text(&text, "no such path or media type");
	places_hint(path ? path : "", &text);
	bytes_add_byte(&text, '\n');
	h2_stream_respond(stream, status, &type, 1);
	h2_stream_send(stream, bytes_view(&text));
	h2_stream_count_error(stream);
	h2_stream_finish(stream, NULL, NULL, 0);
	bytes_fini(&text);
}

/* If memory is short, idle connections are closed: those of peers that have many. */
static void make_room(struct h2_connection *c)
{
	if (c->shard->idle_first && net_budget_is_short(&c->shard->server->options.budget))
		h2_shard_close_idle(c->shard, IDLE_TO_CLOSE, NOT_YET_IDLE_NS, H2_ALWAYS);
}

void h2_stream_headers_done(struct h2_stream *stream)
{
	struct h2_connection *c = stream->connection;
	fields_list(&stream->headers);
	make_room(c);
	const char *type = h2_stream_header(stream, "content-type");
	const struct h2_route *route =
		find_route(c->shard->server, h2_stream_header(stream, ":path"), type);
	if (!route) {
		refuse(stream, begins_with(type, "application/") ? "404" : "415");
		return;
	}
	stream->service = route->service;
	stream->context = route->context;
	stream->service->headers(stream);
	if (stream->finished)
		fields_fini(&stream->headers); /* they are not needed any more */
}

bool h2_stream_charge(struct h2_stream *stream)
{
	const struct h2_server *s = stream->connection->shard->server;
	int64_t bytes = (int64_t)(s->stream_size + stream->header_bytes);
	if (!net_budget_hold(&s->options.budget, bytes))
		return false;
	stream->budget = &s->options.budget;
	stream->charged = bytes;
	return true;
}

void h2_stream_end(struct h2_stream *stream)
{
	stream->ended = true;
	if (stream->service && !stream->finished)
		stream->service->end(stream);
}

/* ---- the response */

/* The library copies both, and converts the name to lower case. */
static nghttp2_nv field(const char *name, struct view value)
{
	return (nghttp2_nv){ (uint8_t *)name, (uint8_t *)value.at, strlen(name), value.len,
			     NGHTTP2_NV_FLAG_NONE };
}

/* A list that the caller frees. status NULL: of trailers. */
static nghttp2_nv *list_fields(const char *status, const struct h2_header *headers, size_t count,
			       size_t *total)
{
	nghttp2_nv *out = memory_array(count + 1, sizeof *out);
	*total = 0;
	if (status)
		out[(*total)++] = field(":status", view_of(status));
	for (size_t i = 0; i < count; i++)
		out[(*total)++] = field(headers[i].name, headers[i].value);
	return out;
}

static void submit_trailers(nghttp2_session *session, struct h2_stream *stream)
{
	size_t count;
	nghttp2_nv *fields = list_fields(NULL, stream->trailers, stream->trailer_count, &count);
	nghttp2_submit_trailer(session, stream->id, fields, count);
	memory_free(fields);
}

/* Everything has been written. What the service sends now follows in the same turn. */
static void report_drained(struct h2_stream *stream)
{
	struct h2_connection *c = stream->connection;
	bool in_turn = c->in_turn;
	if (stream->finished || !stream->service || !stream->service->drained)
		return;
	c->in_turn = true; /* what the service sends is written by who called us */
	stream->service->drained(stream);
	c->in_turn = in_turn;
}

/* Provides as much of the body as there is; the trailers follow at its end. */
static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t room,
			 uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct h2_stream *stream = source->ptr;
	(void)id;
	if (h2_stream_drained(stream))
		report_drained(stream);
	size_t len = stream->out.len - stream->out_taken;
	len = len < room ? len : room;
	if (len)
		memcpy(buffer, stream->out.at + stream->out_taken, len);
	stream->out_taken += len;
	((struct h2_connection *)user)->unread -= len;
	if (stream->out_taken < stream->out.len)
		return (ssize_t)len;
	stream->out.len = stream->out_taken = 0;
	if (stream->finished) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (stream->trailer_count) {
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			submit_trailers(session, stream);
		}
		return (ssize_t)len;
	}
	stream->deferred = !len;
	return len ? (ssize_t)len : NGHTTP2_ERR_DEFERRED;
}

static void submit(struct h2_stream *stream, const char *status, const struct h2_header *headers,
		   size_t count, const nghttp2_data_provider *body)
{
	struct h2_connection *c = stream->connection;
	size_t total;
	nghttp2_nv *fields = list_fields(status, headers, count, &total);
	if (nghttp2_submit_response(c->session, stream->id, fields, total, body) != 0)
		c->fault = H2_PROTOCOL_ERROR;
	memory_free(fields);
}

void h2_stream_respond(struct h2_stream *stream, const char *status,
		       const struct h2_header *headers, size_t count)
{
	nghttp2_data_provider body = { .source.ptr = stream, .read_callback = read_body };
	assert(!stream->responded);
	stream->responded = true;
	if (stream->connection)
		submit(stream, status, headers, count, &body);
}

void h2_stream_continue(struct h2_stream *stream)
{
	nghttp2_nv status = field(":status", view_of("100"));
	assert(!stream->responded);
	if (stream->connection)
		nghttp2_submit_headers(stream->connection->session, NGHTTP2_FLAG_NONE, stream->id,
				       NULL, &status, 1, NULL);
}

static void resume(struct h2_stream *stream)
{
	if (stream->deferred)
		nghttp2_session_resume_data(stream->connection->session, stream->id);
	stream->deferred = false;
}

void h2_stream_flush(struct h2_stream *stream)
{
	if (stream->connection)
		h2_connection_touch(stream->connection);
}

void h2_stream_send(struct h2_stream *stream, struct view data)
{
	assert(stream->responded && !stream->finished);
	if (!stream->connection)
		return;
	if (bytes_add(&stream->out, data.at, data.len))
		stream->connection->unread += data.len;
	else
		stream->connection->fault = H2_OUTBOUND;
	resume(stream);
}

/* The values are kept until they are sent, in one block behind the list. */
static void keep_trailers(struct h2_stream *stream, const struct h2_header *trailers, size_t count)
{
	size_t total = count * sizeof *trailers;
	for (size_t i = 0; i < count; i++)
		total += trailers[i].value.len;
	bytes_init(&stream->trailer_text, total);
	if (!count || !bytes_reserve(&stream->trailer_text, total))
		return;
	struct h2_header *kept = (struct h2_header *)(void *)stream->trailer_text.at;
	uint8_t *text = (uint8_t *)(kept + count);
	for (size_t i = 0; i < count; i++) {
		kept[i] = (struct h2_header){ trailers[i].name, { text, trailers[i].value.len } };
		memcpy(text, trailers[i].value.at, trailers[i].value.len);
		text += trailers[i].value.len;
	}
	stream->trailers = kept;
	stream->trailer_count = count;
}

void h2_stream_finish(struct h2_stream *stream, const char *status,
		      const struct h2_header *trailers, size_t count)
{
	struct h2_connection *c = stream->connection;
	assert(!stream->finished);
	stream->finished = true;
	if (!c)
		return;
	uint64_t timeout = (uint64_t)c->shard->server->options.limits.write_timeout.ns;
	c->unread_replies++;
	h2_stream_set_deadline(stream, timeout ? clock_now() + timeout : 0);
	if (stream->responded)
		keep_trailers(stream, trailers, count);
	else
		submit(stream, status, trailers, count, NULL);
	stream->responded = true;
	resume(stream);
	h2_stream_flush(stream);
}

bool h2_stream_drained(const struct h2_stream *stream)
{
	return !stream->connection || stream->out.len == stream->out_taken;
}

void h2_stream_window(struct h2_stream *stream, size_t bytes)
{
	struct h2_connection *c = stream->connection;
	if (!c || bytes <= H2_STREAM_WINDOW || bytes > INT32_MAX)
		return;
	nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, stream->id,
					      (int32_t)bytes);
	h2_connection_touch(c);
}

void h2_stream_set_deadline(struct h2_stream *stream, uint64_t when)
{
	stream->deadline = when;
	if (stream->connection && when)
		h2_connection_wake_by(stream->connection, when);
}

void h2_stream_abuse(struct h2_stream *stream, enum h2_reason reason)
{
	struct h2_connection *c = stream->connection;
	if (!c || c->fault)
		return;
	c->fault = reason;
	h2_connection_touch(c);
}

void h2_stream_leave(struct h2_stream *stream)
{
	if (stream->connection)
		h2_connection_end(stream->connection, H2_REASON_NONE, true, 0);
}

void h2_stream_count_error(struct h2_stream *stream)
{
	struct h2_connection *c = stream->connection;
	int64_t rate = c ? c->shard->server->options.limits.max_errors_per_second : 0;
	if (c && !c->fault && !h2_bucket_take(&c->errors, clock_now(), rate, rate * H2_BURST))
		c->fault = H2_ERRORS;
}
