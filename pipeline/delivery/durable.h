/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_DURABLE_H
#define PIPELINE_DELIVERY_DURABLE_H

#include "pipeline/delivery/backlog.h"
#include "pipeline/delivery/reader.h"

/*
 * The queue on disk of a delivery (`sending_queue.storage`). Part of struct delivery; without a
 * storage, it does nothing.
 *
 * Every packet that enters is appended to the queue on disk, and waits in memory as without it. It
 * is removed when it was delivered or dropped, or not written at all if that happens first. When
 * half of the destination's memory is in use, packets are spilled: their place in the queue is the
 * record alone, and the packet leaves memory when its record is committed. Once packets are
 * spilled, so are all that follow, until consumers have loaded what was spilled. Records are read
 * one by one, by pool threads (reader.h): oldest first, after what waits in memory; newest first,
 * before it. A record that cannot be read goes to quarantine.
 *
 * While the storage does not take more, packets are refused, or wait in memory alone (`on_error`).
 *
 * At the end (durable_end) the records stay: nothing that is stored is sent or dropped any more. An
 * item whose record is being written stays in memory until the commit has ended. If it fails, the
 * item is in memory alone, and is treated as if there were no queue on disk: an exporter that a
 * reload has replaced retries it; at a shutdown it gets an attempt, and is then dropped.
 */
struct delivery;
struct sending;
struct stored;

struct durable {
	struct storage *storage; /* NULL: the queue is in memory */
	struct storage_queue *queue;
	struct loop_timer *retry;
	struct reader reader;
	/* Change under the delivery's lock. */
	_Atomic int64_t records, units; /* on disk only */
	_Atomic uint32_t loading;       /* consumers that read a record */
	_Atomic uint32_t spilling;      /* items that leave memory when they are committed */
	uint64_t oldest;                /* on disk only, clock_now; 0: none, or not known */
	/* The number of the last record that was added to `records`, of the last one that was
	 * taken before that, and how many such there are. */
	uint64_t last, early_last;
	int64_t early;
	bool unseen, looking; /* it is not known, and a thread reads it (on_disk.h) */
	struct stored *held;  /* records of items that are in memory */
	bool leaving;         /* the queue is being closed */
	_Atomic bool ending, open;
	_Atomic bool abandoned; /* nothing is sent any more */
};

void durable_init(struct durable *durable, struct delivery *delivery, struct storage *storage);
void durable_fini(struct durable *durable);

/* Opens the queue, and counts what is in it. It may have to wait until another delivery has left
 * the queue. [loop thread] */
bool durable_start(struct delivery *delivery, struct error *err);

/* The record of a packet that is about to enter; NULL: it has none, because the queue is in memory
 * or the storage takes nothing. The modes of acks that it holds are released when it is stored. */
struct stored *durable_record(struct delivery *delivery, struct packet *packet, struct book *book);
/* Must packets that enter now be spilled? [any thread] */
bool durable_spills(const struct delivery *delivery);
/* Under the lock. Counts an item that has entered without a record. */
void durable_count(struct delivery *delivery, const struct item *item);
/* Under the lock. Appends the record of an item that is about to enter, and decides whether it is
 * spilled. False: the storage did not take it, and the item has no record. */
bool durable_append(struct delivery *delivery, struct item *item, struct stored *stored);
/* Under the lock. Of an item that was not delivered, when the delivery is ending. */
enum durable_keeping {
	DURABLE_DROPS, /* it has no record, or the delivery is not ending */
	DURABLE_KEEPS, /* its record stays, or does if it is written; the caller ends its hold */
	DURABLE_IS_WRITING /* a part was sent, so the caller has to ask again */
};
enum durable_keeping durable_keep(struct delivery *delivery, struct item *item);
/* It did not enter, or the storage did not take it. Clears. */
void durable_discard(struct stored **stored, enum ack_outcome outcome);

/* May a packet not enter without a record? A storage that has refused one may take the next. */
bool durable_needs_record(const struct delivery *delivery);
/* The same, and it would not get one now. */
bool durable_refuses(const struct delivery *delivery);

/* Under the lock. Must the next packet be read from the disk? What was spilled is newer than what
 * waits in memory. */
bool durable_loads_next(const struct delivery *delivery);
/* [any thread] The consumer's item is read, and delivered. */
void durable_load(struct sending *sending);

/* Under the lock. The item is delivered or dropped. */
void durable_remove(struct item *item);

/* Under the lock. Samples that count as queued and that the next start would find on disk. */
int64_t durable_samples(const struct delivery *delivery);

/* Under the lock: from now on nothing that is stored is taken. */
void durable_end(struct delivery *delivery);
/* Under the lock. True once: nothing is being written or read any more, nothing in memory has a
 * record, and the queue is to be closed. */
bool durable_leaves(struct delivery *delivery);
/* [loop thread] After durable_leaves. The samples that stay on disk; the ledger counts them as
 * queued until the next delivery with this queue has sent them. */
int64_t durable_close(struct delivery *delivery);

#endif
