/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2/rpc_private.h"

#include "base/clock.h"
#include "base/memory.h"
#include "net/compress.h"
#include "net/places.h"

#include <assert.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)
/* before the rate of a body is checked, and between two checks */
#define RATE_GRACE_NS (10 * SECOND)
#define TIMEOUT_MAX_NS (UINT64_MAX / 2)
#define BUSY_RETRY_NS (20 * UINT64_C(1000000))
#define BUSY_MAX_NS (2 * SECOND)

enum {
	PREFIX = sizeof((struct rpc_call *)0)->prefix,
	FIRST_GRANT = 16384,
	WINDOW_SLACK = 1024, /* so that a message that is too long arrives, and is rejected */
	UNKNOWN_MAX = 8192,
	SPARE_MAX = 1 << 19,
	OWED_MAX = 1 << 20 /* per I/O thread */
};

void rpc_call_set_user(struct rpc_call *call, void *user)
{
	call->user = user;
}

void *rpc_call_user(struct rpc_call *call)
{
	return call->user;
}

const char *rpc_call_peer(const struct rpc_call *call)
{
	return call->stream.peer->address;
}

const struct metadatum *rpc_call_auth(const struct rpc_call *call)
{
	return call->identity.count ? call->identity.at : call->stream.peer->auth.at;
}

struct bytes *rpc_call_body(struct rpc_call *call)
{
	return &call->body;
}

struct io_thread *rpc_call_thread(const struct rpc_call *call)
{
	return call->stream.thread;
}

static struct rpc_thread *thread_of(const struct rpc_call *call)
{
	return &call->server->threads[io_thread_index(call->stream.thread)];
}

size_t rpc_call_header_bytes(const struct rpc_call *call)
{
	return call->stream.header_bytes;
}

int rpc_call_coding(const struct rpc_call *call)
{
	const char *name = h2_stream_header(&call->stream, "grpc-encoding");
	if (!call->prefix[0])
		return CODING_IDENTITY;
	enum coding coding = name ? compress_named(name) : CODING_UNKNOWN;
	return coding == CODING_LZ4 ? CODING_UNKNOWN : (int)coding; /* HTTP's alone */
}

/* ---- the life of a call */

static void done(struct rpc_call *call)
{
	if (!call->accepted)
		return;
	call->accepted = false;
	rpc_server_call_done(call->server);
}

/* No message will arrive: reports this to the receiver, once. A call that was handed over ends with
 * its reply. */
static void lose(struct rpc_call *call, enum rpc_loss why)
{
	if (call->handed_over || call->over)
		return;
	if (call->accepted)
		call->method->lost(call->method->context, call, why);
	call->over = true;
	done(call);
}

static void refuse(struct rpc_call *call, enum rpc_loss why, int status, const char *text)
{
	lose(call, why);
	rpc_reply_write(call, status, text, -1, NULL);
}

static const struct rpc_method *find_method(const struct rpc_server *s, const char *path)
{
	for (size_t i = 0; i < s->method_count && path; i++)
		if (strcmp(s->methods[i].path, path) == 0)
			return &s->methods[i];
	return NULL;
}

/* The time in grpc-timeout (PROTOCOL-HTTP2.md: at most 8 digits and a unit) as clock_now. 0:
 * absent, invalid, or more than two centuries. */
static uint64_t client_deadline(const struct rpc_call *call)
{
	const char *text = h2_stream_header(&call->stream, "grpc-timeout");
	static const struct {
		char unit;
		uint64_t ns;
	} units[] = {
		{ 'H', 3600 * SECOND }, { 'M', 60 * SECOND },      { 'S', SECOND },
		{ 'm', SECOND / 1000 }, { 'u', SECOND / 1000000 }, { 'n', 1 },
	};
	uint64_t number = 0;
	int digits = 0;
	for (; text && *text >= '0' && *text <= '9' && digits < 8; text++, digits++)
		number = number * 10 + (uint64_t)(*text - '0');
	for (size_t i = 0; digits && i < sizeof units / sizeof *units; i++)
		if (text[0] == units[i].unit && !text[1])
			return number < TIMEOUT_MAX_NS / units[i].ns
				       ? clock_now() + number * units[i].ns
				       : 0;
	return 0;
}

static void at_earliest(uint64_t *when, uint64_t candidate)
{
	if (candidate && (!*when || candidate < *when))
		*when = candidate;
}

static void set_deadline(struct rpc_call *call)
{
	uint64_t when = 0;
	at_earliest(&when, call->client_by);
	if (!call->handed_over) {
		at_earliest(&when, call->message_by);
		at_earliest(&when, call->rate_at);
		at_earliest(&when, call->busy ? clock_now() + BUSY_RETRY_NS : 0);
	}
	h2_stream_set_deadline(&call->stream, when);
}

