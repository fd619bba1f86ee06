/* SPDX-License-Identifier: Apache-2.0 */
#include "net/loop.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "base/memory.h"

enum {
	ROUNDS_MAX = 16,
	POOL_THREADS = 4 /* as libuv has it */
};

struct post {
	struct post *next;
	void (*run)(void *argument);
	void *argument;
};

struct watcher {
	uv_signal_t uv;
	struct watcher *next;
	void (*caught)(void *argument, int number);
	void *argument;
};

struct loop {
	uv_loop_t uv;
	uv_async_t door;      /* the only handle that keeps the loop alive */
	pthread_mutex_t lock; /* guards first, last */
	struct post *first, **last;
	_Atomic pthread_t thread; /* 0: not running */
	_Atomic bool stopping;
	/* Loop thread: */
	unsigned working; /* loop_work not done yet */
	bool dispatching; /* on_door will look again before it returns */
	struct watcher *watchers;
};

struct loop_timer {
	uv_timer_t uv;
	void (*fire)(void *argument);
	void *argument;
};

struct loop_socket {
	uv_poll_t uv;
	int fd;
	unsigned watched; /* events */
	void (*ready)(void *argument, int fd, unsigned events);
	void *argument;
};

struct work {
	uv_work_t uv;
	struct loop *loop;
	void (*work)(void *argument);
	void (*done)(void *argument);
	void *argument;
};

bool loop_here(const struct loop *loop)
{
	return atomic_load(&loop->thread) == pthread_self();
}

static bool allowed(const struct loop *loop)
{
	pthread_t thread = atomic_load(&loop->thread);
	return !thread || thread == pthread_self();
}

static struct post *take_all(struct loop *loop)
{
	pthread_mutex_lock(&loop->lock);
	struct post *first = loop->first;
	loop->first = NULL;
	loop->last = &loop->first;
	pthread_mutex_unlock(&loop->lock);
	return first;
}

static bool nothing_posted(struct loop *loop)
{
	pthread_mutex_lock(&loop->lock);
	bool nothing = !loop->first;
	pthread_mutex_unlock(&loop->lock);
	return nothing;
}

static void stop_when_drained(struct loop *loop)
{
	if (atomic_load(&loop->stopping) && !loop->working && nothing_posted(loop))
		uv_stop(&loop->uv);
}

static bool run_posted(struct loop *loop)
{
	struct post *first = take_all(loop);
	for (struct post *post = first, *next; post; post = next) {
		next = post->next;
		post->run(post->argument);
		memory_free(post);
	}
	return first != NULL;
}

/* What posts post is run at once, without another wake-up; but timers and signals get their turn.
 */
static void on_door(uv_async_t *door)
{
	struct loop *loop = door->data;
	loop->dispatching = true;
	for (int round = 0; round < ROUNDS_MAX && run_posted(loop); round++)
		;
	loop->dispatching = false;
	if (!nothing_posted(loop))
		uv_async_send(door);
	stop_when_drained(loop);
}

static bool set_uv_error(struct error *err, const char *what, int code)
{
	return error_set(err, ERROR_INTERNAL, "cannot create %s: %s", what, uv_strerror(code));
}

struct loop *loop_new(struct error *err)
{
	struct loop *loop = memory_new(sizeof *loop);
	int code = uv_loop_init(&loop->uv);
	if (code) {
		set_uv_error(err, "the event loop", code);
		memory_free(loop);
		return NULL;
	}
	code = uv_async_init(&loop->uv, &loop->door, on_door);
	if (code) {
		set_uv_error(err, "the event loop's wake-up handle", code);
		uv_loop_close(&loop->uv);
		memory_free(loop);
		return NULL;
	}
	loop->door.data = loop;
	pthread_mutex_init(&loop->lock, NULL);
	loop->last = &loop->first;
	return loop;
}

static void free_watcher(uv_handle_t *handle)
{
	memory_free(handle->data);
}

