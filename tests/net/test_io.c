/* SPDX-License-Identifier: Apache-2.0 */
#include "net/io.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

enum { AGAIN = 3, TURNS_MAX = 1000 };

struct scene {
	struct io *io;
	struct io_thread *thread;
	struct io_post post;
	struct io_watch *watch;
	enum io_more more;
	int fd;
	size_t seen; /* bytes of the turn when the next one begins */
	_Atomic int calls;
};

static void begin(struct scene *s)
{
	struct error err;
	*s = (struct scene){ .io = io_start(1, &err),
			     .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	assert_non_null(s->io);
	s->thread = io_thread_at(s->io, IO_HTTP_1, 0);
}

static void end(struct scene *s)
{
	io_stop(&s->io);
	close(s->fd);
}

enum { COUNT = 3 };

static void name_of_thread(void *argument)
{
	pthread_getname_np(pthread_self(), argument, 16);
}

static void each_kind_has_threads_of_its_own(void **state)
{
	static const char *const names[] = { [IO_HTTP_2] = "io", [IO_HTTP_1] = "io-http1" };
	struct error err;
	struct io *io = io_start(COUNT, &err);
	(void)state;
	assert_non_null(io);
	assert_int_equal(io_count(io), COUNT);
	for (uint32_t i = 0; i < IO_KINDS * COUNT; i++) {
		enum io_kind kind = i / COUNT;
		struct io_thread *thread = io_thread_at(io, kind, i % COUNT);
		char name[16];
		io_call(thread, name_of_thread, name);
		assert_string_equal(name, names[kind]);
		assert_int_equal(io_thread_index(thread), i);
	}
	io_stop(&io);
}

static int64_t load_of(const void *loads, uint32_t index)
{
	return ((const int64_t *)loads)[index];
}

static void equal_loads_take_turns_and_lesser_ones_win(void **state)
{
	struct error err;
	struct io *io = io_start(COUNT, &err);
	int64_t loads[COUNT] = { 0 };
	int chosen[COUNT] = { 0 };
	(void)state;
	assert_non_null(io);
	for (int i = 0; i < 2 * COUNT; i++)
		chosen[io_least_busy(io, IO_HTTP_1, load_of, loads)]++;
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(chosen[i], 2);
	for (uint32_t least = 0; least < COUNT; least++) {
		for (uint32_t i = 0; i < COUNT; i++)
			loads[i] = i == least ? 1 : 2;
		for (int i = 0; i < COUNT; i++)
			assert_int_equal(io_least_busy(io, IO_HTTP_2, load_of, loads), least);
	}
	io_stop(&io);
}

static void look(struct io_post *post)
{
	struct scene *s = (struct scene *)((char *)post - offsetof(struct scene, post));
	s->seen = io_turn_bytes(s->thread);
	atomic_fetch_add(&s->calls, 1);
}

static void count_and_look_later(void *argument)
{
	struct scene *s = argument;
	io_turn_count(s->thread, 1000);
	io_turn_count(s->thread, 234);
	s->seen = io_turn_bytes(s->thread);
	s->post.run = look;
}

static void nothing(void *argument)
{
	(void)argument;
}

static void a_turn_counts_its_own_bytes_only(void **state)
{
	struct scene s;
	(void)state;
	begin(&s);
	io_call(s.thread, count_and_look_later, &s);
	assert_int_equal(s.seen, 1234);
	/* It may run in the same turn, but not every time. */
	for (int i = 0; i < TURNS_MAX && s.seen; i++) {
		io_post(s.thread, &s.post);
		io_call(s.thread, nothing, NULL);
		assert_int_equal(s.calls, i + 1);
	}
	assert_int_equal(s.seen, 0);
	end(&s);
}

/* Wants to be called AGAIN times more after it has read the descriptor. */
static enum io_more ready(void *context)
{
	struct scene *s = context;
	eventfd_t value;
	eventfd_read(s->fd, &value);
	return atomic_fetch_add(&s->calls, 1) % (AGAIN + 1) < AGAIN ? s->more : IO_DONE;
}

static void watch(void *argument)
{
	struct scene *s = argument;
	struct error err;
	s->watch = io_watch_new(s->thread, s->fd, ready, s, &err);
	assert_non_null(s->watch);
}

static void again(void *argument)
{
	io_watch_again(((struct scene *)argument)->watch);
}

static void unwatch(void *argument)
{
	io_watch_unref(&((struct scene *)argument)->watch);
}

static void await(struct scene *s, int calls)
{
	while (atomic_load(&s->calls) < calls)
		usleep(1000);
	/* no call too many: the thread has had turns since */
	for (int i = 0; i < AGAIN; i++) {
		io_call(s->thread, nothing, NULL);
		usleep(1000);
	}
	assert_int_equal(s->calls, calls);
}

static void watch_and_read(enum io_more more)
{
	struct scene s;
	begin(&s);
	s.more = more;
	io_call(s.thread, watch, &s);
	await(&s, 0);
	eventfd_write(s.fd, 1);
	await(&s, AGAIN + 1);
	io_call(s.thread, again, &s);
	await(&s, 2 * (AGAIN + 1));
	io_call(s.thread, unwatch, &s);
	assert_null(s.watch);
	eventfd_write(s.fd, 1);
	await(&s, 2 * (AGAIN + 1));
	end(&s);
}

static void a_watch_is_called_when_readable_and_as_often_as_it_asks(void **state)
{
	(void)state;
	watch_and_read(IO_AGAIN);
	watch_and_read(IO_LATER);
}

static enum io_more never(void *context)
{
	(void)context;
	return IO_DONE;
}

static void watch_nothing(void *argument)
{
	struct scene *s = argument;
	struct error err;
	s->watch = io_watch_new(s->thread, -1, never, s, &err);
	assert_int_equal(err.kind, ERROR_INTERNAL);
}

static void what_cannot_be_watched_is_an_error(void **state)
{
	struct scene s;
	(void)state;
	begin(&s);
	io_call(s.thread, watch_nothing, &s);
	assert_null(s.watch);
	io_call(s.thread, unwatch, &s);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_has_threads_of_its_own),
		cmocka_unit_test(equal_loads_take_turns_and_lesser_ones_win),
		cmocka_unit_test(a_turn_counts_its_own_bytes_only),
		cmocka_unit_test(a_watch_is_called_when_readable_and_as_often_as_it_asks),
		cmocka_unit_test(what_cannot_be_watched_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