void rpc_call_accept(struct rpc_call *call)
{
	struct rpc_server *s = call->server;
	call->accepted = true;
	call->accepted_at = clock_now();
	call->message_by = call->accepted_at + s->message_timeout;
	call->rate_at =
		s->options.h2.limits.min_body_rate > 0 ? call->accepted_at + RATE_GRACE_NS : 0;
	atomic_fetch_add(&s->accepted, 1);
	set_deadline(call);
}

static void count(struct metric_series *series)
{
	if (series)
		metric_add(series, 1);
}

static bool authenticate(struct rpc_call *call, struct error *err)
{
	struct authenticator *a = call->server->authenticator;
	struct auth_request request = { rpc_call_metadata(call), call->stream.peer->auth.at };
	fields_init(&call->identity, &authenticator_identity_limits);
	if (!a->ops->authenticate(a, &request, &call->identity, err))
		return false;
	for (const struct metadatum *m = request.certificate; m && m->name; m++)
		fields_add(&call->identity, view_of(m->name), view_of(m->value), NULL);
	fields_list(&call->identity);
	return true;
}

static void begin(struct rpc_call *call)
{
	const struct rpc_method *method = call->method;
	struct rpc_server *s = call->server;
	struct error err = { 0 };
	if (s->authenticator && !method->open && !authenticate(call, &err)) {
		count(s->options.unauthenticated);
		rpc_reply_write(call, rpc_status(&err), err.text,
				err.kind == ERROR_BUSY ? 1000 : -1, NULL);
		return;
	}
	method->headers(method->context, call);
}

static void reject_headers(struct rpc_call *call)
{
	const struct rpc_server_options *o = &call->server->options;
	const struct h2_limits *limits = &o->h2.limits;
	size_t number = call->stream.header_count;
	struct error err;
	if (number > (size_t)limits->max_headers)
		error_set(&err, ERROR_TOO_LARGE,
			  "the request has %zu headers; limits.max_headers is %ld", number,
			  limits->max_headers);
	else
		error_set(&err, ERROR_TOO_LARGE,
			  "the headers have %zu bytes; limits.max_header_bytes is %ld",
			  call->stream.header_bytes, limits->max_header_bytes);
	count(o->headers);
	rpc_reply_write(call, rpc_status(&err), err.text, -1, NULL);
}

/* The path may be that of an HTTP server. */
static void refuse_unknown(struct rpc_call *call)
{
	const char *path = h2_stream_header(&call->stream, ":path");
	struct bytes text;
	bytes_init(&text, UNKNOWN_MAX);
	bytes_add_text(&text, call->server->unknown);
	places_hint(path ? path : "", &text);
	bytes_add_byte(&text, 0);
	rpc_reply_write(call, RPC_UNIMPLEMENTED, (char *)text.at, -1, NULL);
	bytes_fini(&text);
}

static void on_headers(struct h2_stream *stream)
{
	struct rpc_call *call = rpc_call_of(stream);
	struct rpc_server *s = stream->context;
	call->server = s;
	call->client_by = client_deadline(call);
	if (stream->headers_too_large) {
		reject_headers(call);
		return;
	}
	call->method = find_method(s, h2_stream_header(stream, ":path"));
	if (call->method && !call->method->unsupported) {
		begin(call);
		return;
	}
	count(s->options.unknown);
	if (call->method)
		rpc_reply_write(call, RPC_UNIMPLEMENTED, call->method->unsupported, -1, NULL);
	else
		refuse_unknown(call);
}

/* ---- the message */

static struct bytes *spare_of(const struct rpc_call *call)
{
	return &thread_of(call)->spare;
}

static void take_spare(struct rpc_call *call)
{
	struct bytes *spare = spare_of(call);
	if (call->body.room || !spare->room)
		return;
	call->body = *spare;
	*spare = (struct bytes){ 0 };
}

