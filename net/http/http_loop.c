/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <unistd.h>

#include "base/memory.h"
#include "net/http/http_internal.h"

/* A socket on its way to the I/O thread. */
struct delivery {
	struct io_post post; /* first */
	struct http_loop *loop;
	int socket;
	struct http_origin origin;
};

/* The library may have something to do in as many turns without calling back. */
enum { SILENT_TURNS_MAX = 8 };

/*
 * The library notices events once, and keeps those that it has not used yet: it then wants to run
 * again at once. It wants the same while a TLS handshake waits for the client, or a line of a chunk
 * does not fit into its buffer. It then gets nothing done, and calls nothing back.
 */
static enum io_more run(void *context)
{
	struct http_loop *loop = context;
	MHD_UNSIGNED_LONG_LONG ms;
	loop->called_back = false;
	MHD_run(loop->library);
	if (MHD_get_timeout(loop->library, &ms) != MHD_YES || ms != 0) {
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
	if (!loop->thread)
		return true;
	io_call(loop->thread, watch, &start);
	return loop->watch != NULL;
}

static void stop(void *argument)
{
	struct http_loop *loop = argument;
	io_watch_unref(&loop->watch);
	MHD_stop_daemon(loop->library);
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

void http_loop_suspend(struct http_connection *c)
{
	MHD_suspend_connection(c->mhd);
}

static void resume(struct io_post *post)
{
	struct http_connection *c =
		(struct http_connection *)((char *)post - offsetof(struct http_connection, post));
	MHD_resume_connection(c->mhd);
	io_watch_again(c->loop->watch);
}

/* The library looks for resumed connections when it runs next. Only on its own thread, it has a
 * wake-up descriptor that this writes to. */
void http_loop_resume(struct http_connection *c)
{
	c->post.run = resume;
	if (c->loop->thread)
		io_post(c->loop->thread, &c->post);
	else
		MHD_resume_connection(c->mhd);
}

/* The library closes the socket if it cannot take it. On an I/O thread, that may be after it has
 * reported the connection and its end. */
static void add(struct http_loop *loop, int socket, const struct http_origin *origin)
{
	const struct sockaddr *address = (const void *)&origin->address;
	if (loop->thread)
		loop->called_back = false;
	if (MHD_add_connection(loop->library, socket, address, sizeof *origin) != MHD_YES &&
	    !loop->called_back)
		loop->lost(loop, address);
}

static void arrive(struct io_post *post)
{
	struct delivery *d = (struct delivery *)post;
	add(d->loop, d->socket, &d->origin);
	memory_free(d);
}

void http_loop_add(struct http_loop *loop, int socket, const struct http_origin *origin)
{
	if (!loop->thread) {
		add(loop, socket, origin);
		return;
	}
	struct delivery *d = memory_new(sizeof *d);
	d->post.run = arrive;
	d->loop = loop;
	d->socket = socket;
	d->origin = *origin;
	io_post(loop->thread, &d->post);
}
