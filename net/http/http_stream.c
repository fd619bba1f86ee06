/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/memory.h"
#include "net/http/http_internal.h"

#include <assert.h>
#include <stdio.h>

#define MS_NS UINT64_C(1000000)
#define ASK_NS (20 * MS_NS)          /* interval at which a waiting body asks for memory */
#define RATE_GRACE_NS (5000 * MS_NS) /* a body may start slowly */
#define RATE_CHECK_NS (1000 * MS_NS)

enum {
	/* The client may send this much beyond what the route has granted, so that it need not wait
	 * for each grant; RFC 9113's initial window. */
	WINDOW_AHEAD = 65535,
	OWED_MAX = 1 << 20, /* per I/O thread */
	PART = 65536,       /* of a response's body */
	STATUS_ROOM = 16
};

/* One HTTP/2 request. Belongs to its I/O thread; from the body on, the exchange belongs to the
 * route until its reply. */
struct http_stream {
	struct h2_stream stream; /* first */
	struct http_exchange x;
	struct io_post post; /* of a reply from another thread */
	bool complete;       /* the whole body has arrived */
	size_t owed;         /* bytes of the body that have arrived but are not granted */
	size_t sent;         /* of the response's body */
	/* clock_now; 0: not set. body_since is moved by the time for which the body waited. */
	uint64_t body_since, body_by, rate_at;
};

static struct http_stream *stream_of(struct h2_stream *stream)
{
	return (struct http_stream *)stream;
}

static struct http_stream *stream_with(struct http_exchange *x)
{
	return (struct http_stream *)((char *)x - offsetof(struct http_stream, x));
}

/* ---- the response */

struct list {
	struct h2_header *at;
	size_t count;
};

static void add_to_list(void *context, const char *name, const char *value)
{
	struct list *list = context;
	list->at[list->count++] = (struct h2_header){ name, view_of(value) };
}

static void count_header(void *context, const char *name, const char *value)
{
	(void)name, (void)value;
	++*(size_t *)context;
}

static struct list list_headers(struct http_exchange *x, const char *length)
{
	size_t count = 1;
	struct list list = { 0 };
	http_exchange_each_header(x, count_header, &count);
	list.at = memory_array(count, sizeof *list.at);
	http_exchange_each_header(x, add_to_list, &list);
	if (*length)
		add_to_list(&list, "Content-Length", length);
	return list;
}

/* Sends as much of the body as the connection takes in one step. */
static void send_body(struct http_stream *s)
{
	const struct http_answer *a = &s->x.answer;
	size_t len = a->body_len - s->sent < PART ? a->body_len - s->sent : PART;
	s->sent += len;
	h2_stream_send(&s->stream, (struct view){ a->body + s->sent - len, len });
	if (s->sent == a->body_len)
		h2_stream_finish(&s->stream, NULL, NULL, 0);
}

static void limit_writing(struct http_stream *s)
{
	uint64_t timeout = (uint64_t)s->x.server->config->write_timeout.ns;
	h2_stream_set_deadline(&s->stream, timeout ? clock_now() + timeout : 0);
}

static void write_answer(struct http_stream *s)
{
	struct http_exchange *x = &s->x;
	const struct http_answer *a = &x->answer;
	char status[STATUS_ROOM], length[STATUS_ROOM * 2] = "";
	snprintf(status, sizeof status, "%d", a->status);
	if (a->status != 204 && a->status != 304)
		snprintf(length, sizeof length, "%zu", a->body_len);
	struct list list = list_headers(x, length);
	if (a->status >= 400 && !a->retry_after_s)
		h2_stream_count_error(&s->stream);
	if (!a->body_len || !strcmp(x->method, "HEAD")) {
		h2_stream_finish(&s->stream, status, list.at, list.count);
	} else {
		h2_stream_respond(&s->stream, status, list.at, list.count);
		limit_writing(s);
		send_body(s);
		h2_stream_flush(&s->stream);
	}
	memory_free(list.at);
	if (!x->server->config->keep_alives_enabled)
		h2_stream_leave(&s->stream);
}

static void finish(struct http_stream *s)
{
	if (s->stream.connection)
		write_answer(s);
	h2_stream_unref(&s->stream);
}

static void finish_posted(struct io_post *post)
{
	finish((struct http_stream *)((char *)post - offsetof(struct http_stream, post)));
}

