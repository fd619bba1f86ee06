/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/workers.h"

#include "base/memory.h"
#include "base/thread.h"

#include <pthread.h>
#include <string.h>

/* The most that a worker keeps between requests; the rest is freed. */
enum { KEEP_TABLES = 16 << 20, KEEP_BODY = 4 << 20 };

struct workers {
	struct workers_options options;
	_Atomic uint32_t sharers; /* the number of workers that share idle_bytes */
	pthread_t *threads;
	uint32_t running;     /* the number of running threads */
	pthread_mutex_t lock; /* guards the ring, the queues of its peers and stopping */
	pthread_cond_t wake;
	/* the ring: peers that have requests waiting, in the order of their turns */
	struct peer *head, **tail;
	uint32_t queued; /* queued requests of all peers */
	bool stopping;
};

/* -- the queue -- */

static void join_ring(struct workers *w, struct peer *peer)
{
	peer->queue.next = NULL;
	*w->tail = peer;
	w->tail = &peer->queue.next;
}

static void push(struct workers *w, struct inbound *in)
{
	struct peer_queue *q = &in->peer->queue;
	in->next = NULL;
	*q->tail = in;
	q->tail = &in->next;
	w->queued++;
	if (!q->length++)
		join_ring(w, in->peer);
}

/* The oldest request of the peer whose turn it is; that peer then goes to the end of the ring.
 * NULL: no request is waiting. */
static struct inbound *pop(struct workers *w)
{
	struct peer *peer = w->head;
	if (!peer)
		return NULL;
	struct peer_queue *q = &peer->queue;
	struct inbound *in = q->head;
	w->head = q->next;
	if (!w->head)
		w->tail = &w->head;
	q->head = in->next;
	if (!q->head)
		q->tail = &q->head;
	w->queued--;
	if (--q->length)
		join_ring(w, peer);
	return in;
}

static bool has_place(const struct workers *w, const struct peer *peer)
{
	return !w->stopping && w->queued < w->options.queue_max &&
	       peer->queue.length < w->options.queue_max - w->queued;
}

static struct inbound *wait_for_work(struct workers *w)
{
	pthread_mutex_lock(&w->lock);
	while (!w->head && !w->stopping)
		pthread_cond_wait(&w->wake, &w->lock);
	struct inbound *in = pop(w);
	pthread_mutex_unlock(&w->lock);
	return in;
}

bool workers_submit(struct workers *w, struct inbound *in)
{
	pthread_mutex_lock(&w->lock);
	bool taken = has_place(w, in->peer);
	if (taken)
		push(w, in);
	pthread_mutex_unlock(&w->lock);
	if (taken) /* after unlocking, since the woken thread would only wait for the lock */
		pthread_cond_signal(&w->wake);
	return taken;
}

bool workers_has_place(struct workers *w, const struct peer *peer)
{
	pthread_mutex_lock(&w->lock);
	bool place = has_place(w, peer);
	pthread_mutex_unlock(&w->lock);
	return place;
}

struct workers_load workers_load(struct workers *w, const struct peer *peer)
{
	pthread_mutex_lock(&w->lock);
	struct workers_load load = { w->queued, peer->queue.length, w->options.queue_max };
	pthread_mutex_unlock(&w->lock);
	return load;
}

/* -- a worker -- */

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

/* Half of a worker's share of idle_bytes is for its tables, a sixth for each buffer. */
static void tidy(struct worker *worker)
{
	struct workers *w = worker->workers;
	size_t share = w->options.idle_bytes / atomic_load(&w->sharers);
	size_t keep = least(KEEP_BODY, share / 6);
	shrink_body(&worker->body.raw, keep);
	shrink_body(&worker->body.translated, keep);
	shrink_body(&worker->body.inflated, keep);
	profiles_shrink(&worker->profiles, least(KEEP_TABLES, share / 2));
	int64_t held = (int64_t)(worker->body.raw.room + worker->body.translated.room +
				 worker->body.inflated.room + profiles_capacity(&worker->profiles));
	budget_add(w->options.budget, held - worker->held);
	worker->held = held;
}

struct worker *worker_new(struct workers *workers)
{
	const struct workers_options *o = &workers->options;
	struct worker *worker = memory_new(sizeof *worker);
	worker->workers = workers;
	worker->scratch = memory_array(o->slot_count, sizeof *worker->scratch);
	for (uint32_t i = 0; i < o->slot_count; i++)
		if (o->slots[i].ops->scratch_size)
			worker->scratch[i] = memory_new(o->slots[i].ops->scratch_size);
	atomic_fetch_add(&workers->sharers, 1);
	return worker;
}

void worker_run(struct worker *worker, struct inbound *in)
{
	worker->workers->options.run(worker, in);
	tidy(worker);
}

void worker_unref(struct worker **slot)
{
	struct worker *worker = *slot;
	*slot = NULL;
	if (!worker)
		return;
	const struct workers_options *o = &worker->workers->options;
	for (uint32_t i = 0; i < o->slot_count; i++) {
		if (worker->scratch[i] && o->slots[i].ops->scratch_fini)
			o->slots[i].ops->scratch_fini(o->slots[i].self, worker->scratch[i]);
		memory_free(worker->scratch[i]);
	}
	memory_free(worker->scratch);
	screening_fini(&worker->screening);
	bytes_fini(&worker->body.raw);
	bytes_fini(&worker->body.translated);
	bytes_fini(&worker->body.inflated);
	profiles_fini(&worker->profiles);
	budget_give(o->budget, worker->held);
	atomic_fetch_sub(&worker->workers->sharers, 1);
	memory_free(worker);
}

/* -- the threads -- */

static void *work(void *argument)
{
	struct workers *w = argument;
	struct worker *worker = worker_new(w);
	struct inbound *in;
	while ((in = wait_for_work(w)))
		worker_run(worker, in);
	worker_unref(&worker);
	return NULL;
}

struct workers *workers_start(const struct workers_options *options, struct error *err)
{
	struct workers *w = memory_new(sizeof *w);
	w->options = *options;
	w->threads = memory_array(options->count, sizeof *w->threads);
	w->tail = &w->head;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	while (w->running < options->count && thread_start(&w->threads[w->running], work, w, err))
		w->running++;
	if (w->running < options->count)
		workers_stop(&w);
	return w;
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
	memory_free(w);
	*workers = NULL;
}
