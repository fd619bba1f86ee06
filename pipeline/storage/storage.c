/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/storage/storage.h"

#include "base/memory.h"
#include "base/path.h"
#include "base/thread.h"
#include "pipeline/storage/storage_private.h"

#include <assert.h>

#define TABLE "records %s"
#define NAME_MAX_BYTES (DATABASE_NAME_MAX - strlen(TABLE) + strlen("%s"))

/* A record of up to half a page shares one; a larger one has pages of its own. */
enum { PAGE = 4096, SHARED_MAX = PAGE / 2, NODE = 24, TOTALS_MAX = 8 << 20, FREE_SHARE = 16 };

static const struct metric used_bytes = { "otelcol_storage_used_bytes", METRIC_GAUGE, "By",
					  "Bytes of records in the open queues of the storage." };
static const struct metric limit_bytes = { "otelcol_storage_limit_bytes", METRIC_GAUGE, "By",
					   "Maximum of the bytes of records (`max_size_mib`)." };
static const struct metric is_available = {
	"otelcol_storage_available", METRIC_GAUGE, "{state}",
	"1 if the last write to the disk succeeded, 0 while the disk fails or is full."
};
static const struct metric commit_count = { "otelcol_storage_commits", METRIC_COUNTER, "{commits}",
					    "Commits, each of all changes that were waiting." };
static const struct metric failure_count = { "otelcol_storage_failures", METRIC_COUNTER,
					     "{commits}", "Commits that failed." };
static const struct metric quarantined_records = {
	"otelcol_storage_quarantined_records", METRIC_COUNTER, "{records}",
	"Records that could not be read, and were moved to the table `quarantine`."
};
static const struct metric set_aside = {
	"otelcol_storage_databases_set_aside", METRIC_COUNTER, "{databases}",
	"Databases that were damaged or foreign, and were renamed."
};

const struct metric *const storage_metrics[] = { &used_bytes,    &limit_bytes,
						 &is_available,  &commit_count,
						 &failure_count, &quarantined_records,
						 &set_aside,     NULL };

struct storages *storages_new(struct metrics *metrics)
{
	struct storages *all = memory_new(sizeof *all);
	all->metrics = metrics;
	pthread_mutex_init(&all->lock, NULL);
	return all;
}

void storages_unref(struct storages **storages)
{
	struct storages *all = *storages;
	*storages = NULL;
	if (!all)
		return;
	assert(!all->first);
	left_free(&all->left);
	pthread_mutex_destroy(&all->lock);
	memory_free(all);
}

static enum storage_condition condition(const struct storage *s)
{
	return s->failing || s->incomplete ? STORAGE_FAILING
	       : !storage_takes(s)         ? STORAGE_FULL
	       : s->set_aside              ? STORAGE_SET_ASIDE
					   : STORAGE_HEALTHY;
}

void storages_each(struct storages *all,
		   void (*report)(void *context, const char *id, enum storage_condition condition,
				  enum storage_on_error on_error),
		   void *context)
{
	pthread_mutex_lock(&all->lock);
	for (const struct storage *s = all->first; s; s = s->next)
		if (s->running)
			report(context, s->id, condition(s), s->options.on_error);
	pthread_mutex_unlock(&all->lock);
}

static void init_counters(struct storage *s)
{
	const struct metric_label labels[] = { { "storage", s->id }, { 0 } };
	struct metrics *m = s->all->metrics;
	s->count = (struct storage_counters){
		.used = metrics_series(m, &used_bytes, labels),
		.limit = metrics_series(m, &limit_bytes, labels),
		.available = metrics_series(m, &is_available, labels),
		.commits = metrics_series(m, &commit_count, labels),
		.failures = metrics_series(m, &failure_count, labels),
		.quarantined = metrics_series(m, &quarantined_records, labels),
		.set_aside = metrics_series(m, &set_aside, labels),
	};
	metric_set(s->count.limit, (int64_t)s->options.max_bytes);
}

