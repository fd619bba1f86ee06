/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/memory.h"
#include "pipeline/storage/storage_private.h"

#include <assert.h>
#include <time.h>

/* What one commit holds in memory at most, beside one record of any size. */
#define BATCH_BYTES (8 << 20)
#define QUARANTINE "quarantine"
enum { RETRY_S = 1, QUARANTINE_RECORDS = 64, QUARANTINE_BYTES = 1 << 20 };

/* What a commit takes from the list of waiting entries. */
struct batch {
	struct storage_entry *first, **last;
	int64_t bytes;
	bool removes, appends;
};

static void batch_add(struct batch *b, struct storage_entry *e)
{
	e->next = NULL;
	*b->last = e;
	b->last = &e->next;
	b->removes = b->removes || e->state == STORAGE_REMOVING;
	b->appends = b->appends || e->state == STORAGE_WRITING;
	b->bytes += e->state == STORAGE_WRITING ? e->space : 0;
}

/* ---- opening */

/* A queue that the disk does not allow to attach does not stop the others. Held: owners. */
static enum database_result attach_queues(struct storage *s, struct error *err)
{
	enum database_result worst = DATABASE_OK;
	for (struct storage_queue *q = s->queues; q && worst < DATABASE_REOPEN; q = q->next) {
		enum database_result result = q->attached ? DATABASE_OK : queue_attach(q, err);
		worst = result > worst ? result : worst;
	}
	s->incomplete = worst != DATABASE_OK;
	return worst;
}

static enum database_result attach_quarantine(struct storage *s, struct error *err)
{
	uint64_t last;
	enum database_result result = database_table(s->db, QUARANTINE, &s->quarantine, err);
	if (result == DATABASE_OK)
		result = database_extent(s->db, s->quarantine, &s->quarantined, &last, err);
	/* It belongs to the database. */
	return result == DATABASE_OK || result == DATABASE_BROKEN ? result : DATABASE_REOPEN;
}

/* Waits for the readers, because nothing may use a database that is closed. They need no lock but
 * this one. Held: owners, without which who opens a queue could use it. */
static void detach(struct storage *s)
{
	pthread_mutex_lock(&s->lock);
	struct database *db = s->db;
	s->db = NULL;
	for (struct storage_queue *q = s->queues; q; q = q->next)
		q->attached = false;
	while (s->readers)
		pthread_cond_wait(&s->changed, &s->lock);
	s->broken = false;
	pthread_mutex_unlock(&s->lock);
	database_close(&db);
}

static void set_failing(struct storage *s, bool failing)
{
	if (atomic_exchange(&s->failing, failing) == failing)
		return;
	metric_set(s->count.available, !failing);
	for (struct storage_queue *q = s->queues; q; q = q->next)
		q->owner.changed(q->owner.context);
}

/* With `on_error: memory`, the directory may not have been opened at the start. */
static enum database_result attach_database(struct storage *s, struct error *err)
{
	if (s->lock_file < 0 && !directory_open(s, err))
		return DATABASE_REOPEN;
	struct database *db = directory_database(s, err);
	pthread_mutex_lock(&s->lock);
	s->db = db;
	pthread_mutex_unlock(&s->lock);
	enum database_result result = db ? attach_quarantine(s, err) : DATABASE_REOPEN;
	return result == DATABASE_OK ? attach_queues(s, err) : result;
}

/* Held: owners. */
static void set_aside(struct storage *s, struct error *err)
{
	detach(s);
	directory_set_aside(s, err->text);
	error_clear(err);
}

/* False: not all is attached. Held: owners. */
static bool attach(struct storage *s, struct error *err)
{
	enum database_result result = attach_database(s, err);
	if (result == DATABASE_BROKEN) {
		set_aside(s, err);
		result = attach_database(s, err);
	}
	if (result >= DATABASE_REOPEN)
		detach(s);
	return result == DATABASE_OK;
}

bool writer_attach(struct storage *s, struct error *err)
{
	pthread_mutex_lock(&s->owners);
	bool ok = attach(s, err);
	pthread_mutex_unlock(&s->owners);
	return ok;
}

/* ---- one commit */

static void add_totals(struct storage_entry *e, int64_t sign)
{
	struct storage_account *a = e->account;
	e->queue->more_records += sign;
	e->queue->touched = true;
	if (!a)
		return;
	a->change.records += sign;
	a->change.samples += sign * (int64_t)e->samples;
	a->change.bytes += sign * (int64_t)e->bytes;
	a->change.space += sign * e->space;
}

