/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/durable.h"

#include "base/memory.h"
#include "pipeline/budget.h"
#include "pipeline/delivery/delivery_private.h"
#include "pipeline/delivery/on_disk.h"
#include "pipeline/delivery/record.h"

#define REOPEN_NS UINT64_C(50000000)
#define HEAD_MAX ((size_t)64 << 20)

/* An item's record. Allocated here; freed when neither the storage nor the item needs it. */
struct stored {
	struct storage_entry entry;
	struct delivery *delivery;
	struct item *item;           /* under the delivery's lock; NULL: it is gone */
	struct stored *next, **link; /* of those with an item; under the delivery's lock */
	struct book *book;
	struct packet *packet; /* until it is committed; may hold acks of `durable` */
	struct bytes head;
	bool acks;
	bool loaded; /* the record was read */
	/* Under the delivery's lock. removed: the storage removes it, and then calls release.
	 * keeps: it has a hold of the item until the commit has ended, and stays if it succeeds. */
	bool committed, removed, keeps;
};

static void stored_free(struct stored *stored)
{
	bytes_fini(&stored->head);
	packet_unref(&stored->packet);
	memory_free(stored);
}

/* Under the delivery's lock. */
static void hold_item(struct durable *u, struct stored *stored, struct item *item)
{
	stored->item = item;
	item->stored = stored;
	stored->link = &u->held;
	stored->next = u->held;
	if (stored->next)
		stored->next->link = &stored->next;
	u->held = stored;
}

/* The same. */
static void release_item(struct stored *stored)
{
	stored->item->stored = NULL;
	stored->item = NULL;
	*stored->link = stored->next;
	if (stored->next)
		stored->next->link = stored->link;
}

static void release_acks(struct stored *stored, enum ack_outcome outcome)
{
	if (stored->acks)
		packet_release_acks(stored->packet, ACK_MODE(ACK_DURABLE), outcome);
	stored->acks = false;
}

static struct stored *stored_of(struct storage_entry *entry)
{
	return (struct stored *)((char *)entry - offsetof(struct stored, entry));
}

/* ---- the storage's calls */

static void wake(void *argument)
{
	delivery_wake(argument);
}

/* The first time, durable_start has yet to do the rest. */
static void attached(void *context, struct storage_queue *queue, uint64_t records)
{
	struct delivery *d = context;
	struct durable *u = &d->durable;
	pthread_mutex_lock(&d->lock);
	u->records = 0;
	on_disk_reconcile(d);
	on_disk_restore(d, storage_queue_accounts(queue), records);
	pthread_mutex_unlock(&d->lock);
	on_disk_look(d);
	if (u->open)
		delivery_wake(d);
}

static void changed(void *context)
{
	delivery_wake(context);
}

/* Under the lock. The item is in memory alone; if nobody else has it, it waits. */
static void lose_record(struct delivery *d, struct stored *stored)
{
	struct item *item = stored->item;
	release_item(stored);
	metric_add(d->count.unstored, 1);
	if (item->spilled || stored->keeps)
		backlog_push(&d->backlog, item);
	item->spilled = false;
}

/* Under the lock. The item leaves memory; the caller frees it. */
static void unload(struct delivery *d, struct item *item)
{
	on_disk_add(d, item, item->stored->entry.sequence);
	release_item(item->stored);
	backlog_detach(&d->backlog, item);
	packet_unref(&item->packet);
}

/* Under the lock. *spilled: the item to free. *kept: the item of which the record had a hold. */
static void end_commit(struct delivery *d, struct stored *stored, bool ok, struct item **spilled,
		       struct item **kept)
{
	struct item *item = stored->item;
	*spilled = *kept = NULL;
	stored->committed = ok;
	if (!item)
		return;
	d->durable.spilling -= item->spilled;
	if (!ok)
		lose_record(d, stored);
	else if (item->spilled)
		unload(d, *spilled = item);
	else if (stored->keeps)
		*kept = item;
	item->kept = *kept != NULL;
}