static struct storage *storage_new(struct storages *all, const struct storage_options *options,
				   char *path)
{
	struct storage *s = memory_new(sizeof *s);
	s->all = all;
	s->refs = 1;
	s->id = memory_text(options->id);
	s->path = path;
	s->options = *options;
	s->log = (struct log){ .component_kind = "extension", .component_id = s->id };
	s->directory = s->lock_file = -1;
	s->last = &s->first;
	s->failing = true; /* nothing is accepted before it is open */
	s->made = 1;
	pthread_mutex_init(&s->owners, NULL);
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_t clock;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &clock);
	pthread_condattr_destroy(&clock);
	init_counters(s);
	pthread_mutex_lock(&all->lock);
	s->next = all->first;
	all->first = s;
	pthread_mutex_unlock(&all->lock);
	return s;
}

struct storage *storages_get(struct storages *all, const struct storage_options *options)
{
	char *path = path_normal(options->directory);
	for (struct storage *s = all->first; s; s = s->next)
		if (!strcmp(s->path, path)) {
			memory_free(path);
			return storage_ref(s);
		}
	return storage_new(all, options, path);
}

struct storage *storage_ref(struct storage *s)
{
	s->refs++;
	return s;
}

static void stop_writer(struct storage *s)
{
	if (!s->running)
		return;
	pthread_mutex_lock(&s->lock);
	s->ended = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
}

static void unlink_storage(struct storage *s)
{
	pthread_mutex_lock(&s->all->lock);
	struct storage **at = &s->all->first;
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	pthread_mutex_unlock(&s->all->lock);
}

void storage_unref(struct storage **storage)
{
	struct storage *s = *storage;
	*storage = NULL;
	if (!s || --s->refs)
		return;
	unlink_storage(s);
	stop_writer(s);
	assert(!s->queues && !s->first);
	database_close(&s->db);
	directory_close(s);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->owners);
	memory_free(s->id);
	memory_free(s->path);
	memory_free(s);
}

static bool start_writer(struct storage *s, struct error *err)
{
	s->running = thread_start(&s->thread, writer_run, s, err);
	return s->running;
}

bool storage_open(struct storage *s, struct error *err)
{
	if (s->running)
		return true;
	struct error why;
	error_clear(&why);
	bool found = directory_open(s, &why), ok = found && writer_attach(s, &why);
	s->failing = !ok;
	metric_set(s->count.available, ok);
	if (!ok && (s->options.on_error == STORAGE_REFUSE || (!found && why.kind != ERROR_BUSY))) {
		error_set(err, ERROR_CONFIG, "%s", why.text);
		directory_close(s);
		return false;
	}
	if (!ok)
		log_error(&s->log, "The storage cannot be used; queues continue in memory",
			  log_text("error", why.text));
	return start_writer(s, err);
}

enum storage_on_error storage_on_error(const struct storage *s)
{
	return s->options.on_error;
}

/* Full from the first record that did not fit until a sixteenth is free. */
bool storage_takes(const struct storage *s)
{
	int64_t max = (int64_t)s->options.max_bytes;
	return !s->failing && !s->incomplete && s->used < (s->full ? max - max / FREE_SHARE : max);
}

/* ---- queues */

void storage_count_stored(struct storage *s)
{
	int64_t stored = 0;
	for (const struct storage_queue *q = s->queues; q; q = q->next)
		for (const struct storage_account *a = q->accounts; a; a = a->next)
			stored += a->committed.space;
	s->used = stored + s->pending;
	metric_set(s->count.used, stored);
}

void storage_count_pending(struct storage *s, int64_t bytes)
{
	s->pending += bytes;
	s->used += bytes;
}

/* A queue whose totals are damaged keeps its records; only their numbers are not known. */
static void read_totals(struct storage_queue *q, struct bytes *data)
{
	struct error err;
	char *name = memory_format("queue %s", q->name);
	error_clear(&err);
	enum database_result result = database_get(q->storage->db, name, data, &err);
	memory_free(name);
	if (result == DATABASE_NONE)
		return;
	pthread_mutex_lock(&q->storage->lock);
	bool ok = result == DATABASE_OK && totals_decode(bytes_view(data), &q->accounts, &err);
	pthread_mutex_unlock(&q->storage->lock);
	if (!ok)
		log_error(&q->storage->log, "The totals of a queue cannot be read",
			  log_text("queue", q->name), log_text("error", err.text));
}