void loop_unref(struct loop **slot)
{
	struct loop *loop = *slot;
	*slot = NULL;
	if (!loop)
		return;
	assert(!atomic_load(&loop->thread));
	for (struct watcher *w = loop->watchers, *next; w; w = next) {
		next = w->next;
		uv_close((uv_handle_t *)&w->uv, free_watcher);
	}
	uv_close((uv_handle_t *)&loop->door, NULL);
	uv_run(&loop->uv, UV_RUN_DEFAULT);
	int busy = uv_loop_close(&loop->uv);
	assert(!busy && "a timer outlives its loop");
	(void)busy;
	for (struct post *post = take_all(loop), *next; post; post = next) {
		next = post->next;
		memory_free(post);
	}
	pthread_mutex_destroy(&loop->lock);
	memory_free(loop);
}

void loop_run(struct loop *loop)
{
	assert(!atomic_load(&loop->thread));
	atomic_store(&loop->thread, pthread_self());
	do {
		uv_run(&loop->uv, UV_RUN_DEFAULT);
	} while (!nothing_posted(loop));
	atomic_store(&loop->stopping, false);
	atomic_store(&loop->thread, 0);
}

void loop_stop(struct loop *loop)
{
	atomic_store(&loop->stopping, true);
	uv_async_send(&loop->door);
}

void loop_post(struct loop *loop, void (*run)(void *argument), void *argument)
{
	struct post *post = memory_new(sizeof *post);
	post->run = run;
	post->argument = argument;
	pthread_mutex_lock(&loop->lock);
	bool asleep = !loop->first;
	*loop->last = post;
	loop->last = &post->next;
	pthread_mutex_unlock(&loop->lock);
	if (asleep && !(loop_here(loop) && loop->dispatching))
		uv_async_send(&loop->door);
}

struct call {
	void (*run)(void *argument);
	void *argument;
	pthread_mutex_t lock; /* guards done */
	pthread_cond_t wake;
	bool done;
};

static void run_call(void *argument)
{
	struct call *call = argument;
	call->run(call->argument);
	pthread_mutex_lock(&call->lock);
	call->done = true;
	pthread_cond_signal(&call->wake);
	pthread_mutex_unlock(&call->lock);
}

void loop_call(struct loop *loop, void (*run)(void *argument), void *argument)
{
	struct call call = { .run = run,
			     .argument = argument,
			     .lock = PTHREAD_MUTEX_INITIALIZER,
			     .wake = PTHREAD_COND_INITIALIZER };
	if (allowed(loop)) {
		run(argument);
		return;
	}
	loop_post(loop, run_call, &call);
	pthread_mutex_lock(&call.lock);
	while (!call.done)
		pthread_cond_wait(&call.wake, &call.lock);
	pthread_mutex_unlock(&call.lock);
	pthread_cond_destroy(&call.wake);
	pthread_mutex_destroy(&call.lock);
}

static void on_timer(uv_timer_t *uv)
{
	struct loop_timer *timer = uv->data;
	timer->fire(timer->argument);
}

struct loop_timer *loop_timer_new(struct loop *loop, void (*fire)(void *argument), void *argument)
{
	assert(allowed(loop));
	struct loop_timer *timer = memory_new(sizeof *timer);
	timer->fire = fire;
	timer->argument = argument;
	uv_timer_init(&loop->uv, &timer->uv);
	uv_unref((uv_handle_t *)&timer->uv);
	timer->uv.data = timer;
	return timer;
}

static struct loop *loop_of(const struct loop_timer *timer)
{
	return (struct loop *)timer->uv.loop;
}

void loop_timer_start(struct loop_timer *timer, uint64_t delay_ns)
{
	assert(allowed(loop_of(timer)));
	uint64_t ms = delay_ns / 1000000 + (delay_ns % 1000000 != 0);
	uv_update_time(timer->uv.loop);
	uv_timer_start(&timer->uv, on_timer, ms, 0);
}

void loop_timer_cancel(struct loop_timer *timer)
{
	assert(allowed(loop_of(timer)));
	uv_timer_stop(&timer->uv);
}

static void free_timer(uv_handle_t *handle)
{
	memory_free(handle->data);
}

static void close_timer(void *timer)
{
	uv_close((uv_handle_t *)&((struct loop_timer *)timer)->uv, free_timer);
}

