/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/bench/peers/clock.h"
#include "tests/bench/peers/http1.h"

/*
 * A sender of OTLP requests that uses little CPU, on one thread, even with thousands of
 * connections. It sends over gRPC, or, with -u and -m, over HTTP/1.1 to this path with this media
 * type.
 *
 *	load -p PORT [-c CALLS] [-n CONNECTIONS] [-a CONNECTIONS] [-z] [-u PATH -m MEDIA] [FILE...]
 *
 * Opens the connections: with -a, this number from each address of 127.0.1.0/24; without it, all
 * from 127.0.0.1. Prints "ready" when the server's SETTINGS have arrived on all of them. For each
 * line "REQUESTS RATE" of its input, it then makes a run and prints a line of JSON. It ends at the
 * end of its input.
 *
 * A run sends the files in turn, from the first on, until this number of requests was accepted.
 * With a rate of 0, it sends as fast as possible with CALLS in flight, each slot on its own
 * connection if there are enough. Otherwise, each request is sent at its own time, even if replies
 * are late, and the latency counts from that time. -z: the files are compressed with gzip, and sent
 * as they are. A refused request (UNAVAILABLE, RESOURCE_EXHAUSTED, REFUSED_STREAM; over HTTP 429 or
 * 503) is retried 20 ms later, and its latency continues. Any other failure ends the program with
 * exit status 1.
 *
 * The JSON contains the start of the run (CLOCK_MONOTONIC), its duration in seconds, CPU seconds of
 * this process, bytes, refusals, and the latency (median and 99th percentile, milliseconds).
 */
enum {
	PREFIX = 5, /* of a gRPC message: a flag and its length */
	OUT_MAX = 256 << 10,
	FRAME_MAX = 16384 + 9,
	EVENTS = 256,
	ADDRESSES_MAX = 254,
	GREETING_S = 30,
	RETRY_MS = 20,
	UNAVAILABLE = 14,
	RESOURCE_EXHAUSTED = 8
};

struct body {
	uint8_t *data; /* including the prefix */
	size_t len;
};

struct link {
	int fd;
	nghttp2_session *session;
	uint8_t *rest; /* bytes that the kernel did not accept */
	size_t rest_len;
	bool greeted, dirty, watched; /* watched: waits until the socket is writable */
	struct call *call;            /* of HTTP/1.1 */
	struct http1_reply reply;
};

/* A slot for a call, which is reused when the call has ended. */
struct call {
	struct link *link;
	int number;        /* of the request: its position in the sequence */
	int status;        /* of gRPC; -1: not received yet */
	double due;        /* when it should have been sent */
	size_t sent;       /* of the body */
	struct call *next; /* in its queue */
};

/* First in, first out. */
struct queue {
	struct call *first, *last;
};

static struct options {
	int port, calls, connections, per_address;
	bool zipped;
	const char *path, *media; /* of HTTP/1.1; NULL: gRPC */
} options = { .calls = 8, .connections = 1 };

static struct load {
	struct body *bodies;
	struct link *links, **dirty;
	int body_count, dirty_count, greeted, poll;
	struct queue free, refused; /* refused: waiting for a retry */
	uint8_t out[OUT_MAX];
} load;

static struct run {
	int requests, begun, taken, refusals;
	double rate, start, cpu, retry_at;
	size_t bytes;
	double *latencies;
} run;

__attribute__((noreturn)) static void die(const char *what, const char *why)
{
	fprintf(stderr, "load: %s: %s\n", what, why);
	exit(1);
}

static struct body read_body(const char *path)
{
	FILE *file = fopen(path, "rb");
	if (!file || fseek(file, 0, SEEK_END))
		die(path, "cannot be read");
	size_t size = (size_t)ftell(file);
	rewind(file);
	struct body body = { memory_new(PREFIX + size), PREFIX + size };
	uint32_t length = htonl((uint32_t)size);
	body.data[0] = options.zipped;
	memcpy(body.data + 1, &length, sizeof length);
	if (fread(body.data + PREFIX, 1, size, file) != size)
		die(path, "cannot be read");
	fclose(file);
	return body;
}

static void push(struct queue *q, struct call *c)
{
	c->next = NULL;
	*(q->first ? &q->last->next : &q->first) = c;
	q->last = c;
}

/* NULL if there is none. */
static struct call *pop(struct queue *q)
{
	struct call *c = q->first;
	if (c)
		q->first = c->next;
	return c;
}

