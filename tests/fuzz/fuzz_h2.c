/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * A client of a server for gRPC and plain HTTP. The input determines what it sends, how that is divided into reads,
 * and what happens between the reads. The I/O thread is this one, so that nothing waits; io.c is
 * included for that purpose. The monotonic clock stands still except for the steps that move it.
 *
 *	byte 0        flags (below)
 *	bytes 1 to 7  one step each: how much is read (the low four bits), then what happens (the
 *	              high four bits)
 *	the rest      what the client sends
 */
/* clang-format on */
#include "net/io.c"

#include "config/load.h"
#include "config/node.h"
#include "net/h2/private.h"
#include "net/h2/rpc_private.h"
#include "net/http/http_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define SECOND UINT64_C(1000000000)

enum {
	RAW = 1,
	UNREAD = 2,
	BUSY = 4,
	REPLY_LATE = 8,
	DRAIN = 16,
	SHORT = 32,
	END = 64,
	REFUSE_GROWTH = 128
};
enum {
	STEPS = 7,
	HELD_MAX = 512,
	KEPT_MAX = 64,
	FRAME_HEAD = 9,
	FRAME_MAX = 16384,
	FRAME_TYPES = 10,
	TIMER_MAX = 8
};
enum mode { INLINE, LATER, REFUSED, WRONG };

struct held { /* an accepted call, until its reply or its loss */
	struct rpc_call *call;
	bool has_message;
};

static uint64_t now = 1000 * SECOND;
static struct io io;
static struct rpc_server *server;
static struct h2_shard *shard;
static struct held *held[HELD_MAX];
static size_t holding;
static struct http_server *web;
static struct http_exchange *kept[KEPT_MAX];
static size_t keeping;
static int open_calls;
static int64_t budget;
static uint8_t flags;
static int peer = -1;            /* the client's end of the socket */
static uint8_t head[FRAME_HEAD]; /* the frame header that the client is reading */
static size_t head_len, frame_left;
static bool heard; /* the server has sent something */

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* Replaces the function of the C library, so that libuv also uses this time. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *t)
{
	if (id != CLOCK_MONOTONIC && id != CLOCK_MONOTONIC_COARSE && id != CLOCK_BOOTTIME)
		return (int)syscall(SYS_clock_gettime, id, t);
	*t = (struct timespec){ (time_t)(now / SECOND), (long)(now % SECOND) };
	return 0;
}

/* ---- the methods */

static void end_call(struct held *h)
{
	open_calls--;
	memory_free(h);
}

static void answer(struct held *h)
{
	static const uint8_t text[20000];
	struct rpc_call *call = h->call;
	size_t len = rpc_call_body(call)->len * 64;
	rpc_call_metadata(call);
	end_call(h);
	rpc_call_reply(call, NULL, (struct view){ text, len < sizeof text ? len : sizeof text });
}

static void reply_error(struct rpc_call *call)
{
	struct error err;
	error_set(&err, ERROR_BUSY, "the memory limit is reached: 100%% \x01");
	rpc_call_reply(call, &err, (struct view){ 0 });
}

static void on_headers(void *context, struct rpc_call *call)
{
	if (*(enum mode *)context == REFUSED) {
		reply_error(call);
		return;
	}
	struct held *h = memory_new(sizeof *h);
	h->call = call;
	rpc_call_metadata(call);
	rpc_call_set_user(call, h);
	rpc_call_accept(call);
	open_calls++;
}

static bool grow(void *context, struct rpc_call *call, size_t bytes, struct error *err)
{
	(void)context, (void)call;
	must(bytes > 0 && bytes <= (1 << 20));
	if (flags & REFUSE_GROWTH)
		return error_set(err, ERROR_TOO_LARGE, "it can never fit");
	return !(flags & BUSY) || error_set(err, ERROR_BUSY, "the memory limit is reached");
}

static void on_message(void *context, struct rpc_call *call)
{
	struct held *h = rpc_call_user(call);
	enum mode mode = *(enum mode *)context;
	must(!h->has_message);
	h->has_message = true;
	rpc_call_coding(call);
	if (mode == LATER && holding < HELD_MAX) {
		held[holding++] = h;
	} else if (mode == WRONG) {
		end_call(h);
		reply_error(call);
	} else {
		answer(h);
	}
}

