/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_queue.h"

#include "base/clock.h"
#include "base/thread.h"
#include "net/grpc/grpc_core.h"

#include <grpc/support/time.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#define TICK_NS (INT64_C(1000000000) / 2)

static struct {
	pthread_mutex_t lock; /* guards everything below; the thread of the queue never takes it */
	unsigned holds;
	grpc_completion_queue *queue;
	pthread_t thread;
} shared = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* guards ticks; held while they run */
static pthread_mutex_t ticks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct grpc_tick *ticks;

static _Thread_local bool here;

static void run_ticks(void)
{
	pthread_mutex_lock(&ticks_lock);
	for (struct grpc_tick *t = ticks; t; t = t->next)
		t->tick(t->context);
	pthread_mutex_unlock(&ticks_lock);
}

static grpc_event wait_for_event(grpc_completion_queue *queue)
{
	gpr_timespec until = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
					  gpr_time_from_nanos(TICK_NS, GPR_TIMESPAN));
	return grpc_completion_queue_next(queue, until, NULL);
}

/* With SCHED_BATCH (sched(7)), arriving events do not preempt a thread that decodes on a busy CPU:
 * this thread waits for its turn and then handles all events that have arrived. On an idle CPU it
 * runs at once, as before. If the call is forbidden, only this gain is lost. */
static void take_turns(void)
{
	if (sched_getscheduler(0) ==
	    SCHED_OTHER) /* other policies were chosen for all threads, and are kept */
		sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){ 0 });
}

static void *serve(void *queue)
{
	uint64_t ticked = clock_now();
	take_turns();
	here = true;
	for (;;) {
		grpc_event event = wait_for_event(queue);
		if (event.type == GRPC_QUEUE_SHUTDOWN)
			return NULL;
		if (event.type == GRPC_OP_COMPLETE) {
			struct grpc_tag *tag = event.tag;
			void (*happened)(void *, bool) = atomic_load(&tag->happened);
			happened(tag->owner, event.success);
		}
		uint64_t now = clock_now();
		if (now - ticked >= TICK_NS) {
			ticked = now;
			run_ticks();
		}
	}
}

void grpc_queue_tick(struct grpc_tick *tick)
{
	pthread_mutex_lock(&ticks_lock);
	tick->next = ticks;
	ticks = tick;
	pthread_mutex_unlock(&ticks_lock);
}

void grpc_queue_untick(struct grpc_tick *tick)
{
	pthread_mutex_lock(&ticks_lock);
	struct grpc_tick **at = &ticks;
	while (*at && *at != tick)
		at = &(*at)->next;
	if (*at)
		*at = tick->next;
	pthread_mutex_unlock(&ticks_lock);
}

static void start(void)
{
	grpc_core_init();
	shared.queue = grpc_completion_queue_create_for_next(NULL);
	if (!thread_start(&shared.thread, serve, shared.queue, NULL))
		abort(); /* as without memory */
	pthread_setname_np(shared.thread, "grpc");
}

grpc_completion_queue *grpc_queue_hold(void)
{
	pthread_mutex_lock(&shared.lock);
	if (!shared.holds++)
		start();
	grpc_completion_queue *queue = shared.queue;
	pthread_mutex_unlock(&shared.lock);
	return queue;
}

void grpc_queue_release(void)
{
	pthread_mutex_lock(&shared.lock);
	if (!--shared.holds) {
		grpc_completion_queue_shutdown(shared.queue);
		pthread_join(shared.thread, NULL);
		grpc_completion_queue_destroy(shared.queue);
		grpc_core_shutdown();
	}
	pthread_mutex_unlock(&shared.lock);
}

bool grpc_queue_here(void)
{
	return here;
}
