/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/workers.h"

#include "base/memory.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

/* What a worker keeps between requests; more is given back. */
enum { KEEP_TABLES = 16 << 20, KEEP_BODY = 4 << 20 };

struct workers {
	struct workers_options options;
	pthread_t *threads;
	uint32_t running; /* of them */
	struct worker *worker;
	pthread_mutex_t lock; /* guards the queue and stopping */
	pthread_cond_t wake;
	struct inbound *head, **tail;
	uint32_t queued;
	bool stopping;
};

static struct inbound *wait_for_work(struct workers *w)
{
	pthread_mutex_lock(&w->lock);
	while (!w->head && !w->stopping)
		pthread_cond_wait(&w->wake, &w->lock);
	struct inbound *in = w->head;
	if (in) {
		w->head = in->next;
		if (!w->head)
			w->tail = &w->head;
		w->queued--;
	}
	pthread_mutex_unlock(&w->lock);
	return in;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void shrink_body(struct bytes *b, size_t keep)
{
	b->len = 0;
	if (b->room > keep)
		bytes_fini(b);
}

/* Half of a worker's share is for its tables, a quarter for each buffer. */
static void tidy(struct worker *worker)
{
	const struct workers_options *o = &worker->workers->options;
	size_t share = o->idle_bytes / o->count;
	shrink_body(&worker->body.raw, least(KEEP_BODY, share / 4));
	shrink_body(&worker->body.inflated, least(KEEP_BODY, share / 4));
	profiles_shrink(&worker->profiles, least(KEEP_TABLES, share / 2));
	int64_t held = (int64_t)(worker->body.raw.room + worker->body.inflated.room +
				 profiles_capacity(&worker->profiles));
	memory_add(worker->workers->options.memory, held - worker->held);
	worker->held = held;
}

static void make_scratch(struct worker *worker)
{
	const struct workers_options *o = &worker->workers->options;
	worker->scratch = memory_array(o->slot_count, sizeof *worker->scratch);
	for (uint32_t i = 0; i < o->slot_count; i++)
		if (o->slots[i].factory->scratch_size)
			worker->scratch[i] = memory_new(o->slots[i].factory->scratch_size);
}

static void free_scratch(struct worker *worker)
{
	const struct workers_options *o = &worker->workers->options;
	for (uint32_t i = 0; i < o->slot_count; i++) {
		if (worker->scratch[i] && o->slots[i].factory->scratch_fini)
			o->slots[i].factory->scratch_fini(o->slots[i].self, worker->scratch[i]);
		memory_free(worker->scratch[i]);
	}
	memory_free(worker->scratch);
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct inbound *in;
	make_scratch(worker);
	while ((in = wait_for_work(worker->workers))) {
		worker->workers->options.run(worker, in);
		tidy(worker);
	}
	free_scratch(worker);
	bytes_fini(&worker->body.raw);
	bytes_fini(&worker->body.inflated);
	profiles_fini(&worker->profiles);
	memory_give(worker->workers->options.memory, worker->held);
	return NULL;
}

struct workers *workers_start(const struct workers_options *options, struct error *err)
{
	struct workers *w = memory_new(sizeof *w);
	w->options = *options;
	w->threads = memory_array(options->count, sizeof *w->threads);
	w->worker = memory_array(options->count, sizeof *w->worker);
	w->tail = &w->head;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	/* Signals are the loop's. */
	sigset_t all, old;
	sigfillset(&all);
	sigdelset(&all, SIGPROF);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	int code = 0;
	for (uint32_t i = 0; i < options->count && !code; i++) {
		w->worker[i].workers = w;
		code = pthread_create(&w->threads[i], NULL, work, &w->worker[i]);
		w->running += code == 0;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (code) {
		error_set(err, ERROR_INTERNAL, "cannot start a worker thread: %s", strerror(code));
		workers_stop(&w);
	}
	return w;
}

bool workers_submit(struct workers *w, struct inbound *in)
{
	pthread_mutex_lock(&w->lock);
	bool taken = w->queued < w->options.queue_max && !w->stopping;
	if (taken) {
		in->next = NULL;
		*w->tail = in;
		w->tail = &in->next;
		w->queued++;
	}
	pthread_mutex_unlock(&w->lock);
	if (taken) /* without the lock, for which the woken would wait at once */
		pthread_cond_signal(&w->wake);
	return taken;
}

bool workers_full(struct workers *w)
{
	pthread_mutex_lock(&w->lock);
	bool full = w->queued >= w->options.queue_max;
	pthread_mutex_unlock(&w->lock);
	return full;
}

void workers_stop(struct workers **workers)
{
	struct workers *w = *workers;
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	pthread_cond_broadcast(&w->wake);
	pthread_mutex_unlock(&w->lock);
	for (uint32_t i = 0; i < w->running; i++)
		pthread_join(w->threads[i], NULL);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	memory_free(w->threads);
	memory_free(w->worker);
	memory_free(w);
	*workers = NULL;
}