static const struct body *body_of(const struct call *c)
{
	return &load.bodies[c->number % load.body_count];
}

/* ---- calls */

static ssize_t give(nghttp2_session *session, int32_t stream, uint8_t *to, size_t room,
		    uint32_t *flags, nghttp2_data_source *source, void *context)
{
	(void)session, (void)stream, (void)context;
	struct call *c = source->ptr;
	const struct body *body = body_of(c);
	size_t left = body->len - c->sent, n = left < room ? left : room;
	memcpy(to, body->data + c->sent, n);
	c->sent += n;
	if (c->sent == body->len)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

#define HEADER(name, value) \
	{ \
		(uint8_t *)(name), (uint8_t *)(value), sizeof(name) - 1, sizeof(value) - 1, \
			NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE \
	}

static void mark_dirty(struct link *l)
{
	if (!l->dirty)
		load.dirty[load.dirty_count++] = l;
	l->dirty = true;
}

static void send_http(struct call *c)
{
	char head[HTTP1_HEAD_MAX];
	struct link *l = c->link;
	const struct body *body = body_of(c);
	size_t len = body->len - PREFIX;
	size_t head_len = http1_head(head, options.path, options.media, options.zipped, len);
	if (l->call || l->rest_len)
		die("usage", "HTTP/1.1 needs a connection for each call, and no rate");
	l->call = c;
	l->rest_len = head_len + len;
	l->rest = memory_new(l->rest_len);
	memcpy(l->rest, head, head_len);
	memcpy(l->rest + head_len, body->data + PREFIX, len);
	mark_dirty(l);
}

static void send_request(struct call *c)
{
	if (options.path) {
		send_http(c);
		return;
	}
	static const nghttp2_nv headers[] = {
		HEADER(":method", "POST"),
		HEADER(":scheme", "http"),
		HEADER(":path", EXPORT_METHOD),
		HEADER(":authority", "127.0.0.1"),
		HEADER("content-type", "application/grpc"),
		HEADER("te", "trailers"),
		HEADER("user-agent", "load"),
		HEADER("grpc-encoding", "gzip"),
	};
	size_t count = sizeof headers / sizeof *headers - !options.zipped;
	nghttp2_data_provider body = { .source.ptr = c, .read_callback = give };
	c->status = -1;
	c->sent = 0;
	if (nghttp2_submit_request(c->link->session, NULL, headers, count, &body, c) < 0)
		die("call", "cannot be started");
	mark_dirty(c->link);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *context)
{
	(void)flags, (void)context;
	struct call *c = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	if (c && name_len == strlen("grpc-status") && !memcmp(name, "grpc-status", name_len) &&
	    value_len < 3)
		c->status = (int)strtol((const char *)value, NULL, 10);
	return 0;
}

static void end_call(struct call *c, bool taken, bool refused, unsigned error)
{
	if (taken) {
		run.latencies[run.taken++] = now() - c->due;
		run.bytes += body_of(c)->len - PREFIX;
	} else if (refused) {
		run.refusals++;
		run.retry_at = now() + RETRY_MS * 1e-3;
	} else {
		fprintf(stderr, "load: a call ended with status %d, error %u\n", c->status, error);
		exit(1);
	}
	push(refused ? &load.refused : &load.free, c);
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t error, void *context)
{
	(void)context;
	struct call *c = nghttp2_session_get_stream_user_data(session, stream);
	end_call(c, c->status == 0,
		 c->status == UNAVAILABLE || c->status == RESOURCE_EXHAUSTED ||
			 error == NGHTTP2_REFUSED_STREAM,
		 error);
	return 0;
}

static void take_http(struct link *l, const uint8_t *data, size_t len)
{
	struct call *c = l->call;
	int status = http1_take(&l->reply, data, len);
	if (status < 0 || !c)
		die("connection", "the server breaks the protocol");
	if (!status)
		return;
	c->status = status;
	l->call = NULL;
	end_call(c, status == 200, status == 429 || status == 503, 0);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	(void)session;
	struct link *l = context;
	if (frame->hd.type == NGHTTP2_GOAWAY)
		die("connection", "the server said GOAWAY");
	if (frame->hd.type == NGHTTP2_SETTINGS && !(frame->hd.flags & NGHTTP2_FLAG_ACK) &&
	    !l->greeted) {
		l->greeted = true;
		load.greeted++;
	}
	return 0;
}

/* ---- connections */

/* The bytes that the session has to send, as far as they fit. */
static size_t collect(struct link *l)
{
	size_t len = 0;
	while (l->session && len + FRAME_MAX <= OUT_MAX) {
		const uint8_t *data;
		ssize_t n = nghttp2_session_mem_send(l->session, &data);
		if (n < 0 || (size_t)n > OUT_MAX - len)
			die("connection", "cannot make frames");
		if (n == 0)
			break;
		memcpy(load.out + len, data, (size_t)n);
		len += (size_t)n;
	}
	return len;
}

static void watch(struct link *l, bool room)
{
	if (l->watched == room)
		return;
	struct epoll_event event = { .events = EPOLLIN | (room ? EPOLLOUT : 0), .data.ptr = l };
	l->watched = room;
	if (epoll_ctl(load.poll, EPOLL_CTL_MOD, l->fd, &event))
		die("epoll", strerror(errno));
}

/* Returns the number of bytes that the kernel accepted. */
static size_t put(struct link *l, const uint8_t *data, size_t len)
{
	ssize_t n = send(l->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN)
		die("connection", strerror(errno));
	return n < 0 ? 0 : (size_t)n;
}

static bool put_rest(struct link *l)
{
	size_t n = l->rest_len ? put(l, l->rest, l->rest_len) : 0;
	l->rest_len -= n;
	if (l->rest_len) {
		memmove(l->rest, l->rest + n, l->rest_len);
		return false;
	}
	memory_free(l->rest);
	l->rest = NULL;
	return true;
}

static void flush(struct link *l)
{
	l->dirty = false;
	for (size_t len; put_rest(l) && (len = collect(l));) {
		size_t n = put(l, load.out, len);
		if (n < len) {
			l->rest_len = len - n;
			l->rest = memory_new(l->rest_len);
			memcpy(l->rest, load.out + n, l->rest_len);
			break;
		}
	}
	watch(l, l->rest_len > 0);
}

static void take(struct link *l)
{
	static uint8_t in[65536];
	ssize_t n = recv(l->fd, in, sizeof in, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0)
		die("connection", n ? strerror(errno) : "closed by the server");
	if (options.path) {
		take_http(l, in, (size_t)n);
		return;
	}
	if (nghttp2_session_mem_recv(l->session, in, (size_t)n) != n)
		die("connection", "the server breaks the protocol");
	mark_dirty(l);
}

static void flush_all(void)
{
	for (int i = 0; i < load.dirty_count; i++)
		flush(load.dirty[i]);
	load.dirty_count = 0;
}

/* One turn: sends pending bytes, waits at most `wait` seconds, and reads what has arrived. */
static void turn(double wait)
{
	struct epoll_event events[EVENTS];
	struct timespec timeout = { (time_t)wait, (long)((wait - (double)(time_t)wait) * 1e9) };
	flush_all();
	int count = epoll_pwait2(load.poll, events, EVENTS, &timeout, NULL);
	for (int i = 0; i < count; i++) {
		struct link *l = events[i].data.ptr;
		if (events[i].events & ~EPOLLOUT)
			take(l);
		if (events[i].events & EPOLLOUT)
			mark_dirty(l);
	}
}

static int connected(int number)
{
	struct sockaddr_in own = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) },
			   there = own;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	there.sin_port = htons((uint16_t)options.port);
	if (options.per_address)
		own.sin_addr.s_addr =
			htonl((INADDR_LOOPBACK | 256) + (uint32_t)(number / options.per_address));
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (bind(fd, (struct sockaddr *)&own, sizeof own) ||
	    connect(fd, (struct sockaddr *)&there, sizeof there))
		die("connect", strerror(errno));
	return fd;
}