static void on_lost(void *context, struct rpc_call *call, enum rpc_loss why)
{
	struct held *h = rpc_call_user(call);
	(void)context, (void)why;
	must(!h->has_message);
	end_call(h);
}

/* ---- plain HTTP */

static void take(void *context, struct http_exchange *x)
{
	(void)context;
	http_exchange_headers(x);
	http_exchange_accept(x, 1 << 20);
	open_calls++;
}

static void refuse(void *context, struct http_exchange *x)
{
	struct error err;
	(void)context;
	error_set(&err, ERROR_BUSY, "the memory limit is reached");
	http_exchange_refuse(x, &err);
}

static enum http_grow grow_body(void *context, struct http_exchange *x, struct http_growth *growth)
{
	must(growth->need > growth->room && growth->need <= growth->limit);
	if (!(flags & (REFUSE_GROWTH | BUSY))) {
		growth->room = growth->need;
		return HTTP_GROW_YES;
	}
	if (!(flags & REFUSE_GROWTH) && !growth->last)
		return HTTP_GROW_LATER;
	open_calls--;
	refuse(context, x);
	return HTTP_GROW_REFUSED;
}

static void answer_body(void *context, struct http_exchange *x, struct view body)
{
	(void)context;
	open_calls--;
	http_exchange_reply(x, &(struct http_reply){ .status = body.len ? 200 : 204,
						     .content_type = "text/plain",
						     .body = body });
}

static void keep_body(void *context, struct http_exchange *x, struct view body)
{
	if (keeping < KEPT_MAX)
		kept[keeping++] = x;
	else
		answer_body(context, x, body);
}

static void forget_body(void *context, struct http_exchange *x, bool too_large)
{
	(void)context, (void)x, (void)too_large;
	open_calls--;
}

static void answer_kept(void)
{
	while (keeping)
		answer_body(NULL, kept[--keeping], (struct view){ 0 });
}

/* Without a listener and a thread: only what its exchanges use. */
static void start_web(const struct log *log)
{
	static const struct http_route routes[] = {
		{ "/i", "GET,HEAD,POST", take, grow_body, answer_body, forget_body, NULL },
		{ "/l", "POST", take, grow_body, keep_body, forget_body, NULL },
		{ "/r", "POST", refuse, NULL, NULL, NULL, NULL },
	};
	static struct http_server_config config = { .read_timeout.ns = 60 * SECOND,
						    .write_timeout.ns = 10 * SECOND,
						    .min_body_rate = 100,
						    .keep_alives_enabled = true };
	static struct metric_series series;
	web = http_state_new(&(struct http_server_options){
		.config = &config, .routes = routes, .route_count = 3, .log = log });
	web->owed = memory_new(sizeof *web->owed);
	web->paused = &series;
	for (int i = 0; i < HTTP_MISDIRECTIONS; i++)
		web->misdirected[i] = &series;
}

static bool hold(void *context, int64_t bytes)
{
	(void)context;
	if (flags & SHORT && budget) /* the first charge, its own cost, is granted */
		return false;
	budget += bytes;
	return true;
}

static void release(void *context, int64_t bytes)
{
	(void)context;
	budget -= bytes;
}

static bool is_short(void *context)
{
	(void)context;
	return flags & SHORT;
}

/* ---- the server */

static void start_thread(void)
{
	static struct io_thread thread;
	thread.last = &thread.first;
	must(uv_loop_init(&thread.loop) == 0 &&
	     uv_async_init(&thread.loop, &thread.wake, run_posted) == 0);
	thread.wake.data = &thread;
	thread.running = pthread_self();
	pthread_mutex_init(&thread.lock, NULL);
	io = (struct io){ 1, &thread };
}

static void set_limits(struct h2_limits *limits)
{
	static const char text[] = "{max_header_bytes: 512, max_headers: 16, max_outbound_bytes: "
				   "32768}";
	struct error err = { 0 };
	struct node *node = config_parse("limits", text, strlen(text), &err);
	must(node && config_bind(&h2_limits_table, node, "limits", limits, &err));
	node_unref(&node);
}