static enum database_result append(struct storage *s, struct storage_entry *e, struct error *err)
{
	uint8_t *room;
	enum database_result result = database_append(s->db, e->queue->table, e->sequence,
						      e->head.len + e->body.len, &room, err);
	if (result != DATABASE_OK)
		return result;
	memcpy(room, e->head.at, e->head.len);
	memcpy(room + e->head.len, e->body.at, e->body.len);
	add_totals(e, 1);
	return DATABASE_OK;
}

static enum database_result quarantine(struct storage *s, const struct storage_entry *e,
				       struct error *err)
{
	enum database_result result =
		database_move(s->db, e->queue->table, e->sequence, s->quarantine, e->quarantine,
			      QUARANTINE_BYTES, err);
	if (result == DATABASE_OK && ++s->quarantined > QUARANTINE_RECORDS) {
		s->quarantined--;
		return database_shift(s->db, s->quarantine, err);
	}
	return result;
}

/* A record that is gone was in a database that was set aside. */
static enum database_result drop(struct storage *s, struct storage_entry *e, struct error *err)
{
	enum database_result result =
		e->quarantine ? quarantine(s, e, err)
			      : database_remove(s->db, e->queue->table, e->sequence, err);
	if (result == DATABASE_OK)
		add_totals(e, -1);
	return result == DATABASE_NONE ? DATABASE_OK : result;
}

/* An empty queue has no totals left, whatever records that could not be read had added to them. */
static void settle_totals(struct storage_queue *q)
{
	bool empty = q->records + q->more_records <= 0;
	for (struct storage_account *a = q->accounts; a && empty; a = a->next)
		a->change = (struct storage_totals){
			-a->committed.records,
			-a->committed.samples,
			-a->committed.bytes,
			-a->committed.space,
		};
}

static enum database_result write_totals(struct storage *s, struct storage_queue *q,
					 struct error *err)
{
	struct bytes data;
	char *name = memory_format("queue %s", q->name);
	bytes_init(&data, SIZE_MAX / 2);
	pthread_mutex_lock(&s->lock);
	settle_totals(q);
	totals_encode(q->accounts, &data);
	pthread_mutex_unlock(&s->lock);
	enum database_result result = database_set(s->db, name, bytes_view(&data), err);
	bytes_fini(&data);
	memory_free(name);
	return result;
}

static enum database_result change(struct storage *s, struct storage_entry *e, struct error *err)
{
	if (!e->queue->attached) {
		error_set(err, ERROR_BUSY, "the queue %s has no table", e->queue->name);
		return DATABASE_DISK;
	}
	return e->state == STORAGE_WRITING ? append(s, e, err) : drop(s, e, err);
}

static enum database_result write_changes(struct storage *s, struct batch *b, struct error *err)
{
	enum database_result result = DATABASE_OK;
	for (struct storage_entry *e = b->first; e && result == DATABASE_OK; e = e->next)
		result = change(s, e, err);
	for (struct storage_queue *q = s->queues; q && result == DATABASE_OK; q = q->next)
		if (q->touched)
			result = write_totals(s, q, err);
	return result == DATABASE_OK ? database_set(s->db, "last", view_of("commit"), err) : result;
}

static void end_account(struct storage_account *a, bool committed)
{
	const struct storage_totals more = a->change;
	a->change = (struct storage_totals){ 0 };
	if (!committed)
		return;
	a->committed.records += more.records;
	a->committed.samples += more.samples;
	a->committed.bytes += more.bytes;
	a->committed.space += more.space;
}

/* The changes of a commit have come into force, or have not. What was pending is stored in the same
 * instant: counted twice, it would make the storage seem full. */
static void end_totals(struct storage *s, const struct batch *b, bool committed)
{
	pthread_mutex_lock(&s->owners);
	pthread_mutex_lock(&s->lock);
	for (struct storage_queue *q = s->queues; q; q = q->next) {
		q->records += committed ? q->more_records : 0;
		q->more_records = 0;
		q->touched = false;
		for (struct storage_account *a = q->accounts; a; a = a->next)
			end_account(a, committed);
	}
	s->pending -= committed ? b->bytes : 0;
	storage_count_stored(s);
	pthread_mutex_unlock(&s->lock);
	pthread_mutex_unlock(&s->owners);
}