static void open_link(struct link *l, int number, const nghttp2_session_callbacks *callbacks)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = l };
	l->fd = connected(number);
	if (options.path) {
		l->greeted = true;
		load.greeted++;
	}
	if ((!options.path && (nghttp2_session_client_new(&l->session, callbacks, l) ||
			       nghttp2_submit_settings(l->session, NGHTTP2_FLAG_NONE, NULL, 0))) ||
	    epoll_ctl(load.poll, EPOLL_CTL_ADD, l->fd, &event))
		die("connection", "cannot be set up");
	mark_dirty(l);
	flush_all();
}

static void open_links(void)
{
	nghttp2_session_callbacks *callbacks;
	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	load.poll = epoll_create1(EPOLL_CLOEXEC);
	load.links = memory_array((size_t)options.connections, sizeof *load.links);
	load.dirty = memory_array((size_t)options.connections, sizeof(struct link *));
	double end = now() + GREETING_S;
	for (int i = 0; i < options.connections; i++) {
		open_link(&load.links[i], i, callbacks);
		while (load.greeted < i &&
		       now() < end) /* so that the backlog of the server does not overflow */
			turn(.1);
	}
	while (load.greeted < options.connections && now() < end)
		turn(.1);
	if (load.greeted < options.connections)
		die("connection", "the server does not greet");
	flush_all();
	nghttp2_session_callbacks_del(callbacks);
}