/* Before the route has the body, whoever called it writes the answer. */
static void reply(struct http_exchange *x, const struct http_reply *reply)
{
	struct http_stream *s = stream_with(x);
	http_exchange_fill(x, reply);
	if (x->stage != HTTP_STAGE_HANDED)
		return;
	if (io_here(s->stream.thread)) {
		finish(s);
		return;
	}
	s->post.run = finish_posted;
	io_post(s->stream.thread, &s->post);
}

static const struct http_carrier carrier = { sizeof(struct http_stream), reply };

/* ---- the body */

static void at_earliest(uint64_t *when, uint64_t candidate)
{
	if (candidate && (!*when || candidate < *when))
		*when = candidate;
}

static void set_deadline(struct http_stream *s)
{
	uint64_t when = 0;
	if (s->x.waiting_since)
		at_earliest(&when, clock_now() + ASK_NS);
	else
		at_earliest(&when, s->rate_at);
	at_earliest(&when, s->body_by);
	h2_stream_set_deadline(&s->stream, when);
}

/* Limits what has arrived without a grant: a window for each stream is little, but not for
 * thousands of them. */
static bool may_owe(struct http_stream *s, size_t owed)
{
	size_t *all = &s->x.server->owed[io_thread_index(s->stream.thread)];
	*all += owed - s->owed;
	s->owed = owed;
	return !owed || *all <= OWED_MAX;
}

static void hand_over(struct http_stream *s)
{
	struct http_exchange *x = &s->x;
	x->stage = HTTP_STAGE_HANDED;
	h2_stream_set_deadline(&s->stream, 0);
	h2_stream_hold(&s->stream);
	x->route->body(x->route->context, x, bytes_view(&x->body));
}

static void stop_waiting(struct http_stream *s)
{
	struct http_exchange *x = &s->x;
	may_owe(s, 0);
	if (x->waiting_since)
		s->body_since += clock_now() - x->waiting_since;
	x->waiting_since = 0;
}

static void granted(struct http_stream *s)
{
	struct http_exchange *x = &s->x;
	stop_waiting(s);
	if (s->complete) {
		hand_over(s);
		return;
	}
	h2_stream_window(&s->stream, x->body_room + WINDOW_AHEAD);
	set_deadline(s);
}

static void end_early(struct http_stream *s)
{
	may_owe(s, 0);
	s->x.stage = HTTP_STAGE_REPLYING;
	write_answer(s);
}

/* Asks for memory for what has arrived. */
static void ask(struct http_stream *s)
{
	switch (http_exchange_grow(&s->x, s->x.body.len)) {
	case HTTP_FEED_TAKEN:
		granted(s);
		break;
	case HTTP_FEED_LATER:
		set_deadline(s);
		break;
	case HTTP_FEED_OVER:
		end_early(s);
	}
}

/* There is no memory for what has just arrived. It is kept, because it is within the window, and
 * the window is not opened further. */
static void wait_for_memory(struct http_stream *s, struct view data)
{
	struct http_exchange *x = &s->x;
	http_memory_begin_wait(x);
	x->body.max = x->body.len + data.len;
	bytes_add(&x->body, data.at, data.len);
	if (!may_owe(s, x->body.len - x->body_room)) {
		x->patience_ns = 0;
		ask(s);
		return;
	}
	set_deadline(s);
}

static void on_data(struct h2_stream *stream, struct view data)
{
	struct http_stream *s = stream_of(stream);
	if (s->x.stage != HTTP_STAGE_BODY || !data.len)
		return;
	switch (http_exchange_feed(&s->x, data.at, data.len)) {
	case HTTP_FEED_TAKEN:
		granted(s);
		break;
	case HTTP_FEED_LATER:
		wait_for_memory(s, data);
		break;
	case HTTP_FEED_OVER:
		end_early(s);
	}
}

static void on_end(struct h2_stream *stream)
{
	struct http_stream *s = stream_of(stream);
	if (s->x.stage != HTTP_STAGE_BODY)
		return;
	s->complete = true;
	if (!s->x.waiting_since)
		hand_over(s);
}

static void give_up(struct http_stream *s, uint64_t now, const char *setting, const char *value)
{
	struct http_exchange *x = &s->x;
	x->route->lost(x->route->context, x, false);
	http_exchange_answer_late(x, now - s->body_since, setting, value);
	end_early(s);
}

