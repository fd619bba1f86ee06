/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2/private.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define LINGER_NS (1 * SECOND) /* for the client to read the last output */

enum { FRAME_HEAD = 9, PAYLOAD_MAX = 40, PENDING_MAX = 4 << 20, SMALL_RECORD = 5, IDLE_LOOKS = 64 };

static const uint8_t ending_ping[8] = "goodbye";

static void become_idle(struct h2_connection *c)
{
	struct h2_shard *shard = c->shard;
	if (c->idle || c->stream_count)
		return;
	c->idle = true;
	c->idle_since = clock_now();
	c->idle_next = NULL;
	c->idle_prev = shard->idle_last;
	*(shard->idle_last ? &shard->idle_last->idle_next : &shard->idle_first) = c;
	shard->idle_last = c;
	h2_connection_watch(c);
}

static void stop_idling(struct h2_connection *c)
{
	struct h2_shard *shard = c->shard;
	if (!c->idle)
		return;
	c->idle = false;
	*(c->idle_prev ? &c->idle_prev->idle_next : &shard->idle_first) = c->idle_next;
	*(c->idle_next ? &c->idle_next->idle_prev : &shard->idle_last) = c->idle_prev;
}

static void watch_socket(struct h2_connection *c);

static void free_connection(struct h2_connection *c)
{
	struct h2_shard *shard = c->shard;
	struct h2_server *s = shard->server;
	close(c->fd);
	nghttp2_session_del(c->session);
	tls_session_free(&c->tls);
	bytes_fini(&c->pending);
	bytes_fini(&c->history);
	h2_peer_unref(c->peer);
	memory_free(c);
	h2_server_left(s);
}

static void handle_gone(uv_handle_t *handle)
{
	struct h2_connection *c = handle->data;
	if (--c->handles == 0)
		free_connection(c);
}

static void end_streams(struct h2_connection *c)
{
	while (c->streams)
		h2_stream_close(c->streams);
}

static void forget(struct h2_connection *c)
{
	struct h2_shard *shard = c->shard;
	struct h2_server *s = shard->server;
	stop_idling(c);
	*(c->prev ? &c->prev->next : &shard->connections) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	atomic_fetch_sub(&shard->count, 1);
	atomic_fetch_sub(&s->connections, 1);
	metric_add(s->counters.open, -1);
	h2_connection_release_unread(c);
	net_budget_release(&s->options.budget,
			   h2_server_connection_cost(s) - (c->asleep ? H2_WAKE_COST : 0));
	h2_server_uncount(s, c->peer->address, c->key);
}

/* Closes the connection immediately; the memory is freed when libuv has closed the handles. */
static void destroy(struct h2_connection *c)
{
	if (c->ending == H2_CLOSED)
		return;
	c->ending = H2_CLOSED;
	end_streams(c);
	forget(c);
	if (c->handles == 2)
		uv_close((uv_handle_t *)&c->poll, handle_gone);
	uv_close((uv_handle_t *)&c->timer, handle_gone);
}

/* False: the socket accepts no more at the moment, or is dead (c->hung_up). */
static bool write_some(struct h2_connection *c, struct view *data)
{
	while (data->len) {
		ssize_t sent = send(c->fd, data->at, data->len, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0) {
			c->hung_up = errno != EAGAIN && errno != EWOULDBLOCK;
			return false;
		}
		data->at += sent;
		data->len -= (size_t)sent;
	}
	return true;
}

static bool keep(struct h2_connection *c, struct view rest)
{
	if (!c->stalled_since) {
		c->stalled_since = clock_now();
		h2_connection_watch(c);
	}
	return bytes_add(&c->pending, rest.at, rest.len);
}