static void done(struct storage_entry *entry, bool ok)
{
	struct stored *stored = stored_of(entry);
	struct delivery *d = stored->delivery;
	pthread_mutex_lock(&d->lock);
	struct item *spilled, *kept;
	end_commit(d, stored, ok, &spilled, &kept);
	/* A removal can come between the commit and this call. */
	bool gone = !stored->item && !stored->removed;
	struct packet *packet = stored->packet;
	bool acks = stored->acks;
	stored->packet = NULL;
	stored->acks = false;
	bytes_fini(&stored->head);
	pthread_mutex_unlock(&d->lock);
	if (acks)
		packet_release_acks(packet, ACK_MODE(ACK_DURABLE), ok ? ACK_TAKEN : ACK_FAILED);
	packet_unref(&packet);
	memory_free(spilled);
	if (!ok)
		storage_remove(entry); /* it is released when this call has returned */
	else if (gone)
		stored_free(stored);
	if (kept)
		delivery_release_item(d, kept);
	if (!ok)
		delivery_drop_returned(d);
	delivery_wake(d);
}

static void release(struct storage_entry *entry)
{
	struct stored *stored = stored_of(entry);
	if (stored->loaded)
		reader_removed(&stored->delivery->durable.reader, entry->sequence);
	release_acks(stored, ACK_TAKEN);
	stored_free(stored);
}

/* ---- life */

void durable_init(struct durable *u, struct delivery *d, struct storage *storage)
{
	reader_init(&u->reader, (enum queue_order)d->options.config->sending_queue.order.index);
	u->storage = storage ? storage_ref(storage) : NULL;
}

void durable_fini(struct durable *u)
{
	loop_timer_unref(&u->retry);
	storage_unref(&u->storage);
	reader_fini(&u->reader);
}

static void try_again(void *argument)
{
	struct delivery *d = argument;
	struct error err;
	error_clear(&err);
	if (!d->durable.ending && !durable_start(d, &err))
		log_error(d->options.log, "The queue on disk cannot be opened",
			  log_text("error", err.text));
}

bool durable_start(struct delivery *d, struct error *err)
{
	struct durable *u = &d->durable;
	const struct storage_owner owner = { d, attached, changed };
	if (!u->storage || u->queue)
		return true;
	u->queue = storage_queue_open(u->storage, d->options.id, &owner, err);
	if (u->queue) {
		u->open = true;
		on_disk_look(d);
		/* Not before the program is ready: what is loaded is not part of its baseline. */
		loop_post(d->options.loop, wake, d);
		return true;
	}
	if (err->kind != ERROR_BUSY)
		return false;
	if (!u->retry)
		u->retry = loop_timer_new(d->options.loop, try_again, d);
	loop_timer_start(u->retry, REOPEN_NS);
	error_clear(err);
	return true;
}

void durable_end(struct delivery *d)
{
	if (!d->durable.ending && d->durable.queue)
		storage_queue_end(d->durable.queue);
	d->durable.ending = true;
}

bool durable_leaves(struct delivery *d)
{
	struct durable *u = &d->durable;
	if (u->leaving || u->held || u->spilling || u->loading || u->looking ||
	    !storage_queue_settled(u->queue))
		return false;
	u->leaving = true;
	return true;
}

int64_t durable_close(struct delivery *d)
{
	struct storage_queue *queue = d->durable.queue;
	int64_t all = 0;
	pthread_mutex_lock(&d->lock);
	for (struct book *book = d->books; book; book = book->next) {
		int64_t left = book->disk + book->kept;
		storage_queue_leave(queue, book->account, left);
		book_leave(book, (uint64_t)left);
		book->disk = book->kept = 0;
		all += left;
	}
	d->durable.open = false;
	d->durable.queue = NULL;
	pthread_mutex_unlock(&d->lock);
	storage_queue_close(&queue);
	return all;
}

/* ---- entering */

bool durable_needs_record(const struct delivery *d)
{
	const struct durable *u = &d->durable;
	return u->storage && (!u->open || storage_on_error(u->storage) == STORAGE_REFUSE);
}

bool durable_refuses(const struct delivery *d)
{
	const struct durable *u = &d->durable;
	return durable_needs_record(d) && (!u->open || !storage_takes(u->storage));
}

