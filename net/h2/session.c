/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2/private.h"

#include "base/clock.h"
#include "base/memory.h"

#include <string.h>

/* The callbacks of nghttp2: each counts what a frame costs, then passes on its meaning. */

/* as in grpc-go: pings without streams, unless they are permitted */
#define PING_QUIET_NS (7200 * UINT64_C(1000000000))
#define PING_APART_NS (300 * UINT64_C(1000000000))

enum {
	SMALL_DATA = 64,
	/* a DATA frame of this size earns the token that a small one takes: grpc-java fills a
	 * window of 65535 bytes with four frames and one of a single byte */
	LARGE_DATA = 1024,
	EARNED_BY_REQUEST = 6,
	/* for the WINDOW_UPDATEs of the stream and of the connection that return its window */
	EARNED_BY_DATA = 2,
	/* as in grpc-go: the third ping that comes too early ends the connection */
	PING_STRIKES = 2,
	HARD_HEADERS = 4, /* a multiple of the limits above which there is no reply */
	STREAMS = 100,
	FIRST_EXTENSION = 0x0a /* types that RFC 9113, section 6, does not define */
};

static int fail(struct h2_connection *c, enum h2_reason reason)
{
	if (!c->fault)
		c->fault = reason;
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static const struct h2_limits *limits_of(const struct h2_connection *c)
{
	return &c->shard->server->options.limits;
}

int h2_session_max_streams(const struct h2_options *options)
{
	int64_t wanted = options->max_concurrent_streams;
	return wanted > 0 && wanted < INT32_MAX ? (int)wanted : STREAMS;
}

/* The policy of grpc-go's server: a ping that comes too early is a strike; strikes are reset when
 * the server sends headers or data. */
static int judge_ping(struct h2_connection *c)
{
	const struct h2_options *o = &c->shard->server->options;
	uint64_t now = c->read_at;
	uint64_t apart =
		o->min_ping_interval.ns > 0 ? (uint64_t)o->min_ping_interval.ns : PING_APART_NS;
	if (!c->stream_count && !o->pings_without_streams)
		apart = PING_QUIET_NS;
	if (c->last_ping_at && now - c->last_ping_at < apart && ++c->ping_strikes > PING_STRIKES)
		return fail(c, H2_PINGS);
	c->last_ping_at = now;
	return 0;
}

static bool take(struct h2_bucket *bucket, const struct h2_connection *c, int64_t rate)
{
	return h2_bucket_take(bucket, c->read_at, rate, rate * H2_BURST);
}

static int judge_continuation(struct h2_connection *c)
{
	return ++c->continuations > limits_of(c)->max_continuations ? fail(c, H2_CONTINUATIONS) : 0;
}

static int judge_control(struct h2_connection *c, enum h2_reason reason)
{
	return take(&c->control, c, limits_of(c)->max_control_frames_per_second) ? 0
										 : fail(c, reason);
}

static struct h2_stream *stream_of(nghttp2_session *session, int32_t id)
{
	return nghttp2_session_get_stream_user_data(session, id);
}

/* Requests are bounded by the number of streams and by their outcome. nghttp2 silently drops
 * headers on a closed stream. */
static int judge_headers(struct h2_connection *c, nghttp2_session *session, int32_t id)
{
	bool fresh = id > c->last_stream;
	c->continuations = 0;
	if (fresh || stream_of(session, id))
		c->header_since = c->read_at;
	if (!fresh)
		return judge_control(c, H2_CONTROL_FRAMES);
	c->last_stream = id;
	return 0;
}

static int judge_data(struct h2_connection *c, const nghttp2_frame_hd *hd,
		      const struct h2_stream *stream)
{
	if (stream && hd->length >= LARGE_DATA)
		h2_bucket_earn(&c->control, 1);
	if (stream && (hd->length >= SMALL_DATA || hd->flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	return judge_control(c, H2_CONTROL_FRAMES);
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *user)
{
	struct h2_connection *c = user;
	const struct h2_limits *l = limits_of(c);
	if (c->replaying)
		return 0;
	if (hd->type != NGHTTP2_CONTINUATION)
		c->header_since = 0;
	switch (hd->type) {
	case NGHTTP2_DATA:
		return judge_data(c, hd, stream_of(session, hd->stream_id));
	case NGHTTP2_HEADERS:
		return judge_headers(c, session, hd->stream_id);
	case NGHTTP2_CONTINUATION:
		return judge_continuation(c);
	case NGHTTP2_RST_STREAM:
		return take(&c->resets, c, l->max_resets_per_second) ? judge_control(c, H2_RESETS)
								     : fail(c, H2_RESETS);
	case NGHTTP2_SETTINGS:
		if (hd->flags & NGHTTP2_FLAG_ACK)
			return judge_control(c, H2_CONTROL_FRAMES);
		return take(&c->settings, c, l->max_settings_per_second)
			       ? 0
			       : fail(c, H2_SETTINGS_FLOOD);
	case NGHTTP2_PING:
		return judge_control(c, H2_PINGS);
	/* noted here, because grpc-go's GOAWAY names one of its own streams, for which nghttp2 ends
	 * the connection */
	case NGHTTP2_GOAWAY:
		c->left = true;
		return judge_control(c, H2_CONTROL_FRAMES);
	case NGHTTP2_PRIORITY: /* nghttp2 ignores it (RFC 9113, section 6.3) */
		if (!hd->stream_id)
			nghttp2_session_terminate_session(session, NGHTTP2_PROTOCOL_ERROR);
		return judge_control(c, H2_CONTROL_FRAMES);
	default:
		return judge_control(c, H2_CONTROL_FRAMES);
	}
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2_connection *c = user;
	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	/* the client retries it on another connection (RFC 9113, section 8.7) */
	if (c->ending >= H2_LEAVING)
		return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
						 NGHTTP2_REFUSED_STREAM);
	struct h2_stream *stream = h2_stream_new(c, frame->hd.stream_id);
	nghttp2_session_set_stream_user_data(session, stream->id, stream);
	return 0;
}

static bool over(const struct h2_stream *s, const struct h2_limits *l, size_t times)
{
	return s->header_bytes > (size_t)l->max_header_bytes * times ||
	       s->header_count > (size_t)l->max_headers * times;
}

/* RFC 9113, section 6.5.2: a field counts 32 bytes in addition to its name and value. Trailers
 * count too. */
static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *user)
{
	struct h2_connection *c = user;
	struct h2_stream *stream = stream_of(session, frame->hd.stream_id);
	(void)flags;
	if (!stream)
		return 0;
	stream->header_bytes += name_len + value_len + 32;
	stream->header_count++;
	if (over(stream, limits_of(c), HARD_HEADERS))
		return fail(c, H2_HEADERS);
	stream->headers_too_large = stream->headers_too_large || over(stream, limits_of(c), 1);
	if (frame->headers.cat == NGHTTP2_HCAT_REQUEST && !stream->headers_too_large)
		h2_stream_add_header(stream, (struct view){ name, name_len },
				     (struct view){ value, value_len });
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2_connection *c = user;
	struct h2_stream *stream =
		frame->hd.stream_id ? stream_of(session, frame->hd.stream_id) : NULL;
	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
		c->header_since = 0;
		if (stream && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
			stream->without_body = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
			h2_stream_headers_done(stream);
		}
		/* fall through */
	case NGHTTP2_DATA:
		if (stream && frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
			h2_stream_end(stream);
		break;
	case NGHTTP2_SETTINGS:
		if (!c->settled && !(frame->hd.flags & NGHTTP2_FLAG_ACK)) {
			c->settled = true;
			if (c->shard->retiring)
				h2_connection_retire(c);
		}
		break;
	case NGHTTP2_PING:
		if (c->replaying)
			break;
		if (!(frame->hd.flags & NGHTTP2_FLAG_ACK))
			return judge_ping(c);
		h2_connection_answered(c, frame->ping.opaque_data);
		break;
	default:
		break;
	}
	return c->fault ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
		   size_t len, void *user)
{
	struct h2_connection *c = user;
	struct h2_stream *stream = stream_of(session, id);
	(void)flags;
	nghttp2_session_consume_connection(session, len);
	if (!stream || stream->finished || stream->ended)
		return 0;
	stream->service->data(stream, (struct view){ data, len });
	return c->fault ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
	struct h2_stream *stream = stream_of(session, id);
	(void)code, (void)user;
	if (stream)
		h2_stream_close(stream);
	return 0;
}

/* After headers or data, the client's pings are no longer strikes. If a response has ended while
 * the client still sends, the stream is reset (RFC 9113, section 8.1). */
static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2_connection *c = user;
	c->broken = c->broken || frame->hd.type == NGHTTP2_GOAWAY;
	bool speaks = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
	if (speaks)
		c->ping_strikes = 0;
	if (frame->hd.type == NGHTTP2_DATA && frame->hd.length >= LARGE_DATA)
		h2_bucket_earn(&c->control, EARNED_BY_DATA);
	if (!speaks || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	h2_bucket_earn(&c->control, EARNED_BY_REQUEST);
	h2_bucket_earn(&c->resets, 1);
	struct h2_stream *stream = stream_of(session, frame->hd.stream_id);
	if (stream && !stream->ended)
		nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
					  NGHTTP2_NO_ERROR);
	return 0;
}

