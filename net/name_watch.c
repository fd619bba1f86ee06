/* SPDX-License-Identifier: Apache-2.0 */
#include "net/name_watch.h"

#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <resolv.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/thread.h"

#define NS_PER_S UINT64_C(1000000000)

struct name_watch {
	struct name_watch_options options;
	char *name;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* under the lock; looking: a look-up is under way; abandoned: it was when the watch was
	 * stopped, and the watch is its thread's; reporting: a result is on its way to the loop */
	bool ending, looking, abandoned, reporting;
	/* of the last look-up; NULL: it failed */
	char **addresses;
	size_t count;
};

static void forget(struct name_watch *w)
{
	for (size_t i = 0; i < w->count; i++)
		memory_free(w->addresses[i]);
	memory_free(w->addresses);
	w->addresses = NULL;
	w->count = 0;
}

static void fini(struct name_watch *w)
{
	forget(w);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	memory_free(w->name);
	memory_free(w);
}

static int in_order(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

static void drop_repeated(struct name_watch *w)
{
	size_t kept = 0;
	for (size_t i = 0; i < w->count; i++)
		if (i && !strcmp(w->addresses[kept - 1], w->addresses[i]))
			memory_free(w->addresses[i]);
		else
			w->addresses[kept++] = w->addresses[i];
	w->count = kept;
}

static void keep(struct name_watch *w, const struct addrinfo *found)
{
	char text[INET6_ADDRSTRLEN + 32]; /* with a zone */
	size_t room = 0;
	for (const struct addrinfo *a = found; a; a = a->ai_next)
		room++;
	w->addresses = memory_array(room, sizeof *w->addresses);
	for (const struct addrinfo *a = found; a; a = a->ai_next)
		if (!getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof text, NULL, 0,
				 NI_NUMERICHOST))
			w->addresses[w->count++] = memory_text(text);
	qsort(w->addresses, w->count, sizeof *w->addresses, in_order);
	drop_repeated(w);
}

/* The settings of the resolver belong to the thread. They are read again each time, because a
 * thread that has changed them does not notice a new resolv.conf. */
static void limit_time(const struct name_watch *w)
{
	uint64_t seconds = (w->options.timeout_ns + NS_PER_S - 1) / NS_PER_S;
	if (res_init())
		return;
	_res.retrans = seconds < 1 ? 1 : seconds > 30 ? 30 : (int)seconds;
	_res.retry = 1;
}

static void look_up(struct name_watch *w)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	limit_time(w);
	forget(w);
	if (!getaddrinfo(w->name, NULL, &hints, &found) && found) {
		keep(w, found);
		freeaddrinfo(found);
	}
}

/* On the loop thread. */
static void report(void *argument)
{
	struct name_watch *w = argument;
	w->options.resolved(w->options.context, w->count ? w->addresses : NULL, w->count);
	pthread_mutex_lock(&w->lock);
	w->reporting = false;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
}

/* Waits until the loop has the result, also for a loop that does not run yet. */
static void hand_over(struct name_watch *w)
{
	pthread_mutex_lock(&w->lock);
	w->looking = false;
	w->reporting = !w->ending;
	if (w->reporting)
		loop_post(w->options.loop, report, w);
	while (w->reporting)
		pthread_cond_wait(&w->wake, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

/* False: it ends. */
static bool wait_for_next(struct name_watch *w)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	uint64_t ns = (uint64_t)until.tv_nsec + w->options.interval_ns;
	until.tv_sec += (time_t)(ns / NS_PER_S);
	until.tv_nsec = (long)(ns % NS_PER_S);
	int code = 0;
	pthread_mutex_lock(&w->lock);
	while (!w->ending && !code)
		code = pthread_cond_timedwait(&w->wake, &w->lock, &until);
	w->looking = !w->ending;
	bool goes_on = w->looking;
	pthread_mutex_unlock(&w->lock);
	return goes_on;
}

static void *run(void *argument)
{
	struct name_watch *w = argument;
	do {
		look_up(w);
		hand_over(w);
	} while (wait_for_next(w));
	res_nclose(&_res);
	if (w->abandoned)
		fini(w);
	return NULL;
}

struct name_watch *name_watch_new(const struct name_watch_options *options, struct error *err)
{
	struct name_watch *w = memory_new(sizeof *w);
	pthread_condattr_t attributes;
	w->options = *options;
	w->name = memory_text(options->name);
	w->looking = true;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	if (thread_start(&w->thread, run, w, err))
		return w;
	fini(w);
	return NULL;
}

void name_watch_stop(struct name_watch **watch)
{
	struct name_watch *w = *watch;
	*watch = NULL;
	if (!w)
		return;
	pthread_t thread = w->thread;
	pthread_mutex_lock(&w->lock);
	bool abandoned = w->abandoned = w->looking;
	w->ending = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	if (abandoned) {
		pthread_detach(thread);
	} else {
		pthread_join(thread, NULL);
		fini(w);
	}
}
