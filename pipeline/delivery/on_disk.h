/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_ON_DISK_H
#define PIPELINE_DELIVERY_ON_DISK_H

#include "pipeline/delivery/delivery_private.h"

/*
 * What a queue on disk (pipeline/delivery/durable.h) has there only: how much, and since when.
 * Records come when packets are spilled, and go when consumers load them. What an earlier process
 * has left is counted from the totals of the queue, and its oldest record is looked at once.
 *
 * Under the delivery's lock, unless stated otherwise.
 */

/* The records that are there when the queue is attached. */
void on_disk_restore(struct delivery *delivery, struct storage_account *accounts, uint64_t records);
/* An item is being spilled: it leaves memory when its record, with this number, is committed. */
void on_disk_spill(struct delivery *delivery, const struct item *item, uint64_t sequence);
/* It is committed. */
void on_disk_add(struct delivery *delivery, const struct item *item, uint64_t sequence);
/* The record with this number was loaded, as this item; perhaps before it was added. */
void on_disk_take(struct delivery *delivery, const struct item *item, uint64_t sequence);
/* Samples of a record that cannot be read. */
void on_disk_lose(struct delivery *delivery, struct book *book, int64_t samples);
/* When nothing is left, what was not counted by itself was in records that could not be read. */
void on_disk_reconcile(struct delivery *delivery);

/* After on_disk_restore, and when the queue is open. Not under the lock. [any thread] */
void on_disk_look(struct delivery *delivery);
/* About when the oldest one has arrived (clock_now); 0: there is none, or it is not known. */
uint64_t on_disk_oldest(const struct delivery *delivery);

#endif