static bool write_pending(struct h2_connection *c)
{
	if (!c->pending.len)
		return true;
	struct view rest = { c->pending.at + c->pending_taken, c->pending.len - c->pending_taken };
	size_t before = rest.len;
	bool all = write_some(c, &rest);
	c->pending_taken = c->pending.len - rest.len;
	if (rest.len < before)
		c->stalled_since = all ? 0 : clock_now();
	if (all) {
		bytes_fini(&c->pending);
		bytes_init(&c->pending, PENDING_MAX);
		c->pending_taken = 0;
	}
	return all;
}

/* Writes whole frames to the socket, or appends them to what it has not accepted yet. */
static void put_wire(struct h2_connection *c, struct view data)
{
	bool behind = c->pending.len > 0;
	if (!behind && write_some(c, &data))
		return;
	if (!c->hung_up && !keep(c, data))
		c->fault = H2_OUTBOUND;
}

static void put_tls_output(struct h2_connection *c)
{
	struct view out = tls_session_output(c->tls);
	size_t len = out.len;
	if (!len)
		return;
	put_wire(c, out);
	tls_session_sent(c->tls, len);
}

static void put(struct h2_connection *c, struct view frames)
{
	if (!c->tls) {
		put_wire(c, frames);
		return;
	}
	if (!tls_session_send(c->tls, frames))
		c->hung_up = true;
	put_tls_output(c);
}

void h2_connection_put(struct h2_connection *c, struct view data)
{
	put(c, data);
}

/* Our SETTINGS wait for the client's first bytes too: it may speak HTTP/1 (http1.c). */
static bool can_speak(const struct h2_connection *c)
{
	return c->spoken && (!c->tls || tls_session_ready(c->tls));
}

/* Writes a frame of the connection directly (RFC 9113, section 4.1): nghttp2 sends nothing after
 * its GOAWAY. */
static void put_frame(struct h2_connection *c, uint8_t type, uint8_t flags, const void *payload,
		      size_t len)
{
	uint8_t frame[FRAME_HEAD + PAYLOAD_MAX] = { 0, 0, (uint8_t)len, type, flags };
	assert(len <= PAYLOAD_MAX);
	memcpy(frame + FRAME_HEAD, payload, len);
	if (can_speak(c) && !c->hung_up)
		put(c, (struct view){ frame, FRAME_HEAD + len });
}

static uint32_t last_stream(const struct h2_connection *c)
{
	return c->session ? (uint32_t)nghttp2_session_get_last_proc_stream_id(c->session) : 0;
}

static void put_goaway(struct h2_connection *c, uint32_t last, uint32_t code)
{
	uint8_t payload[PAYLOAD_MAX] = { (uint8_t)(last >> 24),
					 (uint8_t)(last >> 16),
					 (uint8_t)(last >> 8),
					 (uint8_t)last,
					 0,
					 0,
					 0,
					 (uint8_t)code };
	const char *text = h2_reason_text(c->why);
	size_t len = strnlen(text, PAYLOAD_MAX - 8);
	memcpy(payload + 8, text, len);
	put_frame(c, NGHTTP2_GOAWAY, 0, payload, 8 + len);
}

/* Collects the session's output so that it is sent with one call. */
static void put_frames(struct h2_connection *c)
{
	size_t room = c->shard->server->options.write_buffer_bytes, used = 0;
	uint8_t *buffer = io_write_buffer(c->shard->thread, room);
	const uint8_t *frame;
	ssize_t len = 0;
	while (!c->pending.len && !c->hung_up &&
	       (len = nghttp2_session_mem_send(c->session, &frame)) > 0) {
		if (used && used + (size_t)len > room) {
			put(c, (struct view){ buffer, used });
			used = 0;
		}
		if ((size_t)len > room) {
			put(c, (struct view){ frame, (size_t)len });
			continue;
		}
		memcpy(buffer + used, frame, (size_t)len);
		used += (size_t)len;
	}
	if (len < 0)
		c->fault = H2_PROTOCOL_ERROR;
	if (used)
		put(c, (struct view){ buffer, used });
}

/* Our side is shut down. The client's last bytes are read and discarded, because otherwise the
 * kernel would reset the connection before the client has read everything. */