static enum database_result commit(struct storage *s, struct batch *b, struct error *err)
{
	if (!s->db)
		return DATABASE_REOPEN;
	/* Who opens a queue has `owners` and waits for the end of this transaction. */
	pthread_mutex_lock(&s->owners);
	enum database_result result = database_begin(s->db, err);
	bool begun = result == DATABASE_OK;
	if (begun)
		result = write_changes(s, b, err);
	pthread_mutex_unlock(&s->owners);
	if (result == DATABASE_OK)
		result = database_commit(s->db, err);
	else if (begun)
		database_abort(s->db);
	end_totals(s, b, result == DATABASE_OK);
	metric_add(result == DATABASE_OK ? s->count.commits : s->count.failures, 1);
	return result;
}

/* ---- the entries of a commit afterwards */

/* The writer has seen the entry; `release`: it is not used any more. The queue may be closed as
 * soon as its last entry is out. */
static void retire(struct storage *s, struct storage_entry *e, bool release)
{
	struct storage_queue *q = e->queue;
	if (release)
		e->release(e);
	pthread_mutex_lock(&s->owners);
	pthread_mutex_lock(&s->lock);
	bool settled = --q->outstanding == 0 && q->ending;
	pthread_mutex_unlock(&s->lock);
	if (settled)
		q->owner.changed(q->owner.context);
	pthread_mutex_unlock(&s->owners);
}

/* Back to the end of the list, to be removed. Under the lock. */
static void wait_again(struct storage *s, struct storage_entry *e)
{
	e->state = STORAGE_REMOVING;
	e->next = NULL;
	*s->last = e;
	s->last = &e->next;
}

/* The entry is not marked as failed before the owner knows: from then on any thread may remove it,
 * and with it free it. */
static void end_failed(struct storage *s, struct storage_entry *e)
{
	pthread_mutex_lock(&s->lock);
	bool unwanted = e->unwanted;
	storage_count_pending(s, -e->space);
	pthread_mutex_unlock(&s->lock);
	if (!unwanted)
		e->done(e, false);
	pthread_mutex_lock(&s->lock);
	struct storage_entry seen = { .queue = e->queue };
	unwanted = e->unwanted;
	e->state = STORAGE_FAILED;
	pthread_mutex_unlock(&s->lock);
	if (unwanted)
		e->release(e);
	retire(s, &seen, false);
}

/* A stored one that is removed comes back to this thread. */
static void end_stored(struct storage *s, struct storage_entry *e)
{
	pthread_mutex_lock(&s->lock);
	bool unwanted = e->unwanted;
	if (unwanted)
		wait_again(s, e);
	else
		e->state = STORAGE_STORED;
	pthread_mutex_unlock(&s->lock);
	if (unwanted)
		return;
	/* The owner may free it. */
	struct storage_entry seen = { .queue = e->queue };
	e->done(e, true);
	retire(s, &seen, false);
}

static void end_removal(struct storage *s, struct storage_entry *e, bool removed)
{
	pthread_mutex_lock(&s->lock);
	bool again = !removed && !e->queue->ending;
	if (again)
		wait_again(s, e);
	pthread_mutex_unlock(&s->lock);
	if (again)
		return;
	metric_add(s->count.quarantined, removed && e->quarantine);
	retire(s, e, true);
}

static void end_entries(struct storage *s, struct batch *b, bool ok)
{
	for (struct storage_entry *e = b->first, *next; e; e = next) {
		next = e->next;
		if (e->state == STORAGE_WRITING)
			(ok ? end_stored : end_failed)(s, e);
		else
			end_removal(s, e, ok);
	}
}

/* ---- the thread */

/* Under the lock. Sets apart what was removed before it was written. */
static void take(struct storage *s, struct batch *b, struct batch *cancelled)
{
	*b = (struct batch){ .last = &b->first };
	*cancelled = (struct batch){ .last = &cancelled->first };
	while (s->first && b->bytes < BATCH_BYTES) {
		struct storage_entry *e = s->first;
		s->first = e->next;
		if (e->state == STORAGE_WAITING)
			e->state = STORAGE_WRITING;
		if (e->state == STORAGE_CANCELLED)
			storage_count_pending(s, -e->space);
		batch_add(e->state == STORAGE_CANCELLED ? cancelled : b, e);
	}
	if (!s->first)
		s->last = &s->first;
}

static void log_state(struct storage *s, const struct error *why)
{
	bool failing = why->kind != ERROR_NONE;
	if (failing == s->failing)
		return;
	if (!failing)
		log_info(&s->log, "The storage works again", log_text("directory", s->path));
	else if (s->options.on_error == STORAGE_REFUSE)
		log_error(&s->log, "The storage cannot be written; senders have to retry",
			  log_text("directory", s->path), log_text("error", why->text));
	else
		log_error(&s->log, "The storage cannot be written; queues continue in memory",
			  log_text("directory", s->path), log_text("error", why->text));
}