static void start(void)
{
	static enum mode modes[] = { INLINE, LATER, REFUSED, WRONG };
	static const struct log log;
	const struct rpc_method methods[] = {
		{ "/f.F/I", on_headers, grow, on_message, on_lost, &modes[INLINE] },
		{ "/f.F/L", on_headers, grow, on_message, on_lost, &modes[LATER] },
		{ "/f.F/R", on_headers, NULL, on_message, on_lost, &modes[REFUSED] },
		{ "/f.F/E", on_headers, NULL, on_message, on_lost, &modes[WRONG] },
	};
	struct rpc_server_options options = {
		.h2 = { .endpoint = "127.0.0.1:0",
			.io = &io,
			.log = &log,
			.max_concurrent_streams = 20,
			.keepalive_time.ns = 2 * SECOND,
			.keepalive_timeout.ns = 50 * SECOND,
			.budget = { .hold = hold, .release = release, .is_short = is_short } },
		.message_limit = { 1 << 20, "max_recv_msg_size_mib", 1 },
		.methods = methods,
		.method_count = sizeof methods / sizeof *methods,
	};
	struct error err = { 0 };
	start_thread();
	start_web(&log);
	const struct h2_route plain = { NULL, "text/plain", &http_stream_service, web };
	options.h2.routes = &plain;
	options.h2.route_count = 1;
	set_limits(&options.h2.limits);
	server = rpc_server_start(&options, &err);
	must(server != NULL);
	shard = server->h2->shards;
}

static struct h2_connection *connect_client(void)
{
	struct h2_server *s = server->h2;
	const struct hash128 key = peer_key_of_address("192.0.2.1");
	int fds[2], small = 1;
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
	if (flags & UNREAD)
		setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	must(peer_count_add(s->peers, key, 1) && hold(NULL, h2_server_connection_cost(s)));
	atomic_fetch_add(&shard->count, 1);
	atomic_fetch_add(&s->connections, 1);
	h2_server_entered(s);
	peer = fds[1];
	h2_connection_open(shard, fds[0], "192.0.2.1", key);
	return shard->connections;
}

static bool is_open(const struct h2_connection *c)
{
	return c && shard->connections == c;
}

/* ---- what happens */

/* The client must receive frames of types and sizes that it is required to know (RFC 9113, section
 * 4). */
static void check_frames(const uint8_t *at, size_t len)
{
	while (len) {
		size_t skip = frame_left < len ? frame_left : len;
		frame_left -= skip;
		at += skip;
		len -= skip;
		while (len && !frame_left && head_len < FRAME_HEAD) {
			head[head_len++] = *at++;
			len--;
		}
		if (head_len < FRAME_HEAD || frame_left)
			continue;
		frame_left = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
		must(frame_left <= FRAME_MAX && head[3] < FRAME_TYPES && !(head[5] & 0x80));
		head_len = 0;
	}
}

/* One answer of HTTP/1 in place of all frames, if the client has spoken HTTP/1. It has text of ours
 * alone. */
static void check_answer(const uint8_t *at, size_t len)
{
	static const char begin[] = "HTTP/1.1 400 Bad Request\r\n";
	must(flags & RAW && !heard && len >= sizeof begin - 1 && at[len - 1] == '\n');
	must(memcmp(at, begin, sizeof begin - 1) == 0);
}

static void read_all(void)
{
	static uint8_t buffer[65536];
	ssize_t len;
	while (peer >= 0 && (len = read(peer, buffer, sizeof buffer)) > 0) {
		if (!heard && buffer[0] == 'H')
			check_answer(buffer, (size_t)len);
		else
			check_frames(buffer, (size_t)len);
		heard = true;
	}
}

/* What epoll would report for the socket. */
static void wake_socket(struct h2_connection *c)
{
	if (is_open(c) && c->events)
		c->poll.poll_cb(&c->poll, 0, c->events);
}

/* A timer without work that is due again at once would be a busy loop. */
static void pass_time(struct h2_connection *c, uint64_t ns)
{
	now += ns;
	uv_update_time(&io.threads->loop);
	for (int i = 0; is_open(c) && uv_is_active((uv_handle_t *)&c->timer) &&
			!uv_timer_get_due_in(&c->timer);
	     i++) {
		must(i < TIMER_MAX);
		uv_timer_stop(&c->timer);
		c->timer.timer_cb(&c->timer);
	}
}

static void reply_held(size_t leave)
{
	while (holding > leave)
		answer(held[--holding]);
	if (!leave)
		answer_kept();
}

/* As from another thread: the replies stay posted until the next step or the end. */
static void post_replies(void)
{
	io.threads->running = 0;
	reply_held(0);
	io.threads->running = pthread_self();
}