/* Streams over the limit, and protocol violations. */
static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int code,
			    void *user)
{
	struct h2_connection *c = user;
	(void)session;
	if (frame->hd.type == NGHTTP2_HEADERS)
		c->header_since = 0;
	if (code == NGHTTP2_ERR_REFUSED_STREAM)
		return judge_control(c, H2_STREAMS);
	if (code == NGHTTP2_ERR_PROTO && frame->hd.type == NGHTTP2_HEADERS &&
	    c->stream_count >= h2_session_max_streams(&c->shard->server->options))
		/* more than our SETTINGS permit, which the client has acknowledged */
		return fail(c, H2_STREAMS);
	return judge_control(c, H2_CONTROL_FRAMES);
}

/* Frames of extensions are counted too, and discarded (RFC 9113, section 5.5). */
static int on_extension(nghttp2_session *session, const nghttp2_frame_hd *hd, const uint8_t *data,
			size_t len, void *user)
{
	(void)session, (void)hd, (void)data, (void)len, (void)user;
	return NGHTTP2_ERR_CANCEL;
}

static int unpack_extension(nghttp2_session *session, void **payload, const nghttp2_frame_hd *hd,
			    void *user)
{
	(void)session, (void)payload, (void)hd, (void)user;
	return NGHTTP2_ERR_CANCEL;
}