static void set_state(struct storage *s, const struct error *why)
{
	log_state(s, why);
	pthread_mutex_lock(&s->owners);
	set_failing(s, why->kind != ERROR_NONE);
	pthread_mutex_unlock(&s->owners);
}

/* Removals alone, and then appends alone: where the disk is full, removals make room. */
static enum database_result commit_apart(struct storage *s, struct batch *b, struct error *err)
{
	struct batch removals = { .last = &removals.first }, appends = { .last = &appends.first };
	for (struct storage_entry *e = b->first, *next; e; e = next) {
		next = e->next;
		batch_add(e->state == STORAGE_WRITING ? &appends : &removals, e);
	}
	enum database_result result = commit(s, &removals, err);
	end_entries(s, &removals, result == DATABASE_OK);
	if (result == DATABASE_OK) {
		error_clear(err);
		result = commit(s, &appends, err);
	}
	end_entries(s, &appends, result == DATABASE_OK);
	return result;
}

static enum database_result write_batch(struct storage *s, struct batch *b, struct error *err)
{
	enum database_result result = commit(s, b, err);
	if ((result == DATABASE_FULL || result == DATABASE_DISK) && b->removes && b->appends) {
		error_clear(err);
		return commit_apart(s, b, err);
	}
	end_entries(s, b, result == DATABASE_OK);
	return result;
}

/* A damaged database is replaced; after another error the same one is opened again. */
static void reopen(struct storage *s, bool damaged, struct error *err)
{
	pthread_mutex_lock(&s->owners);
	if (damaged)
		set_aside(s, err);
	else
		detach(s);
	error_clear(err);
	attach(s, err);
	pthread_mutex_unlock(&s->owners);
}

/* Attaches what could not be attached before. */
static enum database_result complete(struct storage *s, struct error *err)
{
	pthread_mutex_lock(&s->owners);
	enum database_result result = s->db ? attach_queues(s, err) : DATABASE_REOPEN;
	pthread_mutex_unlock(&s->owners);
	return result;
}

/* While a queue cannot be attached, the others can still remove. */
static enum database_result write_attached(struct storage *s, struct batch *b, struct error *err)
{
	struct error missing;
	error_clear(&missing);
	enum database_result result = complete(s, &missing);
	if (result < DATABASE_REOPEN)
		result = write_batch(s, b, err);
	else
		end_entries(s, b, false);
	if (err->kind == ERROR_NONE)
		*err = missing;
	return result;
}

static void write_once(struct storage *s, struct batch *b, bool broken)
{
	struct error err;
	error_clear(&err);
	enum database_result result = DATABASE_BROKEN;
	if (broken)
		error_set(&err, ERROR_CONFIG,
			  "the database is damaged, or the disk cannot read it");
	if (broken)
		end_entries(s, b, false);
	else
		result = write_attached(s, b, &err);
	if (result == DATABASE_BROKEN || result == DATABASE_REOPEN) {
		struct batch none = { .last = &none.first };
		reopen(s, result == DATABASE_BROKEN, &err);
		if (err.kind == ERROR_NONE)
			commit(s, &none, &err); /* does it work? */
	}
	set_state(s, &err);
}

/* Under the lock. While the disk fails, one attempt per second. */
static void wait_for_work(struct storage *s)
{
	struct timespec until;
	int code = 0;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += RETRY_S;
	while (s->failing && !s->hurry && !s->ended && !code)
		code = pthread_cond_timedwait(&s->changed, &s->lock, &until);
	while (!s->failing && !s->first && !s->broken && !s->incomplete && !s->ended)
		pthread_cond_wait(&s->changed, &s->lock);
	s->hurry = false;
}

void *writer_run(void *argument)
{
	struct storage *s = argument;
	struct batch batch, cancelled;
	pthread_mutex_lock(&s->lock);
	for (;;) {
		wait_for_work(s);
		if (s->ended && !s->first)
			break;
		bool broken = s->broken, due = broken || s->incomplete || s->failing;
		take(s, &batch, &cancelled);
		pthread_mutex_unlock(&s->lock);
		for (struct storage_entry *e = cancelled.first, *next; e; e = next) {
			next = e->next;
			retire(s, e, true);
		}
		if (batch.first || due)
			write_once(s, &batch, broken);
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}