static void clear_totals(struct storage_queue *q)
{
	pthread_mutex_lock(&q->storage->lock);
	for (struct storage_account *a = q->accounts; a; a = a->next)
		a->committed = a->change = (struct storage_totals){ 0 };
	pthread_mutex_unlock(&q->storage->lock);
}

/* The owner has entries of what is in a database that it knows. */
static void tell_owner(struct storage_queue *q, bool known)
{
	if (known)
		q->owner.changed(q->owner.context);
	else
		q->owner.attached(q->owner.context, q, (uint64_t)q->records);
}

enum database_result queue_attach(struct storage_queue *q, struct error *err)
{
	struct storage *s = q->storage;
	uint64_t records, last;
	unsigned table;
	char *name = memory_format(TABLE, q->name);
	enum database_result result = database_table(s->db, name, &table, err);
	memory_free(name);
	if (result == DATABASE_OK)
		result = database_extent(s->db, table, &records, &last, err);
	if (result != DATABASE_OK)
		return result;
	struct bytes data;
	bytes_init(&data, TOTALS_MAX);
	clear_totals(q);
	read_totals(q, &data);
	bytes_fini(&data);
	q->records = (int64_t)records;
	pthread_mutex_lock(&s->lock);
	q->table = table;
	q->attached = true;
	bool known = q->known == s->made;
	q->known = s->made;
	q->last = last > q->last ? last : q->last;
	storage_count_stored(s);
	pthread_mutex_unlock(&s->lock);
	tell_owner(q, known);
	return DATABASE_OK;
}

static struct storage_queue *find_queue(const struct storage *s, const char *name, uint32_t *count)
{
	*count = 0;
	for (struct storage_queue *q = s->queues; q; q = q->next, ++*count)
		if (!strcmp(q->name, name))
			return q;
	return NULL;
}

/* A new queue is a change of the database. If the disk does not allow it, the writer tries again.
 */