static bool is_slow(const struct http_stream *s, uint64_t now)
{
	uint64_t rate = s->x.server->deadlines.min_rate;
	return now >= s->body_since + RATE_GRACE_NS &&
	       s->x.body.len < (now - s->body_since - RATE_GRACE_NS) / 1000 * rate / 1000000;
}

static void on_late(struct h2_stream *stream, uint64_t now)
{
	struct http_stream *s = stream_of(stream);
	const struct http_server_config *config = s->x.server->config;
	char value[64];
	if (stream->responded) {
		h2_stream_abuse(stream, H2_OUTBOUND);
	} else if (s->body_by && now >= s->body_by) {
		snprintf(value, sizeof value, "%g s", (double)config->read_timeout.ns / 1e9);
		give_up(s, now, "read_timeout", value);
	} else if (s->x.waiting_since) {
		ask(s);
	} else if (is_slow(s, now)) {
		snprintf(value, sizeof value, "%ld bytes/s", (long)config->min_body_rate);
		give_up(s, now, "min_body_rate", value);
	} else {
		s->rate_at = now + RATE_CHECK_NS;
		set_deadline(s);
	}
}

/* ---- the request */

/* RFC 9113 §8.3.1: :authority takes the place of Host. */
static void copy_headers(struct http_stream *s)
{
	struct http_exchange *x = &s->x;
	const char *authority = h2_stream_header(&s->stream, ":authority");
	if (authority)
		fields_add(&x->headers, view_of("host"), view_of(authority), NULL);
	x->headers_over = s->stream.headers_too_large;
	x->header_count = s->stream.header_count;
	x->header_bytes = s->stream.header_bytes;
	for (const struct metadatum *h = s->stream.headers.at; h && h->name; h++) {
		if (*h->name == ':' || (authority && !strcmp(h->name, "host")))
			continue;
		if (!fields_add(&x->headers, view_of(h->name), view_of(h->value), NULL))
			x->headers_over = true;
	}
}

static void begin_body(struct http_stream *s)
{
	struct http_exchange *x = &s->x;
	const struct http_server_config *config = x->server->config;
	s->body_since = clock_now();
	s->body_by =
		config->read_timeout.ns ? s->body_since + (uint64_t)config->read_timeout.ns : 0;
	s->rate_at = config->min_body_rate ? s->body_since + RATE_GRACE_NS : 0;
	if (x->expects_continue && !s->stream.without_body)
		h2_stream_continue(&s->stream);
	set_deadline(s);
}

static void on_headers(struct h2_stream *stream)
{
	struct http_stream *s = stream_of(stream);
	struct http_exchange *x = &s->x;
	const char *path = h2_stream_header(stream, ":path");
	const char *method = h2_stream_header(stream, ":method");
	bool sound;
	http_exchange_init(x, stream->context, &carrier, path ? path : "");
	x->version = HTTP_2;
	x->thread = stream->thread;
	x->without_body = stream->without_body;
	x->method = memory_text(method ? method : "");
	x->peer = memory_text(stream->peer->address);
	copy_headers(s);
	http_exchange_add_owner(x, &stream->peer->auth);
	fields_fini(&stream->headers);
	if (http_exchange_open(x, &sound)) {
		begin_body(s);
	} else {
		x->stage = HTTP_STAGE_REPLYING;
		write_answer(s);
	}
}

static void on_drained(struct h2_stream *stream)
{
	limit_writing(stream_of(stream));
	send_body(stream_of(stream));
}

static void on_closed(struct h2_stream *stream)
{
	struct http_stream *s = stream_of(stream);
	struct http_exchange *x = &s->x;
	if (x->stage != HTTP_STAGE_BODY)
		return;
	may_owe(s, 0);
	x->stage = HTTP_STAGE_LOST;
	x->route->lost(x->route->context, x, false);
}

static void on_fini(struct h2_stream *stream)
{
	http_exchange_fini(&stream_of(stream)->x);
}

const struct h2_service http_stream_service = {
	.size = sizeof(struct http_stream),
	.headers = on_headers,
	.data = on_data,
	.end = on_end,
	.late = on_late,
	.drained = on_drained,
	.closed = on_closed,
	.fini = on_fini,
};