void loop_timer_unref(struct loop_timer **slot)
{
	struct loop_timer *timer = *slot;
	*slot = NULL;
	if (timer)
		loop_call(loop_of(timer), close_timer, timer);
}

struct loop_socket *loop_socket_new(struct loop *loop, int fd,
				    void (*ready)(void *argument, int fd, unsigned events),
				    void *argument)
{
	assert(allowed(loop));
	struct loop_socket *socket = memory_new(sizeof *socket);
	*socket = (struct loop_socket){ .fd = fd, .ready = ready, .argument = argument };
	int code = uv_poll_init(&loop->uv, &socket->uv, fd);
	assert(!code);
	(void)code;
	uv_unref((uv_handle_t *)&socket->uv);
	socket->uv.data = socket;
	return socket;
}

/* A socket with an error is ready for everything: who uses it sees the error then. libuv stops
 * watching it. */
static void on_ready(uv_poll_t *uv, int status, int events)
{
	struct loop_socket *socket = uv->data;
	if (status)
		socket->watched = 0;
	unsigned ready = (events & UV_READABLE ? LOOP_READABLE : 0) |
			 (events & UV_WRITABLE ? LOOP_WRITABLE : 0);
	socket->ready(socket->argument, socket->fd, status ? LOOP_READABLE | LOOP_WRITABLE : ready);
}

void loop_socket_watch(struct loop_socket *socket, unsigned events)
{
	int wanted = (events & LOOP_READABLE ? UV_READABLE : 0) |
		     (events & LOOP_WRITABLE ? UV_WRITABLE : 0);
	if (events == socket->watched)
		return; /* libuv would remove the socket and add it again */
	socket->watched = events;
	if (wanted)
		uv_poll_start(&socket->uv, wanted, on_ready);
	else
		uv_poll_stop(&socket->uv);
}

static void free_socket(uv_handle_t *handle)
{
	memory_free(handle->data);
}

void loop_socket_unref(struct loop_socket **slot)
{
	struct loop_socket *socket = *slot;
	*slot = NULL;
	if (socket)
		uv_close((uv_handle_t *)&socket->uv, free_socket);
}

static void on_work(uv_work_t *uv)
{
	struct work *work = uv->data;
	work->work(work->argument);
}

static void on_work_done(uv_work_t *uv, int status)
{
	(void)status;
	struct work *work = uv->data;
	struct loop *loop = work->loop;
	if (work->done)
		work->done(work->argument);
	memory_free(work);
	loop->working--;
	stop_when_drained(loop);
}

static void begin_work(void *argument)
{
	struct work *work = argument;
	work->loop->working++;
	uv_queue_work(&work->loop->uv, &work->uv, on_work, on_work_done);
}

void loop_work(struct loop *loop, void (*work)(void *argument), void (*done)(void *argument),
	       void *argument)
{
	struct work *job = memory_new(sizeof *job);
	job->uv.data = job;
	job->loop = loop;
	job->work = work;
	job->done = done;
	job->argument = argument;
	if (loop_here(loop))
		begin_work(job);
	else
		loop_post(loop, begin_work, job);
}

/* One pool for the process, whose size libuv takes from the environment. */
void loop_widen_pool(uint32_t threads)
{
	char text[16];
	snprintf(text, sizeof text, "%u", POOL_THREADS + threads);
	setenv("UV_THREADPOOL_SIZE", text, 0);
}

static void on_signal(uv_signal_t *uv, int number)
{
	struct watcher *watcher = uv->data;
	watcher->caught(watcher->argument, number);
}

bool loop_signal(struct loop *loop, int number, void (*caught)(void *argument, int number),
		 void *argument, struct error *err)
{
	assert(allowed(loop));
	struct watcher *watcher = memory_new(sizeof *watcher);
	watcher->caught = caught;
	watcher->argument = argument;
	uv_signal_init(&loop->uv, &watcher->uv);
	watcher->uv.data = watcher;
	watcher->next = loop->watchers;
	loop->watchers = watcher;
	uv_unref((uv_handle_t *)&watcher->uv);
	int code = uv_signal_start(&watcher->uv, on_signal, number);
	return code ? set_uv_error(err, "a signal handler", code) : true;
}