struct stored *durable_record(struct delivery *d, struct packet *packet, struct book *book)
{
	struct durable *u = &d->durable;
	bool required = u->storage && d->options.config->required;
	enum record_account account =
		book_is_shared(book) ? RECORD_ACCOUNT_SHARED : RECORD_ACCOUNT_OWN;
	if (required)
		packet_hold_acks(packet, ACK_MODE(ACK_DURABLE));
	struct stored *stored =
		u->open && storage_takes(u->storage) ? memory_new(sizeof *stored) : NULL;
	if (stored)
		bytes_init(&stored->head, HEAD_MAX);
	if (!stored ||
	    !record_encode(packet, packet->origin, book->pipeline, account, &stored->head)) {
		if (stored)
			stored_free(stored);
		if (required)
			packet_release_acks(packet, ACK_MODE(ACK_DURABLE), ACK_FAILED);
		return NULL;
	}
	stored->delivery = d;
	stored->book = book;
	stored->packet = packet_ref(packet);
	stored->acks = required;
	stored->entry = (struct storage_entry){
		.head = bytes_view(&stored->head),
		.body = bytes_view(&packet->otlp),
		.account = storage_queue_account(u->queue, book->account),
		.samples = packet->samples,
		.bytes = packet->otlp.len,
		.done = done,
		.release = release,
	};
	return stored;
}

bool durable_spills(const struct delivery *d)
{
	const struct durable *u = &d->durable;
	return u->open &&
	       (u->records > 0 || u->spilling || u->loading || backlog_is_half_full(&d->backlog));
}

bool durable_append(struct delivery *d, struct item *item, struct stored *stored)
{
	struct durable *u = &d->durable;
	item->spilled = durable_spills(d);
	bool first = item->spilled && u->records <= 0 && !u->spilling && !u->loading;
	if (!storage_append(u->queue, &stored->entry)) {
		item->spilled = false;
		return false;
	}
	if (first)
		u->reader.first = stored->entry.sequence;
	if (item->spilled)
		on_disk_spill(d, item, stored->entry.sequence);
	hold_item(u, stored, item);
	return true;
}

void durable_count(struct delivery *d, const struct item *item)
{
	if (d->durable.storage && !item->stored)
		metric_add(d->count.unstored, 1);
}

/* Only a whole packet can be sent again later. */
enum durable_keeping durable_keep(struct delivery *d, struct item *item)
{
	struct item *root = item->parent ? item->parent : item;
	struct stored *stored = root->stored;
	if (!stored || !(d->draining || d->durable.ending))
		return DURABLE_DROPS;
	root->kept = stored->committed;
	if (stored->committed)
		return DURABLE_KEEPS;
	if (item->parent || item->left != item->packet->samples)
		return d->durable.abandoned ? DURABLE_DROPS : DURABLE_IS_WRITING;
	item->holds++;
	stored->keeps = true;
	return DURABLE_KEEPS;
}

void durable_discard(struct stored **stored, enum ack_outcome outcome)
{
	if (!*stored)
		return;
	release_acks(*stored, outcome);
	stored_free(*stored);
	*stored = NULL;
}

void durable_remove(struct item *item)
{
	struct stored *stored = item->stored;
	release_item(stored);
	stored->removed = !item->kept;
	item->book->kept += item->kept ? (int64_t)item->left : 0;
	if (stored->removed)
		storage_remove(&stored->entry);
	else
		stored_free(stored);
}

int64_t durable_samples(const struct delivery *d)
{
	int64_t samples = 0;
	for (const struct book *book = d->books; book; book = book->next)
		samples += book->disk + book->kept;
	for (const struct stored *s = d->durable.held; s; s = s->next)
		samples += s->committed ? (int64_t)s->item->queued : 0;
	return samples;
}

/* ---- reading */

/* Under the lock. The book in which the record counts. Where the totals of the queue were damaged,
 * its samples were not known until now; *account is NULL then, as no total has them. */
static struct book *find_book(struct delivery *d, const struct reading *r,
			      struct storage_account **account)
{
	*account = NULL;
	if (!r->pipeline)
		return NULL;
	struct book *book =
		book_of_record(d->books, r->pipeline, r->tenant, r->account, r->samples);
	if (book) {
		*account = storage_queue_account(d->durable.queue, book->account);
		return book;
	}
	book = book_of(&d->books, d->options.ledger, d->options.id, r->pipeline, r->tenant);
	book_restore(book, r->samples);
	book->disk += (int64_t)r->samples;
	return book;
}