static void shut(struct h2_connection *c)
{
	if (c->tls) {
		tls_session_close(c->tls);
		put_tls_output(c);
	}
	if (c->hung_up || shutdown(c->fd, SHUT_WR) != 0) {
		destroy(c);
		return;
	}
	c->ending = H2_SHUT;
	end_streams(c);
	stop_idling(c);
	c->ends_at = clock_now() + LINGER_NS;
	h2_connection_watch(c);
	watch_socket(c);
}

void h2_connection_close(struct h2_connection *c, enum h2_reason reason)
{
	if (c->ending >= H2_SHUT)
		return;
	bool calm = reason < H2_IDLE;
	c->why = c->why ? c->why : reason;
	if (reason != H2_REASON_NONE)
		metric_add(c->shard->server->counters.closed[reason], 1);
	if (reason != H2_REASON_NONE && reason != H2_PROTOCOL_ERROR && reason != H2_HTTP1)
		put_goaway(c, last_stream(c), calm ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_NO_ERROR);
	shut(c);
}

void h2_connection_abort(struct h2_connection *c)
{
	if (c->ending < H2_ASKED)
		put_goaway(c, last_stream(c), NGHTTP2_NO_ERROR);
	destroy(c);
}

bool h2_shard_close_idle(struct h2_shard *shard, int count, uint64_t idle_ns, uint32_t keep)
{
	bool any = false;
	uint64_t now = clock_now();
	int looks = IDLE_LOOKS;
	for (struct h2_connection *c = shard->idle_first, *next; c && count > 0 && looks-- > 0;
	     c = next) {
		next = c->idle_next;
		if (now - c->idle_since < idle_ns)
			break;
		if (c->ending != H2_OPEN || c->in_turn || c->drowsy_since ||
		    (keep && peer_count_of(shard->server->peers, c->key) <= keep))
			continue;
		c->why = H2_MEMORY;
		metric_add(shard->server->counters.closed[H2_MEMORY], 1);
		/* it is idle: no reply is in transit that a lingering close would preserve */
		h2_connection_abort(c);
		any = true;
		count--;
	}
	return any;
}

static void close_idle(struct io_post *post)
{
	struct h2_shard *shard =
		(struct h2_shard *)((char *)post - offsetof(struct h2_shard, close_idle));
	pthread_mutex_lock(&shard->asking);
	uint64_t idle_ns = shard->asked_idle_ns;
	uint32_t keep = shard->asked_keep;
	shard->asked = false;
	pthread_mutex_unlock(&shard->asking);
	h2_shard_close_idle(shard, H2_IDLE_TO_CLOSE, idle_ns, keep);
}

void h2_shard_ask_to_close_idle(struct h2_shard *shard, uint64_t idle_ns, uint32_t keep)
{
	pthread_mutex_lock(&shard->asking);
	bool first = !shard->asked;
	shard->asked = true;
	if (first || idle_ns < shard->asked_idle_ns)
		shard->asked_idle_ns = idle_ns;
	if (first || keep < shard->asked_keep)
		shard->asked_keep = keep;
	pthread_mutex_unlock(&shard->asking);
	if (!first)
		return;
	shard->close_idle.run = close_idle;
	io_post(shard->thread, &shard->close_idle);
}

/* An earlier h2_connection_end may have set an earlier deadline. */
static void end_by(struct h2_connection *c, uint64_t deadline)
{
	if (!deadline || (c->ends_at && c->ends_at <= deadline))
		return;
	c->ends_at = deadline;
	h2_connection_watch(c);
}

static void ask_whether_read(struct h2_connection *c)
{
	c->ending = H2_ASKED;
	c->owes_ping = true;
	end_by(c, clock_now() + H2_ENDING_NS);
}

static void say_last(struct h2_connection *c)
{
	c->ending = H2_LEAVING;
	c->owes_goaway = true;
}

