/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <unistd.h>

#include "base/memory.h"
#include "net/http/http_internal.h"

/* A socket on its way to the I/O thread, and there until the library gets it. */
struct http_delivery {
	struct io_post post; /* first */
	struct http_delivery *next;
	struct http_loop *loop;
	int socket;
	struct http_origin origin;
};

enum {
	/* The library may have something to do in as many turns without calling back. */
	SILENT_TURNS_MAX = 8,
	/* Each turn gives the library as many sockets, and lets as many handshakes continue: about
	 * 2.5 ms each with RSA of 2048 bits. */
	ARRIVALS_PER_TURN = 64,
	HANDSHAKES_PER_TURN = 4
};

/* The library closes the socket if it cannot take it, which may be after it has reported the
 * connection and its end. */
static void add(struct http_loop *loop, int socket, const struct http_origin *origin)
{
	const struct sockaddr *address = (const void *)&origin->address;
	if (loop->thread)
		loop->called_back = false;
	if (MHD_add_connection(loop->library, socket, address, sizeof *origin) != MHD_YES &&
	    !loop->called_back)
		loop->lost(loop, address);
}

static struct http_delivery *next_arrival(struct http_loop *loop)
{
	struct http_delivery *d = loop->first;
	loop->first = d->next;
	if (!loop->first)
		loop->last = &loop->first;
	return d;
}

static void add_arrivals(struct http_loop *loop)
{
	for (int i = 0; i < ARRIVALS_PER_TURN && loop->first; i++) {
		struct http_delivery *d = next_arrival(loop);
		add(loop, d->socket, &d->origin);
		memory_free(d);
	}
}

static bool may_shake_hands(struct http_connection *c)
{
	struct http_loop *loop = c->loop;
	if (!loop->thread)
		return true;
	loop->called_back = true;
	if (!loop->held && loop->handshakes < HANDSHAKES_PER_TURN) {
		loop->handshakes++;
		return true;
	}
	*loop->last_held = c;
	loop->last_held = &c->next_held;
	MHD_suspend_connection(c->mhd);
	return false;
}

/* The library continues their handshakes when it runs next. */
static void release_held(struct http_loop *loop, int max)
{
	struct http_connection *c;
	while (loop->handshakes < max && (c = loop->held)) {
		loop->held = c->next_held;
		c->next_held = NULL;
		MHD_resume_connection(c->mhd);
		loop->handshakes++;
	}
	if (!loop->held)
		loop->last_held = &loop->held;
}

/*
 * The library notices events once, and keeps those that it has not used yet: it then wants to run
 * again at once. It wants the same while a TLS handshake waits for the client, or a line of a chunk
 * does not fit into its buffer. It then gets nothing done, and calls nothing back.
 */
static enum io_more run(void *context)
{
	struct http_loop *loop = context;
	MHD_UNSIGNED_LONG_LONG ms;
	loop->handshakes = 0;
	add_arrivals(loop);
	release_held(loop, HANDSHAKES_PER_TURN);
	loop->called_back = loop->handshakes;
	MHD_run(loop->library);
	bool again = MHD_get_timeout(loop->library, &ms) == MHD_YES && ms == 0;
	http_stall_turn(&loop->stalls, again);
	if (loop->first || loop->held)
		return IO_AGAIN;
	if (!again) {
		loop->silent_turns = 0;
		return IO_DONE;
	}
	if (loop->called_back)
		loop->silent_turns = 0;
	else if (loop->silent_turns < SILENT_TURNS_MAX)
		loop->silent_turns++;
	return loop->silent_turns < SILENT_TURNS_MAX ? IO_AGAIN : IO_LATER;
}

struct start {
	struct http_loop *loop;
	struct error *err;
};

static void watch(void *argument)
{
	struct start *start = argument;
	struct http_loop *loop = start->loop;
	int fd = MHD_get_daemon_info(loop->library, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	loop->watch = io_watch_new(loop->thread, fd, run, loop, start->err);
}

bool http_loop_start(struct http_loop *loop, struct error *err)
{
	struct start start = { loop, err };
	loop->last = &loop->first;
	loop->last_held = &loop->held;
	if (!loop->thread)
		return true;
	io_call(loop->thread, watch, &start);
	return loop->watch != NULL;
}

static void stop(void *argument)
{
	struct http_loop *loop = argument;
	io_watch_unref(&loop->watch);
	release_held(loop, INT_MAX);
	MHD_stop_daemon(loop->library);
	while (loop->first) {
		struct http_delivery *d = next_arrival(loop);
		close(d->socket);
		memory_free(d);
	}
}

void http_loop_stop(struct http_loop *loop)
{
	if (!loop->library)
		return;
	if (loop->thread)
		io_call(loop->thread, stop, loop);
	else
		stop(loop);
	loop->library = NULL;
}

static void suspend(struct http_connection *c)
{
	MHD_suspend_connection(c->mhd);
}

static void resume_here(struct io_post *post)
{
	struct http_connection *c =
		(struct http_connection *)((char *)post - offsetof(struct http_connection, post));
	MHD_resume_connection(c->mhd);
	io_watch_again(c->loop->watch);
}

/* The library looks for resumed connections when it runs next. Only on its own thread, it has a
 * wake-up descriptor that this writes to. */
static void resume(struct http_connection *c)
{
	c->post.run = resume_here;
	if (c->loop->thread)
		io_post(c->loop->thread, &c->post);
	else
		MHD_resume_connection(c->mhd);
}

void http_loop_connect(struct http_connection *c)
{
	c->suspend = suspend;
	c->resume = resume;
	c->may_shake_hands = may_shake_hands;
}

static void arrive(struct io_post *post)
{
	struct http_delivery *d = (struct http_delivery *)post;
	*d->loop->last = d;
	d->loop->last = &d->next;
	io_watch_again(d->loop->watch);
}

void http_loop_add(struct http_loop *loop, int socket, const struct http_origin *origin)
{
	if (!loop->thread) {
		add(loop, socket, origin);
		return;
	}
	struct http_delivery *d = memory_new(sizeof *d);
	d->post.run = arrive;
	d->loop = loop;
	d->socket = socket;
	d->origin = *origin;
	io_post(loop->thread, &d->post);
}