/* ---- a run */

static struct call *new_call(int connection)
{
	struct call *c = memory_new(sizeof *c);
	c->link = &load.links[connection];
	return c;
}

static double due(int number)
{
	return run.rate > 0 ? run.start + number / run.rate : now();
}

static void begin(struct call *c)
{
	c->number = run.begun++;
	c->due = due(c->number);
	send_request(c);
}

/* Sends the requests that may be sent now. */
static void send_some(void)
{
	while (load.refused.first && now() >= run.retry_at)
		send_request(pop(&load.refused));
	while (run.begun < run.requests &&
	       (run.rate > 0 ? due(run.begun) <= now() : load.free.first && !load.refused.first)) {
		struct call *c = pop(&load.free);
		begin(c ? c : new_call(run.begun % options.connections));
	}
}

static double pause_s(void)
{
	double until = now() + 1;
	if (load.refused.first)
		until = run.retry_at;
	else if (run.rate > 0 && run.begun < run.requests)
		until = due(run.begun);
	double wait = until - now();
	return wait > 0 ? wait : 0;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void print(void)
{
	double seconds = now() - run.start;
	qsort(run.latencies, (size_t)run.taken, sizeof *run.latencies, ascending);
	printf("{\"began\": %.6f, \"seconds\": %.6f, \"cpu\": %.6f, \"bytes\": %zu, "
	       "\"refused\": %d, \"p50_ms\": %.3f, \"p99_ms\": %.3f}\n",
	       run.start, seconds, cpu_used() - run.cpu, run.bytes, run.refusals,
	       run.latencies[run.taken / 2] * 1e3, run.latencies[run.taken * 99 / 100] * 1e3);
	fflush(stdout);
}

static void run_once(int requests, double rate)
{
	run = (struct run){ .requests = requests, .rate = rate, .start = now(), .cpu = cpu_used() };
	run.latencies = memory_array((size_t)requests, sizeof *run.latencies);
	while (run.taken < requests) {
		send_some();
		turn(pause_s());
	}
	flush_all();
	print();
	memory_free(run.latencies);
}

static void parse(int argc, char **argv)
{
	for (int option; (option = getopt(argc, argv, "p:c:n:a:zu:m:")) != -1;) {
		switch (option) {
		case 'p':
			options.port = (int)strtol(optarg, NULL, 10);
			break;
		case 'c':
			options.calls = (int)strtol(optarg, NULL, 10);
			break;
		case 'n':
			options.connections = (int)strtol(optarg, NULL, 10);
			break;
		case 'a':
			options.per_address = (int)strtol(optarg, NULL, 10);
			break;
		case 'z':
			options.zipped = true;
			break;
		case 'u':
			options.path = optarg;
			break;
		case 'm':
			options.media = optarg;
			break;
		default:
			die("usage",
			    "load -p PORT [-c CALLS] [-n CONNECTIONS] [-a CONNECTIONS] [-z] "
			    "[-u PATH -m MEDIA] [FILE...]");
		}
	}
	if (!options.path != !options.media || options.connections < 1 || options.calls < 1 ||
	    options.per_address < 0 ||
	    (options.per_address && options.connections > options.per_address * ADDRESSES_MAX))
		die("usage", "a number is out of range");
}

static void raise_descriptor_limit(void)
{
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
	char line[128], *end;
	parse(argc, argv);
	raise_descriptor_limit();
	load.body_count = argc - optind;
	load.bodies = memory_array((size_t)load.body_count + 1, sizeof *load.bodies);
	for (int i = 0; i < load.body_count; i++)
		load.bodies[i] = read_body(argv[optind + i]);
	open_links();
	for (int i = 0; i < options.calls; i++)
		push(&load.free, new_call(i % options.connections));
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		int requests = (int)strtol(line, &end, 10);
		if (requests < 1 || !load.body_count)
			die("input", "requests and a rate are wanted, and files to send");
		run_once(requests, strtod(end, NULL));
	}
	return 0;
}