/* Writes the GOAWAYs of a graceful end, after all replies. The answer to the ping means that the
 * client has read them. After the first GOAWAY, two answers are awaited, because the gRPC C core
 * answers a ping before it writes the headers of a call that had begun. */
static void put_ending(struct h2_connection *c)
{
	if (c->owes_goaway)
		put_goaway(c, c->ending == H2_NOTICED ? INT32_MAX : last_stream(c),
			   NGHTTP2_NO_ERROR);
	c->owes_ping = c->owes_ping || (c->owes_goaway && c->ending == H2_NOTICED);
	c->owes_goaway = false;
	if (c->ending == H2_LEAVING && !c->stream_count)
		ask_whether_read(c);
	if (c->owes_ping)
		put_frame(c, NGHTTP2_PING, 0, ending_ping, sizeof ending_ping);
	c->owes_ping = false;
}

void h2_connection_end(struct h2_connection *c, enum h2_reason reason, bool last, uint64_t deadline)
{
	if (c->ending >= H2_LEAVING || (c->ending == H2_NOTICED && !last)) {
		end_by(c, deadline);
		return;
	}
	if (c->ending == H2_OPEN && reason != H2_REASON_NONE)
		metric_add(c->shard->server->counters.closed[reason], 1);
	/* its SETTINGS have not arrived yet, or the session cannot be restored */
	if (!c->settled || !h2_connection_wake(c)) {
		destroy(c);
		return;
	}
	c->ends_at = deadline;
	c->why = reason;
	if (last) {
		say_last(c);
	} else {
		c->ending = H2_NOTICED;
		c->owes_goaway = true;
	}
	h2_connection_watch(c);
	h2_connection_touch(c);
}

void h2_connection_retire(struct h2_connection *c)
{
	if (c->settled)
		h2_connection_end(c, H2_REASON_NONE, false, c->shard->drain_deadline);
	else
		end_by(c, c->shard->drain_deadline);
}

void h2_connection_answered(struct h2_connection *c, const uint8_t opaque[8])
{
	c->ping_at = 0;
	if (memcmp(opaque, ending_ping, sizeof ending_ping) != 0)
		return;
	if (c->ending == H2_NOTICED && !c->noticed_twice)
		c->noticed_twice = c->owes_ping = true;
	else if (c->ending == H2_NOTICED)
		say_last(c);
	else if (c->ending == H2_ASKED)
		c->ending_pinged = true;
}

void h2_connection_stream_opened(struct h2_connection *c)
{
	c->stream_count++;
	stop_idling(c);
}

void h2_connection_stream_closed(struct h2_connection *c)
{
	if (--c->stream_count || c->ending >= H2_SHUT)
		return;
	become_idle(c);
}

/* Also if nghttp2 has sent GOAWAY, or the client has and none of its streams is left. */
static bool is_done(const struct h2_connection *c)
{
	return c->ending_pinged || (c->session && !nghttp2_session_want_read(c->session) &&
				    !nghttp2_session_want_write(c->session));
}

void h2_connection_flush(struct h2_connection *c)
{
	if (c->ending >= H2_SHUT)
		return;
	if (write_pending(c) && c->session && !c->fault && can_speak(c)) {
		put_frames(c);
		put_ending(c);
	}
	h2_connection_judge_unread(c);
	if (c->hung_up)
		destroy(c);
	else if (c->fault)
		h2_connection_close(c, c->fault);
	else if (is_done(c) && !c->pending.len)
		h2_connection_close(c, c->broken && !c->left ? H2_PROTOCOL_ERROR : H2_REASON_NONE);
	else {
		h2_connection_fall_asleep(c);
		watch_socket(c);
	}
}

void h2_connection_touch(struct h2_connection *c)
{
	if (!c->in_turn)
		h2_connection_flush(c);
}

/* Before the first request, which may arrive with the end of the handshake. */
static void list_owner(struct h2_connection *c)
{
	if (!c->owner_listed && tls_session_owner(c->tls, &c->peer->auth))
		fields_list(&c->peer->auth);
	c->owner_listed = true;
}

