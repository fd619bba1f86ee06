/* SPDX-License-Identifier: Apache-2.0 */
#include "net/loop.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

enum { POSTERS = 4, POSTS = 500 };

struct scene {
	struct loop *loop;
	struct loop_timer *timer, *other;
	int fired, posted, caught;
	int last_of[POSTERS];
	bool in_order, freed_itself;
	_Atomic bool elsewhere;
	_Atomic int worked;
	int done;
};

struct post_of {
	struct scene *scene;
	int poster, number;
};

static void begin(struct scene *s)
{
	struct error err;
	*s = (struct scene){ .loop = loop_new(&err), .in_order = true };
	assert_non_null(s->loop);
}

static void stop(void *argument)
{
	struct scene *s = argument;
	loop_stop(s->loop);
}

static void count_post(void *argument)
{
	struct post_of *p = argument;
	struct scene *s = p->scene;
	s->in_order = s->in_order && p->number == s->last_of[p->poster] + 1 && loop_here(s->loop);
	s->last_of[p->poster] = p->number;
	if (++s->posted == POSTERS * POSTS)
		loop_stop(s->loop);
}

static void *post_many(void *argument)
{
	struct post_of *posts = argument;
	for (int i = 0; i < POSTS; i++)
		loop_post(posts[i].scene->loop, count_post, &posts[i]);
	return NULL;
}

static void posts_of_many_threads_run_in_each_threads_order(void **state)
{
	(void)state;
	static struct post_of posts[POSTERS][POSTS];
	struct scene s;
	pthread_t threads[POSTERS];
	begin(&s);
	for (int t = 0; t < POSTERS; t++) {
		for (int i = 0; i < POSTS; i++)
			posts[t][i] = (struct post_of){ &s, t, i + 1 };
		pthread_create(&threads[t], NULL, post_many, posts[t]);
	}
	loop_run(s.loop);
	for (int t = 0; t < POSTERS; t++)
		pthread_join(threads[t], NULL);
	assert_int_equal(s.posted, POSTERS * POSTS);
	assert_true(s.in_order);
	assert_false(loop_here(s.loop));
	loop_unref(&s.loop);
	assert_null(s.loop);
}

static void count_one(void *argument)
{
	((struct scene *)argument)->posted++;
}

static void post_more(void *argument)
{
	struct scene *s = argument;
	loop_stop(s->loop);
	loop_post(s->loop, count_one, s);
}

static void what_is_posted_after_stop_still_runs(void **state)
{
	(void)state;
	struct scene s;
	begin(&s);
	loop_post(s.loop, post_more, &s);
	loop_run(s.loop);
	assert_int_equal(s.posted, 1);
	loop_unref(&s.loop);
}

static void post_itself(void *argument)
{
	struct scene *s = argument;
	s->posted++;
	if (!s->fired)
		loop_post(s->loop, post_itself, s);
	else
		loop_stop(s->loop);
}

static void count_fire(void *argument)
{
	((struct scene *)argument)->fired++;
}

static void posts_that_never_end_leave_timers_their_turn(void **state)
{
	(void)state;
	struct scene s;
	begin(&s);
	s.timer = loop_timer_new(s.loop, count_fire, &s);
	loop_timer_start(s.timer, 2000000);
	loop_post(s.loop, post_itself, &s);
	loop_run(s.loop);
	assert_int_equal(s.fired, 1);
	assert_true(s.posted > 1);
	loop_timer_unref(&s.timer);
	loop_unref(&s.loop);
}

static void what_is_posted_after_run_is_released(void **state)
{
	(void)state;
	struct scene s;
	begin(&s);
	loop_post(s.loop, count_one, &s);
	loop_unref(&s.loop);
	assert_int_equal(s.posted, 0);
}

static void fire_again(void *argument)
{
	struct scene *s = argument;
	if (++s->fired < 3)
		loop_timer_start(s->timer, 1);
	else
		loop_stop(s->loop);
}

static void a_timer_can_start_itself_again(void **state)
{
	(void)state;
	struct scene s;
	begin(&s);
	s.timer = loop_timer_new(s.loop, fire_again, &s);
	loop_timer_start(s.timer, 1000000);
	loop_run(s.loop);
	assert_int_equal(s.fired, 3);
	loop_timer_unref(&s.timer);
	loop_unref(&s.loop);
}

static void free_itself(void *argument)
{
	struct scene *s = argument;
	loop_timer_unref(&s->timer);
	s->freed_itself = true;
	loop_stop(s->loop);
}

