/* SPDX-License-Identifier: Apache-2.0 */
#include "net/io.h"

#include "base/memory.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <uv.h>

struct io_buffer {
	uint8_t *at; /* made when first asked for */
	size_t size;
};

struct io_thread {
	uv_loop_t loop;
	uv_async_t wake;
	uv_check_t check; /* the end of a turn */
	size_t turn_bytes;
	pthread_t thread;
	_Atomic pthread_t running; /* 0: not yet */
	const char *name;
	uint32_t index;
	pthread_mutex_t lock; /* guards first, last */
	struct io_post *first, **last;
	_Atomic bool stopping;
	struct io_buffer read, write;
};

struct io {
	uint32_t count; /* of each kind */
	struct io_thread *threads;
	uint32_t running;                /* of all kinds */
	_Atomic uint32_t turn[IO_KINDS]; /* see io_least_busy */
};

struct sync {
	struct io_post post;
	void (*run)(void *argument);
	void *argument;
	pthread_mutex_t lock; /* guards done */
	pthread_cond_t wake;
	bool done;
};

static void close_handles(struct io_thread *t)
{
	uv_close((uv_handle_t *)&t->wake, NULL);
	uv_close((uv_handle_t *)&t->check, NULL);
}

static void run_posted(uv_async_t *async)
{
	struct io_thread *t = async->data;
	pthread_mutex_lock(&t->lock);
	struct io_post *post = t->first;
	t->first = NULL;
	t->last = &t->first;
	pthread_mutex_unlock(&t->lock);
	while (post) {
		struct io_post *next = post->next;
		post->run(post);
		post = next;
	}
	if (atomic_load(&t->stopping) && !uv_is_closing((uv_handle_t *)&t->wake))
		close_handles(t);
}

static void end_turn(uv_check_t *check)
{
	((struct io_thread *)check->data)->turn_bytes = 0;
}

static void *run_thread(void *argument)
{
	struct io_thread *t = argument;
	atomic_store(&t->running, pthread_self());
	pthread_setname_np(pthread_self(), t->name);
	uv_run(&t->loop, UV_RUN_DEFAULT);
	return NULL;
}

static bool thread_init(struct io_thread *t, const char *name, uint32_t index, struct error *err)
{
	t->name = name;
	t->index = index;
	t->last = &t->first;
	int code = uv_loop_init(&t->loop);
	if (code)
		return error_set(err, ERROR_INTERNAL, "cannot create an event loop: %s",
				 uv_strerror(code));
	code = uv_async_init(&t->loop, &t->wake, run_posted);
	if (code) {
		uv_loop_close(&t->loop);
		return error_set(err, ERROR_INTERNAL,
				 "cannot create an event loop's wake-up "
				 "handle: %s",
				 uv_strerror(code));
	}
	t->wake.data = t->check.data = t;
	uv_check_init(&t->loop, &t->check);
	uv_check_start(&t->check, end_turn);
	uv_unref((uv_handle_t *)&t->check);
	pthread_mutex_init(&t->lock, NULL);
	if (thread_start(&t->thread, run_thread, t, err))
		return true;
	close_handles(t);
	uv_run(&t->loop, UV_RUN_DEFAULT);
	uv_loop_close(&t->loop);
	pthread_mutex_destroy(&t->lock);
	return false;
}

struct io *io_start(uint32_t count, struct error *err)
{
	static const char *const names[] = { [IO_HTTP_2] = "io", [IO_HTTP_1] = "io-http1" };
	struct io *io = memory_new(sizeof *io);
	bool ok = true;
	io->count = count;
	io->threads = memory_array((size_t)IO_KINDS * count, sizeof *io->threads);
	while (ok && io->running < IO_KINDS * count) {
		uint32_t i = io->running;
		ok = thread_init(&io->threads[i], names[i / count], i, err);
		io->running += ok;
	}
	if (!ok)
		io_stop(&io);
	return io;
}

static void thread_stop(struct io_thread *t)
{
	atomic_store(&t->stopping, true);
	uv_async_send(&t->wake);
	pthread_join(t->thread, NULL);
	uv_loop_close(&t->loop);
	pthread_mutex_destroy(&t->lock);
	memory_free(t->read.at);
	memory_free(t->write.at);
}

void io_stop(struct io **slot)
{
	struct io *io = *slot;
	*slot = NULL;
	if (!io)
		return;
	for (uint32_t i = 0; i < io->running; i++)
		thread_stop(&io->threads[i]);
	memory_free(io->threads);
	memory_free(io);
}

uint32_t io_count(const struct io *io)
{
	return io->count;
}

struct io_thread *io_thread_at(struct io *io, enum io_kind kind, uint32_t index)
{
	return &io->threads[kind * io->count + index];
}

