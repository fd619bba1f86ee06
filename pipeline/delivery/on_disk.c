/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/on_disk.h"

void on_disk_lose(struct delivery *d, struct book *book, int64_t samples)
{
	book->disk -= samples;
	metric_add(d->count.failed, samples);
	book_settle(book, LEDGER_CORRUPT, (uint64_t)samples);
}

/* Is no record left of those that were added? One that was taken before that is in `records`
 * when it is added; at the latest when nothing is being spilled. */
static bool is_empty(const struct durable *u)
{
	return u->records + (u->spilling ? u->early : 0) <= 0;
}

void on_disk_reconcile(struct delivery *d)
{
	struct durable *u = &d->durable;
	if (!is_empty(u) || u->loading)
		return;
	backlog_count(&d->backlog, -u->units);
	u->records = u->units = 0;
	for (struct book *book = d->books; book; book = book->next)
		if (book->disk > 0)
			on_disk_lose(d, book, book->disk);
	metric_set(d->count.size, d->backlog.units);
}

void on_disk_spill(struct delivery *d, const struct item *item, uint64_t sequence)
{
	struct durable *u = &d->durable;
	u->last = u->last ? u->last : sequence - 1;
	if (u->records <= 0 && !u->spilling) {
		u->oldest = item->packet->oldest_arrival;
		u->early = 0;
	}
	u->spilling++;
}

void on_disk_add(struct delivery *d, const struct item *item, uint64_t sequence)
{
	struct durable *u = &d->durable;
	if (u->records + u->early <= 0)
		u->oldest = item->packet->oldest_arrival;
	u->last = sequence;
	u->early = u->spilling && sequence < u->early_last ? u->early : 0;
	u->records++;
	u->units += item->units;
	item->book->disk += (int64_t)item->left;
}

/* Oldest first, none of those that are left is older. Newest first, the oldest one is loaded last.
 * What is being spilled then is still in memory. */
void on_disk_take(struct delivery *d, const struct item *item, uint64_t sequence)
{
	struct durable *u = &d->durable;
	item->book->disk -= (int64_t)item->left;
	if (u->spilling && sequence > u->last) {
		u->early++;
		u->early_last = sequence > u->early_last ? sequence : u->early_last;
	}
	u->records--;
	u->units -= item->units;
	if (d->backlog.order == ORDER_OLDEST)
		u->oldest = item->packet->oldest_arrival;
	else if (is_empty(u))
		u->oldest = 0;
}

/* ---- what an earlier exporter of this ID has left */

static int64_t units_of_totals(const struct delivery *d, const struct storage_totals *t)
{
	return d->backlog.sizer == SIZER_ITEMS   ? t->samples
	       : d->backlog.sizer == SIZER_BYTES ? t->bytes
						 : t->records;
}

/* It is queued already. */
static void restore_account(struct delivery *d, struct storage_account *a)
{
	int64_t samples = a->committed.samples > 0 ? a->committed.samples : 0;
	int64_t left = storage_queue_take(d->durable.storage, a);
	if (!samples && !left)
		return;
	struct book *book = book_of_account(&d->books, d->options.ledger, d->options.id, a->name);
	book_inherit(book, (uint64_t)left);
	if (samples >= left)
		book_restore(book, (uint64_t)(samples - left));
	book->disk += samples >= left ? samples : left;
	if (samples < left)
		on_disk_lose(d, book, left - samples);
}

void on_disk_restore(struct delivery *d, struct storage_account *accounts, uint64_t records)
{
	struct durable *u = &d->durable;
	int64_t units = d->backlog.sizer == SIZER_REQUESTS ? (int64_t)records : 0, samples = 0;
	u->last = 0;
	for (struct storage_account *a = accounts; a; a = a->next) {
		restore_account(d, a);
		samples += a->committed.samples;
		units += d->backlog.sizer == SIZER_REQUESTS ? 0 : units_of_totals(d, &a->committed);
	}
	if (!records)
		return;
	u->records += (int64_t)records;
	u->units += units;
	u->oldest = 0;
	u->unseen = true;
	backlog_count(&d->backlog, units);
	metric_set(d->count.size, d->backlog.units);
	log_info(d->options.log, "The queue on disk has data",
		 log_number("requests", (int64_t)records), log_number("items", samples));
}

/* ---- the oldest one */

/* On a pool thread, because the disk may be slow. Consumers may have been faster. When it no
 * longer looks, others may end the delivery and free it. */
static void look(void *argument)
{
	struct delivery *d = argument;
	struct durable *u = &d->durable;
	struct loop *loop = d->options.loop;
	uint64_t arrival = reader_oldest(&u->reader, u->queue);
	pthread_mutex_lock(&d->lock);
	u->looking = false;
	u->oldest = u->oldest ? u->oldest : arrival;
	bool ended = delivery_has_ended(d);
	pthread_mutex_unlock(&d->lock);
	if (ended)
		loop_post(loop, delivery_end, d);
}

void on_disk_look(struct delivery *d)
{
	struct durable *u = &d->durable;
	pthread_mutex_lock(&d->lock);
	bool looks = u->open && u->unseen && !u->looking && !u->ending;
	u->unseen = u->unseen && !looks;
	u->looking = u->looking || looks;
	pthread_mutex_unlock(&d->lock);
	if (looks)
		loop_work(d->options.loop, look, NULL, d);
}

uint64_t on_disk_oldest(const struct delivery *d)
{
	const struct durable *u = &d->durable;
	return u->records > 0 || u->spilling ? u->oldest : 0;
}