static void a_timer_can_free_itself(void **state)
{
	(void)state;
	struct scene s;
	begin(&s);
	s.timer = loop_timer_new(s.loop, free_itself, &s);
	loop_timer_start(s.timer, 0);
	loop_run(s.loop);
	assert_true(s.freed_itself);
	loop_timer_unref(&s.timer);
	loop_unref(&s.loop);
}

static void a_cancelled_timer_does_not_fire_and_a_moved_one_fires_once(void **state)
{
	(void)state;
	struct scene s;
	begin(&s);
	struct loop_timer *cancelled = loop_timer_new(s.loop, count_fire, &s);
	struct loop_timer *end = loop_timer_new(s.loop, stop, &s);
	s.timer = loop_timer_new(s.loop, count_fire, &s);
	loop_timer_start(cancelled, 1);
	loop_timer_cancel(cancelled);
	loop_timer_start(s.timer, 3600000000000);
	loop_timer_start(s.timer, 1);
	loop_timer_start(end, 30000000);
	loop_run(s.loop);
	assert_int_equal(s.fired, 1);
	loop_timer_unref(&cancelled);
	loop_timer_unref(&end);
	loop_timer_unref(&s.timer);
	loop_unref(&s.loop);
}

static void work_here(void *argument)
{
	struct scene *s = argument;
	s->elsewhere = !loop_here(s->loop);
	atomic_fetch_add(&s->worked, 1);
}

static void work_done(void *argument)
{
	struct scene *s = argument;
	s->done += loop_here(s->loop);
}

static void *ask_for_work(void *argument)
{
	struct scene *s = argument;
	loop_work(s->loop, work_here, work_done, s);
	loop_work(s->loop, work_here, NULL, s);
	loop_stop(s->loop);
	return NULL;
}

static void stop_waits_for_work_that_another_thread_asked_for(void **state)
{
	(void)state;
	struct scene s;
	pthread_t thread;
	begin(&s);
	pthread_create(&thread, NULL, ask_for_work, &s);
	loop_run(s.loop);
	pthread_join(thread, NULL);
	assert_int_equal(s.worked, 2);
	assert_int_equal(s.done, 1);
	assert_true(s.elsewhere);
	loop_unref(&s.loop);
}

static void caught(void *argument, int number)
{
	struct scene *s = argument;
	s->caught += number == SIGUSR1;
	if (s->caught == 1)
		raise(SIGUSR1);
	else
		loop_stop(s->loop);
}

static void raise_it(void *argument)
{
	(void)argument;
	raise(SIGUSR1);
}

static void each_delivery_of_a_signal_is_told(void **state)
{
	(void)state;
	struct scene s;
	struct error err;
	begin(&s);
	assert_true(loop_signal(s.loop, SIGUSR1, caught, &s, &err));
	loop_post(s.loop, raise_it, NULL);
	loop_run(s.loop);
	assert_int_equal(s.caught, 2);
	loop_unref(&s.loop);
}

static void an_impossible_signal_is_an_error(void **state)
{
	(void)state;
	struct scene s;
	struct error err;
	begin(&s);
	assert_false(loop_signal(s.loop, 9999, caught, &s, &err));
	assert_int_equal(err.kind, ERROR_INTERNAL);
	loop_unref(&s.loop);
}

static void a_loop_runs_again_after_stop(void **state)
{
	(void)state;
	struct scene s;
	begin(&s);
	for (int i = 0; i < 2; i++) {
		loop_post(s.loop, count_one, &s);
		loop_post(s.loop, stop, &s);
		loop_run(s.loop);
	}
	assert_int_equal(s.posted, 2);
	loop_unref(&s.loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(posts_of_many_threads_run_in_each_threads_order),
		cmocka_unit_test(what_is_posted_after_stop_still_runs),
		cmocka_unit_test(posts_that_never_end_leave_timers_their_turn),
		cmocka_unit_test(what_is_posted_after_run_is_released),
		cmocka_unit_test(a_timer_can_start_itself_again),
		cmocka_unit_test(a_timer_can_free_itself),
		cmocka_unit_test(a_cancelled_timer_does_not_fire_and_a_moved_one_fires_once),
		cmocka_unit_test(stop_waits_for_work_that_another_thread_asked_for),
		cmocka_unit_test(each_delivery_of_a_signal_is_told),
		cmocka_unit_test(an_impossible_signal_is_an_error),
		cmocka_unit_test(a_loop_runs_again_after_stop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