static void hang_up(struct h2_connection *c)
{
	if (peer >= 0)
		close(peer);
	peer = -1;
	wake_socket(c);
}

static void act(struct h2_connection *c, int what)
{
	static const uint64_t times[] = { SECOND / 40, SECOND + SECOND / 10, 11 * SECOND,
					  61 * SECOND };
	switch (what) {
	case 1:
		reply_held(holding ? holding - 1 : 0);
		break;
	case 2:
		post_replies(), run_posted(&io.threads->wake);
		break;
	case 3:
		post_replies();
		break;
	case 4:
	case 5:
	case 6:
	case 7:
		pass_time(c, times[what - 4]);
		break;
	case 8:
		rpc_server_set_serving(server, !server->serving);
		break;
	case 9:
		flags ^= BUSY;
		break;
	case 10:
		read_all(), wake_socket(c);
		break;
	case 11:
		h2_connection_end(c, H2_AGE, false, now + 5 * SECOND);
		break;
	case 12:
		h2_connection_end(c, H2_AGE, true, 0);
		break;
	case 13:
		h2_shard_ask_to_close_idle(shard, H2_JUST_ANSWERED_NS, 0);
		run_posted(&io.threads->wake);
		break;
	case 14:
		flags ^= REFUSE_GROWTH;
		break;
	case 15:
		hang_up(c);
		break;
	default:
		break;
	}
}

static void send_client(struct h2_connection *c, const uint8_t *at, size_t len)
{
	if (peer >= 0 && len && send(peer, at, len, MSG_NOSIGNAL) > 0)
		wake_socket(c);
	if (!(flags & UNREAD))
		read_all();
}

static void talk(struct h2_connection *c, const uint8_t *steps, const uint8_t *at, size_t len)
{
	/* and its NUL byte */
	static const uint8_t preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
	static const size_t cuts[16] = { SIZE_MAX, 1,  2,  5,   8,   9,   10,   14,
					 22,       40, 64, 100, 200, 500, 1000, 4000 };
	if (!(flags & RAW))
		send_client(c, preface, sizeof preface);
	for (size_t i = 0; i < STEPS && is_open(c); i++) {
		size_t part = cuts[steps[i] & 15] < len ? cuts[steps[i] & 15] : len;
		send_client(c, at, part);
		at += part;
		len -= part;
		if (is_open(c))
			act(c, steps[i] >> 4);
	}
	if (is_open(c))
		send_client(c, at, len);
}

/* A drain ends, regardless of what the client does. */
static void end_connection(struct h2_connection *c)
{
	if (is_open(c) && flags & DRAIN) {
		h2_connection_end(c, H2_REASON_NONE, true, now + 3 * SECOND);
		pass_time(c, 4 * SECOND);
		pass_time(c, 2 * SECOND);
		must(!is_open(c));
	} else if (is_open(c) && flags & END) {
		h2_connection_abort(c);
	}
	hang_up(c);
	pass_time(c, 2 * SECOND);
}

/* Checks that nothing of it is left. */
static void check_empty(void)
{
	const struct hash128 key = peer_key_of_address("192.0.2.1");
	for (int i = 0; i < 4 && server->h2->open > 1; i++)
		uv_run(&io.threads->loop, UV_RUN_NOWAIT);
	must(server->h2->open == 1 && !shard->connections && !shard->idle_first &&
	     !shard->idle_last);
	must(!shard->count && !server->h2->connections && !budget && !open_calls);
	must(web->holds == 1 && !*web->owed);
	must(!server->accepted && !server->watchers && !server->threads->watchers &&
	     !io.threads->first);
	must(peer_count_add(server->h2->peers, key, 1));
	peer_count_remove(server->h2->peers, key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len < 1 + STEPS)
		return 0;
	if (!server)
		start();
	flags = data[0];
	head_len = frame_left = 0;
	heard = false;
	struct h2_connection *c = connect_client();
	talk(c, data + 1, data + 1 + STEPS, len - 1 - STEPS);
	if (!(flags & REPLY_LATE))
		reply_held(0);
	run_posted(&io.threads->wake);
	end_connection(c);
	post_replies();
	run_posted(&io.threads->wake);
	rpc_server_set_serving(server, true);
	check_empty();
	return 0;
}