uint32_t io_least_busy(struct io *io, enum io_kind kind,
		       int64_t (*load)(const void *context, uint32_t index), const void *context)
{
	uint32_t first = atomic_fetch_add(&io->turn[kind], 1) % io->count, best = first;
	int64_t least = load(context, first);
	for (uint32_t i = 1; i < io->count; i++) {
		uint32_t index = (first + i) % io->count;
		int64_t found = load(context, index);
		if (found < least) {
			best = index;
			least = found;
		}
	}
	return best;
}

uint32_t io_thread_index(const struct io_thread *t)
{
	return t->index;
}

bool io_here(const struct io_thread *t)
{
	return atomic_load(&t->running) == pthread_self();
}

size_t io_turn_bytes(const struct io_thread *t)
{
	return t->turn_bytes;
}

void io_turn_count(struct io_thread *t, size_t bytes)
{
	t->turn_bytes += bytes;
}

struct uv_loop_s *io_loop(struct io_thread *t)
{
	return &t->loop;
}

void io_post(struct io_thread *t, struct io_post *post)
{
	post->next = NULL;
	pthread_mutex_lock(&t->lock);
	bool asleep = !t->first;
	*t->last = post;
	t->last = &post->next;
	pthread_mutex_unlock(&t->lock);
	if (asleep)
		uv_async_send(&t->wake);
}

static void run_sync(struct io_post *post)
{
	struct sync *sync = (struct sync *)post;
	sync->run(sync->argument);
	pthread_mutex_lock(&sync->lock);
	sync->done = true;
	pthread_cond_signal(&sync->wake);
	pthread_mutex_unlock(&sync->lock);
}

void io_call(struct io_thread *t, void (*run)(void *argument), void *argument)
{
	struct sync sync = { .post.run = run_sync,
			     .run = run,
			     .argument = argument,
			     .lock = PTHREAD_MUTEX_INITIALIZER,
			     .wake = PTHREAD_COND_INITIALIZER };
	if (io_here(t)) {
		run(argument);
		return;
	}
	io_post(t, &sync.post);
	pthread_mutex_lock(&sync.lock);
	while (!sync.done)
		pthread_cond_wait(&sync.wake, &sync.lock);
	pthread_mutex_unlock(&sync.lock);
	pthread_cond_destroy(&sync.wake);
	pthread_mutex_destroy(&sync.lock);
}

enum { LATER_MS = 2 };

struct io_watch {
	uv_poll_t poll;
	uv_idle_t more; /* active: the next turn does not wait, and calls `ready` */
	uv_timer_t later;
	enum io_more (*ready)(void *context);
	void *context;
	int open; /* handles */
};

static void call_ready(struct io_watch *w);

static void on_more(uv_idle_t *more)
{
	call_ready(more->data);
}

static void on_later(uv_timer_t *later)
{
	call_ready(later->data);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	(void)status, (void)events;
	call_ready(poll->data);
}

static void call_ready(struct io_watch *w)
{
	enum io_more more = w->ready(w->context);
	if (more == IO_AGAIN)
		uv_idle_start(&w->more, on_more);
	else
		uv_idle_stop(&w->more);
	if (more == IO_LATER)
		uv_timer_start(&w->later, on_later, LATER_MS, 0);
	else
		uv_timer_stop(&w->later);
}

void io_watch_again(struct io_watch *w)
{
	uv_idle_start(&w->more, on_more);
}

static void handle_closed(uv_handle_t *handle)
{
	struct io_watch *w = handle->data;
	if (!--w->open)
		memory_free(w);
}

struct io_watch *io_watch_new(struct io_thread *t, int fd, enum io_more (*ready)(void *context),
			      void *context, struct error *err)
{
	struct io_watch *w = memory_new(sizeof *w);
	int code = uv_poll_init(&t->loop, &w->poll, fd);
	if (code) {
		error_set(err, ERROR_INTERNAL, "cannot watch a descriptor: %s", uv_strerror(code));
		memory_free(w);
		return NULL;
	}
	w->ready = ready;
	w->context = context;
	w->poll.data = w->more.data = w->later.data = w;
	w->open = 3;
	uv_idle_init(&t->loop, &w->more);
	uv_timer_init(&t->loop, &w->later);
	uv_poll_start(&w->poll, UV_READABLE, on_readable);
	return w;
}

void io_watch_unref(struct io_watch **slot)
{
	struct io_watch *w = *slot;
	*slot = NULL;
	if (!w)
		return;
	uv_close((uv_handle_t *)&w->poll, handle_closed);
	uv_close((uv_handle_t *)&w->more, handle_closed);
	uv_close((uv_handle_t *)&w->later, handle_closed);
}

static uint8_t *of_size(struct io_buffer *buffer, size_t bytes)
{
	if (buffer->size < bytes) {
		memory_free(buffer->at);
		*buffer = (struct io_buffer){ memory_new(bytes), bytes };
	}
	return buffer->at;
}

uint8_t *io_read_buffer(struct io_thread *t, size_t bytes)
{
	return of_size(&t->read, bytes);
}

uint8_t *io_write_buffer(struct io_thread *t, size_t bytes)
{
	return of_size(&t->write, bytes);
}