static void attach_first(struct storage_queue *q)
{
	struct storage *s = q->storage;
	struct error err;
	error_clear(&err);
	enum database_result result = s->db ? queue_attach(q, &err) : DATABASE_OK;
	if (result == DATABASE_OK)
		return;
	pthread_mutex_lock(&s->lock);
	s->broken = s->broken || result == DATABASE_BROKEN;
	s->incomplete = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

struct storage_queue *storage_queue_open(struct storage *s, const char *name,
					 const struct storage_owner *owner, struct error *err)
{
	uint32_t count;
	struct storage_queue *q = NULL;
	pthread_mutex_lock(&s->owners);
	if (find_queue(s, name, &count)) {
		error_set(err, ERROR_BUSY, "the queue %s is in use", name);
	} else if (strlen(name) > NAME_MAX_BYTES) {
		error_set(err, ERROR_CONFIG, "the name of a queue has at most %zu bytes",
			  NAME_MAX_BYTES);
	} else if (count >= DATABASE_TABLES - 2) {
		error_set(err, ERROR_CONFIG, "a storage has at most %d queues",
			  DATABASE_TABLES - 2);
	} else {
		q = memory_new(sizeof *q);
		*q = (struct storage_queue){
			.storage = s, .name = memory_text(name), .owner = *owner, .next = s->queues
		};
		s->queues = q;
		left_take(q);
		attach_first(q);
	}
	pthread_mutex_unlock(&s->owners);
	return q;
}

bool storage_queue_settled(struct storage_queue *q)
{
	pthread_mutex_lock(&q->storage->lock);
	bool settled = !q->outstanding && !q->readers;
	pthread_mutex_unlock(&q->storage->lock);
	return settled;
}

void storage_queue_end(struct storage_queue *q)
{
	pthread_mutex_lock(&q->storage->lock);
	q->ending = q->storage->hurry = true;
	pthread_cond_broadcast(&q->storage->changed);
	pthread_mutex_unlock(&q->storage->lock);
}

void storage_queue_close(struct storage_queue **queue)
{
	struct storage_queue *q = *queue;
	*queue = NULL;
	if (!q)
		return;
	struct storage *s = q->storage;
	pthread_mutex_lock(&s->owners);
	struct storage_queue **at = &s->queues;
	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	pthread_mutex_lock(&s->lock);
	storage_count_stored(s);
	pthread_mutex_unlock(&s->lock);
	pthread_mutex_unlock(&s->owners);
	assert(!q->outstanding && !q->readers);
	left_add(q);
	totals_free(&q->accounts);
	memory_free(q->name);
	memory_free(q);
}

struct storage_account *storage_queue_account(struct storage_queue *q, const char *name)
{
	pthread_mutex_lock(&q->storage->lock);
	struct storage_account *a = totals_account(&q->accounts, name, strlen(name));
	pthread_mutex_unlock(&q->storage->lock);
	return a;
}

struct storage_account *storage_queue_accounts(const struct storage_queue *q)
{
	return q->accounts;
}

/* ---- entries */

static int64_t space_of(size_t size)
{
	size_t pages = (size + NODE + PAGE - 1) / PAGE * PAGE;
	return (int64_t)(size + NODE <= SHARED_MAX ? size + NODE : pages + NODE);
}

/* Under the lock. */
static void wait_for_writer(struct storage *s, struct storage_entry *e, enum storage_state state)
{
	e->state = state;
	e->next = NULL;
	*s->last = e;
	s->last = &e->next;
	e->queue->outstanding++;
	pthread_cond_signal(&s->changed);
}

bool storage_append(struct storage_queue *q, struct storage_entry *e)
{
	struct storage *s = q->storage;
	e->queue = q;
	e->space = space_of(e->head.len + e->body.len);
	pthread_mutex_lock(&s->lock);
	bool taken =
		q->known && storage_takes(s) && s->used + e->space <= (int64_t)s->options.max_bytes;
	s->full = !taken;
	if (taken) {
		e->sequence = ++q->last;
		storage_count_pending(s, e->space);
		wait_for_writer(s, e, STORAGE_WAITING);
	}
	pthread_mutex_unlock(&s->lock);
	return taken;
}

void storage_adopt(struct storage_queue *q, struct storage_entry *e, size_t size)
{
	e->queue = q;
	e->space = space_of(size);
	e->state = STORAGE_STORED;
}

void storage_remove(struct storage_entry *e)
{
	struct storage *s = e->queue->storage;
	pthread_mutex_lock(&s->lock);
	bool failed = e->state == STORAGE_FAILED;
	if (e->state == STORAGE_WAITING)
		e->state = STORAGE_CANCELLED;
	else if (e->state == STORAGE_WRITING)
		e->unwanted = true;
	else if (e->state == STORAGE_STORED)
		wait_for_writer(s, e, STORAGE_REMOVING);
	pthread_mutex_unlock(&s->lock);
	if (failed)
		e->release(e);
}

/* ---- reading */

/* The database, which stays open until done_reading. */
static struct database *begin_reading(struct storage_queue *q)
{
	struct storage *s = q->storage;
	pthread_mutex_lock(&s->lock);
	struct database *db = s->broken || !q->attached ? NULL : s->db;
	s->readers += db != NULL;
	q->readers += db != NULL;
	pthread_mutex_unlock(&s->lock);
	return db;
}

static void done_reading(struct storage_queue *q, bool broken)
{
	struct storage *s = q->storage;
	pthread_mutex_lock(&s->lock);
	s->readers--;
	q->readers--;
	s->broken = s->broken || broken;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

typedef enum database_result database_reading(struct database *db, unsigned table, uint64_t number,
					      database_use *use, void *context, struct error *err);

static enum storage_read read_record(struct storage_queue *q, database_reading *read,
				     uint64_t number, database_use *use, void *context)
{
	struct error err;
	struct database *db = begin_reading(q);
	error_clear(&err);
	if (!db)
		return STORAGE_UNREADABLE;
	enum database_result result = read(db, q->table, number, use, context, &err);
	done_reading(q, result == DATABASE_BROKEN);
	return result == DATABASE_OK     ? STORAGE_READ
	       : result == DATABASE_NONE ? STORAGE_NOTHING
					 : STORAGE_UNREADABLE;
}

enum storage_read storage_read(struct storage_queue *q, uint64_t from,
			       void (*use)(void *context, uint64_t sequence, struct view record),
			       void *context)
{
	return read_record(q, database_read, from, use, context);
}

enum storage_read storage_read_back(struct storage_queue *q, uint64_t upto,
				    void (*use)(void *context, uint64_t sequence,
						struct view record),
				    void *context)
{
	return read_record(q, database_read_back, upto, use, context);
}