static void release_body(struct rpc_call *call)
{
	struct bytes *spare = spare_of(call);
	thread_of(call)->owed -= call->owed;
	call->owed = 0;
	if (call->body.room > spare->room && call->body.room <= SPARE_MAX) {
		bytes_fini(spare);
		*spare = call->body;
		spare->len = 0;
		call->body = (struct bytes){ 0 };
	}
	bytes_fini(&call->body);
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Limits what has arrived without a grant: at most a stream's window for each call is little, but
 * not for thousands of calls. */
static bool may_owe(struct rpc_call *call, size_t owed)
{
	struct rpc_thread *thread = thread_of(call);
	thread->owed += owed - call->owed;
	call->owed = owed;
	return !owed || thread->owed <= OWED_MAX;
}

/* False: the call has waited too long, or all calls together hold too much without a grant. */
static bool wait_for_memory(struct rpc_call *call, size_t arrived)
{
	struct error err = call->busy_error;
	uint64_t now = clock_now();
	bool late = call->busy && now >= call->busy_until;
	if (!may_owe(call, arrived > call->granted ? arrived - call->granted : 0) || late) {
		lose(call, RPC_REFUSED);
		rpc_reply_write(call, RPC_UNAVAILABLE, err.text,
				err.retry_after_ms ? err.retry_after_ms : 1000, NULL);
		release_body(call);
		return false;
	}
	if (!call->busy)
		call->busy_until = now + BUSY_MAX_NS;
	call->busy = true;
	set_deadline(call);
	return true;
}

static bool ask(struct rpc_call *call, size_t bytes)
{
	const struct rpc_method *m = call->method;
	error_clear(&call->busy_error);
	if (m->grow && !m->grow(m->context, call, bytes, &call->busy_error))
		return false;
	call->granted = bytes;
	call->busy = false;
	may_owe(call, 0);
	h2_stream_window(&call->stream, bytes + PREFIX + WINDOW_SLACK);
	return true;
}

/* Grants more of the message before the granted part is used up: four times what has arrived, so
 * that few steps are needed and the sender need not wait. False: the call is over. */
static bool grant(struct rpc_call *call, size_t arrived)
{
	size_t wanted = arrived < FIRST_GRANT / 4 ? FIRST_GRANT : arrived * 4;
	wanted = min_size(wanted, call->length);
	if (call->granted == call->length || (call->granted && arrived <= call->granted / 2))
		return true;
	if (ask(call, wanted) ||
	    (call->busy_error.kind == ERROR_BUSY && arrived > call->granted && ask(call, arrived)))
		return true;
	if (call->busy_error.kind != ERROR_BUSY) {
		struct error err = call->busy_error;
		lose(call, RPC_REFUSED);
		rpc_reply_write(call, rpc_status(&err), err.text, -1, NULL);
		return false;
	}
	return wait_for_memory(call, arrived);
}

static bool begin_message(struct rpc_call *call)
{
	const struct size_limit *limit = &call->server->options.message_limit;
	const uint8_t *p = call->prefix;
	struct error err;
	call->length = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
	if (p[0] > 1) {
		refuse(call, RPC_INVALID, RPC_INTERNAL, "invalid compressed flag: must be 0 or 1");
		return false;
	}
	if (call->length > limit->max) {
		size_limit_exceeded(limit, "the message", call->length, &err);
		refuse(call, RPC_TOO_LARGE, RPC_RESOURCE_EXHAUSTED, err.text);
		return false;
	}
	take_spare(call);
	return true;
}

static bool take_prefix(struct rpc_call *call, struct view *data)
{
	while (call->prefix_len < PREFIX && data->len) {
		call->prefix[call->prefix_len++] = *data->at++;
		data->len--;
		if (call->prefix_len == PREFIX && !begin_message(call))
			return false;
	}
	return true;
}

static void add_to_body(struct rpc_call *call, struct view data)
{
	size_t arrived = call->body.len + data.len;
	if (!grant(call, arrived))
		return;
	size_t room = call->granted > arrived ? call->granted : arrived;
	call->body.max = call->body.room > room ? call->body.room : room;
	bytes_reserve(&call->body, room - call->body.len);
	bytes_add(&call->body, data.at, data.len);
	call->complete = call->body.len == call->length;
}

static void on_data(struct h2_stream *stream, struct view data)
{
	struct rpc_call *call = rpc_call_of(stream);
	if (!call->accepted || call->over || !take_prefix(call, &data))
		return;
	if (call->prefix_len < PREFIX)
		return;
	size_t missing = call->length - call->body.len;
	if (data.len > missing) {
		refuse(call, RPC_INVALID, RPC_UNIMPLEMENTED,
		       "a unary call must have exactly "
		       "one message, but this one has "
		       "more");
		return;
	}
	add_to_body(call, data);
}

static void hand_over(struct rpc_call *call)
{
	call->handed_over = true;
	h2_stream_hold(&call->stream);
	set_deadline(call);
	call->method->message(call->method->context, call);
}

static void on_end(struct h2_stream *stream)
{
	struct rpc_call *call = rpc_call_of(stream);
	if (!call->accepted || call->over)
		return;
	if (call->prefix_len < PREFIX || call->body.len < call->length) {
		refuse(call, RPC_INVALID, RPC_INVALID_ARGUMENT,
		       "the call ended without a "
		       "complete message");
		return;
	}
	if (!call->body.room)
		bytes_init(&call->body, 64);
	bytes_reserve(&call->body, 1);
	call->complete = true;
	if (call->granted >= call->length)
		hand_over(call);
}

/* ---- time */

static bool passed(uint64_t when, uint64_t now)
{
	return when && now >= when;
}

static void ask_again(struct rpc_call *call)
{
	if (grant(call, call->body.len) && !call->busy && call->complete && call->stream.ended)
		hand_over(call);
}

static bool too_slow(struct rpc_call *call, uint64_t now)
{
	uint64_t ms = (now - call->accepted_at) / 1000000;
	size_t arrived = call->body.len + call->prefix_len;
	return !call->busy &&
	       arrived < ms * (uint64_t)call->server->options.h2.limits.min_body_rate / 1000;
}

static void refuse_late(struct rpc_call *call, uint64_t now)
{
	struct error err;
	error_set(&err, ERROR_TOO_LARGE,
		  "timed out waiting for the message: %zu bytes have arrived in %.1f s; the "
		  "maximum is %.1f s",
		  call->body.len, (double)(now - call->accepted_at) / 1e9,
		  (double)call->server->message_timeout / 1e9);
	refuse(call, RPC_LATE, RPC_DEADLINE_EXCEEDED, err.text);
}

static void on_late(struct h2_stream *stream, uint64_t now)
{
	struct rpc_call *call = rpc_call_of(stream);
	if (passed(call->client_by, now)) {
		call->client_by = 0;
		refuse(call, RPC_CANCELLED, RPC_DEADLINE_EXCEEDED, "deadline exceeded");
	} else if (!call->handed_over && passed(call->message_by, now)) {
		refuse_late(call, now);
	} else if (!call->handed_over && passed(call->rate_at, now) && too_slow(call, now)) {
		lose(call, RPC_LATE);
		h2_stream_abuse(stream, H2_BODY_RATE);
	} else {
		if (passed(call->rate_at, now))
			call->rate_at = now + RATE_GRACE_NS;
		if (call->busy)
			ask_again(call);
		if (!call->over && !call->stream.finished)
			set_deadline(call);
	}
}

static void on_closed(struct h2_stream *stream)
{
	struct rpc_call *call = rpc_call_of(stream);
	if (!call->handed_over)
		lose(call, RPC_CANCELLED);
	call->over = true;
	if (call->ended)
		call->ended(call);
}

static void on_drained(struct h2_stream *stream)
{
	struct rpc_call *call = rpc_call_of(stream);
	if (call->drained)
		call->drained(call);
}

static void on_fini(struct h2_stream *stream)
{
	struct rpc_call *call = rpc_call_of(stream);
	release_body(call);
	fields_fini(&call->fields);
	fields_fini(&call->identity);
	bytes_fini(&call->response);
}

const struct h2_service rpc_service = {
	.size = sizeof(struct rpc_call),
	.headers = on_headers,
	.data = on_data,
	.end = on_end,
	.late = on_late,
	.drained = on_drained,
	.closed = on_closed,
	.fini = on_fini,
};

/* ---- replies */

/* Must be last: a stopping server is freed when its last accepted call is done. */
static void finish_here(struct rpc_call *call, int status, const char *text, int64_t retry_ms,
			const struct view *response)
{
	struct rpc_server *s = call->server;
	bool held = call->handed_over, accepted = call->accepted;
	if (!call->stream.finished)
		rpc_reply_write(call, status, text, retry_ms, response);
	call->over = true;
	call->accepted = false;
	if (held)
		h2_stream_unref(&call->stream);
	if (accepted)
		rpc_server_call_done(s);
}

static void finish_posted(struct io_post *post)
{
	struct rpc_call *call = (struct rpc_call *)((char *)post - offsetof(struct rpc_call, post));
	struct view response = bytes_view(&call->response);
	finish_here(call, call->status, call->text, call->retry_ms,
		    call->has_response ? &response : NULL);
}

void rpc_call_finish(struct rpc_call *call, int status, const char *text, int64_t retry_ms,
		     const struct view *response)
{
	if (io_here(call->stream.thread)) {
		finish_here(call, status, text, retry_ms, response);
		return;
	}
	call->status = status;
	call->retry_ms = retry_ms;
	call->has_response = response != NULL;
	strncpy(call->text, text, sizeof call->text - 1);
	bytes_init(&call->response, response ? response->len : 0);
	if (response)
		bytes_add(&call->response, response->at, response->len);
	call->post.run = finish_posted;
	io_post(call->stream.thread, &call->post);
}