/* Under the lock. */
static struct stored *stored_record(struct delivery *d, const struct reading *r)
{
	struct durable *u = &d->durable;
	struct storage_account *account;
	struct book *book = find_book(d, r, &account);
	struct stored *stored = memory_new(sizeof *stored);
	stored->delivery = d;
	stored->book = book;
	stored->committed = stored->loaded = true;
	stored->entry = (struct storage_entry){
		.account = account,
		.sequence = r->sequence,
		.samples = r->samples,
		.bytes = r->packet ? r->packet->otlp.len : 0,
		.quarantine = r->packet ? NULL : record_faults[r->fault],
		.done = done,
		.release = release,
	};
	storage_adopt(u->queue, &stored->entry, r->size);
	return stored;
}

static void set_apart(struct delivery *d, const struct reading *r)
{
	log_error(d->options.log, "A record of the queue cannot be read; it is in quarantine",
		  log_text("reason", record_faults[r->fault]), log_number("number", r->sequence),
		  log_number("dropped_items", (int64_t)r->samples));
	metric_add(d->count.unreadable[r->fault], 1);
	pthread_mutex_lock(&d->lock);
	d->durable.records--;
	struct stored *stored = stored_record(d, r);
	if (stored->book)
		on_disk_lose(d, stored->book, (int64_t)r->samples);
	if (d->backlog.sizer == SIZER_REQUESTS) {
		d->durable.units--;
		backlog_count(&d->backlog, -1);
	}
	pthread_mutex_unlock(&d->lock);
	storage_remove(&stored->entry);
}

/* Under the lock. */
static struct item *loaded_item(struct delivery *d, struct reading *r)
{
	struct stored *stored = stored_record(d, r);
	struct item *item = delivery_item(d, r->packet, stored->book);
	item->answered = item->placed = true;
	hold_item(&d->durable, stored, item);
	return item;
}

/* Its place was on disk, and is in memory now. */
static void take_item(struct delivery *d, struct sending *s, struct reading *r)
{
	struct durable *u = &d->durable;
	if (d->options.budget)
		packet_charge_to(r->packet, budget_charge, d->options.budget);
	pthread_mutex_lock(&d->lock);
	struct item *item = loaded_item(d, r);
	on_disk_take(d, item, r->sequence);
	u->loading--;
	on_disk_reconcile(d);
	backlog_attach(&d->backlog, item);
	s->item = item;
	s->expected = plan_expected(&d->plan, item->packet);
	backlog_made(&d->backlog, s->expected);
	pthread_mutex_unlock(&d->lock);
	packet_unref(&r->packet);
	sending_begin(s);
}

/* There is no record after all. If the disk fails, the consumer does not look again at once. */
static void give_up(struct delivery *d, struct sending *s, bool none)
{
	struct durable *u = &d->durable;
	pthread_mutex_lock(&d->lock);
	u->records = none && !u->spilling ? 0 : u->records;
	u->loading--;
	on_disk_reconcile(d);
	bool rests = !none && !u->ending;
	if (rests) {
		s->next = d->idle;
		d->idle = s;
		d->busy--;
	}
	pthread_mutex_unlock(&d->lock);
	if (!rests)
		delivery_finish(s, ACK_TAKEN);
}

/* On a pool thread. Once the consumer has an item or is idle, others may end the delivery, and free
 * it. */
static void load(void *argument)
{
	struct sending *s = argument;
	struct delivery *d = s->delivery;
	struct reading r;
	enum storage_read result;
	while ((result = reader_next(&d->durable.reader, d->durable.queue, &r)) == STORAGE_READ &&
	       !r.packet) {
		set_apart(d, &r);
		reading_fini(&r);
	}
	if (result == STORAGE_READ)
		take_item(d, s, &r);
	else
		give_up(d, s, result == STORAGE_NOTHING);
	reading_fini(&r);
}

static bool may_load(const struct delivery *d)
{
	const struct durable *u = &d->durable;
	const struct backlog *b = &d->backlog;
	bool fits = !d->busy || !b->bytes_max || b->bytes < b->bytes_max;
	return u->open && !u->ending && u->records > (int64_t)u->loading && fits;
}

bool durable_loads_next(const struct delivery *d)
{
	return may_load(d) && (!d->backlog.head || d->backlog.order == ORDER_NEWEST);
}

void durable_load(struct sending *s)
{
	loop_work(s->delivery->options.loop, load, NULL, s);
}
