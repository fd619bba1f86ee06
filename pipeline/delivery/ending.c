/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/delivery_private.h"

/* Under the lock. */
bool delivery_has_ended(struct delivery *d)
{
	if (!d->drained || d->settled)
		return false;
	if (d->durable.queue)
		return durable_leaves(d);
	d->settled = !d->busy && !d->backlog.head && lanes_are_empty(d) && !d->letters.writing;
	return d->settled;
}

/* Nothing is left, and nothing will come: nobody else has a hand on the delivery. */
static void settle(struct delivery *d)
{
	for (const struct book *book = d->books; book; book = book->next)
		if (book->queued)
			ledger_fail(book->row);
	if (d->lost)
		log_error(d->options.log, "Shutdown dropped data.",
			  log_number("dropped_items", d->lost));
	d->drained(d->argument);
}

static void close_queue(struct delivery *d)
{
	int64_t kept = durable_close(d);
	if (kept)
		log_info(d->options.log, "Shutdown kept data on disk.",
			 log_number("kept_items", kept));
	pthread_mutex_lock(&d->lock);
	bool ended = delivery_has_ended(d);
	pthread_mutex_unlock(&d->lock);
	if (ended)
		settle(d);
}

void delivery_end(void *argument)
{
	struct delivery *d = argument;
	if (d->durable.queue)
		close_queue(d);
	else
		settle(d);
}

static void hasten(struct delivery *d)
{
	for (uint32_t i = 0; i < d->consumer_count; i++)
		sending_hasten(&d->consumers[i]);
	lanes_hasten(d);
}

/* Everything may be sent, or as before. */
static void bypass(struct delivery *d, bool on)
{
	circuit_bypass(&d->circuit, on);
	lanes_bypass(d, on);
}

void delivery_stop_retrying(struct delivery *d)
{
	d->draining = true;
	bypass(d, true);
	hasten(d);
}

void delivery_resume(struct delivery *d)
{
	if (!d->draining)
		return;
	d->draining = false;
	bypass(d, false);
	d->lost = 0;
}

/* Drops what still waits. Returns the number of packets. */
static uint32_t drop_waiting(struct delivery *d, enum ledger_column reason)
{
	for (uint32_t count = 0;; count++) {
		pthread_mutex_lock(&d->lock);
		bool ends = reason == LEDGER_SHED && d->drained;
		struct item *item = ends ? NULL : backlog_take(&d->backlog);
		if (!item && !ends)
			item = lanes_take(d, false);
		d->busy += item != NULL;
		pthread_mutex_unlock(&d->lock);
		if (!item)
			return count;
		delivery_lose(d, item,
			      &(struct loss){ .packet = item->packet,
					      .samples = item->left,
					      .reason = reason });
		delivery_end_item(d, item, NULL, ACK_FAILED);
		pthread_mutex_lock(&d->lock);
		d->busy--;
		bool ended = delivery_has_ended(d);
		pthread_mutex_unlock(&d->lock);
		if (ended)
			loop_post(d->options.loop, delivery_end, d);
	}
}

/* On any thread. Nobody waits for a best-effort destination, so no sender is answered here. */
bool delivery_shed_waiting(void *context)
{
	return drop_waiting(context, LEDGER_SHED) > 0;
}

void delivery_drop_returned(struct delivery *d)
{
	if (d->durable.abandoned)
		drop_waiting(d, LEDGER_SHUTDOWN);
	else if (d->draining && delivery_is_killed(d))
		drop_waiting(d, LEDGER_KILLED);
}

/* What is stored is not taken any more, and stays on disk. */
static void keep_stored(struct delivery *d)
{
	struct item *item;
	do {
		pthread_mutex_lock(&d->lock);
		durable_end(d);
		item = backlog_take_stored(&d->backlog);
		if (item)
			durable_keep(d, item);
		else
			item = lanes_take(d, true);
		pthread_mutex_unlock(&d->lock);
		if (!item)
			return;
		delivery_end_item(d, item, NULL, ACK_FAILED);
	} while (item);
}

static void expect_end(struct delivery *d, void (*drained)(void *argument), void *argument)
{
	pthread_mutex_lock(&d->lock);
	d->drained = drained;
	d->argument = argument;
	bool ended = delivery_has_ended(d);
	pthread_mutex_unlock(&d->lock);
	if (ended)
		loop_post(d->options.loop, delivery_end, d);
}

/* What is stored and waits for a retry is attempted now, and then leaves memory: the next delivery
 * waits for the queue on disk. */
void delivery_wait_empty(struct delivery *d, void (*drained)(void *argument), void *argument)
{
	if (d->durable.storage) {
		keep_stored(d);
		bypass(d, true);
		hasten(d);
		bypass(d, d->draining);
	}
	expect_end(d, drained, argument);
}

void delivery_drain(struct delivery *d, void (*drained)(void *argument), void *argument)
{
	keep_stored(d);
	delivery_stop_retrying(d);
	if (delivery_is_killed(d))
		drop_waiting(d, LEDGER_KILLED);
	expect_end(d, drained, argument);
}

void delivery_keep_waiting(struct delivery *d)
{
	if (d->letters.on && d->draining && d->drained)
		drop_waiting(d, LEDGER_SHUTDOWN);
}

void delivery_abandon(struct delivery *d)
{
	keep_stored(d);
	d->durable.abandoned = d->durable.storage != NULL;
	delivery_stop_retrying(d);
	drop_waiting(d, LEDGER_SHUTDOWN);
}

/* The items that waited while it was killed, to as many consumers as there are. */
static void resume_sending(struct delivery *d)
{
	delivery_wake(d);
	hasten(d);
}

void delivery_set_kill(struct delivery *d, enum delivery_kill kill)
{
	if (d->kill == kill)
		return;
	d->kill = kill;
	metric_set(d->count.killed, kill != DELIVERY_ALIVE);
	if (kill == DELIVERY_ALIVE)
		log_warn(d->options.log, "The kill switch no longer stops this destination.");
	else
		log_warn(d->options.log, "The kill switch stops this destination.",
			 log_bool("discards", delivery_discards(d)));
	if (delivery_discards(d))
		drop_waiting(d, LEDGER_KILLED);
	resume_sending(d);
}

int64_t delivery_log_stuck(struct delivery *d, int64_t *waiting)
{
	pthread_mutex_lock(&d->lock);
	bool hangs = d->busy || d->letters.pending;
	int64_t kept = durable_samples(d);
	*waiting = -kept;
	for (const struct book *book = d->books; book; book = book->next)
		*waiting += book->queued;
	pthread_mutex_unlock(&d->lock);
	int64_t lost = (int64_t)d->lost + *waiting;
	if (hangs && lost > 0)
		log_error(d->options.log, "Shutdown dropped data: a send operation hangs.",
			  log_number("dropped_items", lost));
	else if (lost > 0)
		log_error(d->options.log, "Shutdown dropped data.",
			  log_number("dropped_items", lost));
	if (kept > 0)
		log_info(d->options.log, "Shutdown kept data on disk.",
			 log_number("kept_items", kept));
	return kept;
}