static bool take_plain(void *context, struct view data)
{
	struct h2_connection *c = context;
	list_owner(c);
	return (data.len >= SMALL_RECORD || h2_session_judge_record(c)) &&
	       h2_session_receive(c, data);
}

static void take_tls(struct h2_connection *c, struct view data)
{
	bool ok = tls_session_receive(c->tls, data, take_plain, c);
	put_tls_output(c);
	if (!ok && !c->fault && c->ending < H2_SHUT)
		c->hung_up = true;
}

static void read_once(struct h2_connection *c)
{
	size_t room = c->shard->server->options.read_buffer_bytes;
	uint8_t *buffer = io_read_buffer(c->shard->thread, room);
	ssize_t len = recv(c->fd, buffer, room, 0);
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len <= 0) {
		c->hung_up = true;
		return;
	}
	c->read_at = clock_now();
	if (c->ending == H2_SHUT)
		return;
	struct view data = { buffer, (size_t)len };
	c->in_turn = true;
	if (c->tls)
		take_tls(c, data);
	else
		h2_session_receive(c, data);
	c->in_turn = false;
	if (c->header_since)
		h2_connection_watch(c);
}

static void turn(uv_poll_t *poll, int status, int events)
{
	struct h2_connection *c = poll->data;
	if (status < 0)
		c->hung_up = true;
	if ((events & UV_READABLE) && h2_connection_may_wake(c))
		read_once(c);
	if (c->ending == H2_SHUT && c->hung_up)
		destroy(c);
	else
		h2_connection_flush(c);
}

/* A client that does not read our output is not read from, nor is one whose session cannot wake
 * yet. */
static void watch_socket(struct h2_connection *c)
{
	int events = c->pending.len ? UV_WRITABLE : UV_READABLE;
	if (c->retry_at)
		events = 0;
	if (c->ending == H2_SHUT)
		events = UV_READABLE;
	if (events == c->events || c->ending == H2_CLOSED)
		return;
	c->events = events;
	if (events)
		uv_poll_start(&c->poll, events, turn);
	else
		uv_poll_stop(&c->poll);
}

/* Varied by a tenth, at random, so that connections opened together do not end together. */
static uint64_t end_of_age(uint64_t now, struct duration age)
{
	uint32_t random;
	if (age.ns <= 0)
		return 0;
	hash_random(&random, sizeof random);
	return now + (uint64_t)age.ns / 10 * 9 +
	       (uint64_t)((double)age.ns / 5 * random / UINT32_MAX);
}

void h2_connection_open(struct h2_shard *shard, int fd, const char *address, struct hash128 key)
{
	struct h2_server *s = shard->server;
	struct h2_connection *c = memory_new(sizeof *c);
	*c = (struct h2_connection){
		.shard = shard, .fd = fd, .key = key, .peer = h2_peer_new(address)
	};
	c->opened_at = c->read_at = clock_now();
	c->ages_at = end_of_age(c->opened_at, s->options.max_connection_age);
	bytes_init(&c->pending, PENDING_MAX);
	c->next = shard->connections;
	if (c->next)
		c->next->prev = c;
	shard->connections = c;
	metric_add(s->counters.open, 1);
	uv_timer_init(io_loop(shard->thread), &c->timer);
	/* epoll may have no room for another descriptor */
	c->handles = 1 + (uv_poll_init(io_loop(shard->thread), &c->poll, fd) == 0);
	c->poll.data = c->timer.data = c;
	c->tls = s->tls ? tls_session_new(s->tls) : NULL;
	if (c->handles < 2 || !h2_session_open(c) || shard->draining) {
		destroy(c);
		return;
	}
	become_idle(c);
	h2_connection_touch(c);
	h2_connection_watch(c);
	if (shard->retiring)
		h2_connection_retire(c);
}