nghttp2_session_callbacks *h2_session_callbacks(void)
{
	nghttp2_session_callbacks *callbacks;
	if (nghttp2_session_callbacks_new(&callbacks) != 0)
		return NULL;
	nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
	nghttp2_session_callbacks_set_on_extension_chunk_recv_callback(callbacks, on_extension);
	nghttp2_session_callbacks_set_unpack_extension_callback(callbacks, unpack_extension);
	return callbacks;
}

/* The library's own limits, as a second line of defence. */
nghttp2_option *h2_session_options(const struct h2_limits *limits)
{
	nghttp2_option *option;
	if (nghttp2_option_new(&option) != 0)
		return NULL;
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_option_set_no_closed_streams(option, 1);
	nghttp2_option_set_server_fallback_rfc7540_priorities(option, 0);
	nghttp2_option_set_max_outbound_ack(option, 100);
	for (int type = FIRST_EXTENSION; type <= UINT8_MAX; type++)
		nghttp2_option_set_user_recv_extension_type(option, (uint8_t)type);
	nghttp2_option_set_max_settings(option, 32);
	nghttp2_option_set_max_continuations(option, (size_t)limits->max_continuations);
	nghttp2_option_set_stream_reset_rate_limit(option,
						   (uint64_t)limits->max_resets_per_second *
							   H2_BURST * 2,
						   (uint64_t)limits->max_resets_per_second * 2);
	return option;
}

bool h2_session_open(struct h2_connection *c)
{
	struct h2_server *s = c->shard->server;
	const struct h2_options *o = &s->options;
	if (nghttp2_session_server_new2(&c->session, s->callbacks, c, s->session_options) != 0)
		return false;
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
		  (uint32_t)h2_session_max_streams(&c->shard->server->options) },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)o->limits.max_header_bytes },
		{ NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1 },
	};
	return nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings,
				       sizeof settings / sizeof *settings) == 0 &&
	       nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0,
						     H2_CONNECTION_WINDOW) == 0;
}

bool h2_session_judge_record(struct h2_connection *c)
{
	return judge_control(c, H2_CONTROL_FRAMES) == 0;
}

/* The reason for an error of the library, when one of its own limits is exceeded. */
static enum h2_reason reason_of(ssize_t code)
{
	switch (code) {
	case NGHTTP2_ERR_FLOODED:
		return H2_CONTROL_FRAMES;
	case NGHTTP2_ERR_TOO_MANY_SETTINGS:
		return H2_SETTINGS_FLOOD;
	case NGHTTP2_ERR_TOO_MANY_CONTINUATIONS:
		return H2_CONTINUATIONS;
	default:
		return H2_PROTOCOL_ERROR;
	}
}

bool h2_session_receive(struct h2_connection *c, struct view data)
{
	if (c->foreign)
		return h2_http1_receive(c, data);
	if (!h2_connection_wake(c)) {
		c->fault = c->fault ? c->fault : H2_PROTOCOL_ERROR;
		return false;
	}
	ssize_t taken = nghttp2_session_mem_recv(c->session, data.at, data.len);
	if (taken == NGHTTP2_ERR_BAD_CLIENT_MAGIC)
		return h2_http1_receive(c, data);
	h2_connection_remember(c, data);
	c->spoken = c->spoken || c->wakeful || c->history.len >= NGHTTP2_CLIENT_MAGIC_LEN;
	if (taken < 0 && !c->fault)
		c->fault = reason_of(taken);
	return !c->fault;
}
