/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_READER_H
#define PIPELINE_DELIVERY_READER_H

#include <pthread.h>
#include <stdatomic.h>

#include "pipeline/delivery/delivery.h"
#include "pipeline/delivery/record.h"
#include "pipeline/storage/storage.h"

/*
 * Reads the records of a queue on disk, each once, in the order of the queue. Records before the
 * first spilled one belong to packets that wait in memory, and are not read.
 *
 * Oldest first, a number says from where to read. Newest first, records that were appended since
 * come before those that are left, so what was read and is not removed yet is skipped: that is
 * about as much as there are consumers.
 *
 * Any thread; one record is read at a time.
 */
struct reader {
	enum queue_order order;
	_Atomic uint64_t first; /* sequence number of the first spilled record since none was */
	pthread_mutex_t turn;   /* held while a record is read */
	uint64_t next;          /* oldest first: from where to read; under `turn` */
	pthread_mutex_t lock;   /* guards the following members */
	uint64_t *taken;        /* newest first: records that were read and are not removed yet */
	uint32_t count, room;
};

/* What was read of a record. */
struct reading {
	uint64_t sequence, samples;
	size_t size;
	enum record_fault fault;
	char *pipeline; /* NULL: not known */
	char *tenant;   /* NULL: none */
	enum record_account account;
	struct packet *packet;
};

void reader_init(struct reader *reader, enum queue_order order);
void reader_fini(struct reader *reader);

enum storage_read reader_next(struct reader *reader, struct storage_queue *queue,
			      struct reading *reading);
/* When the first record that is to be read has arrived (clock_now); 0: there is none, or it cannot
 * be read. */
uint64_t reader_oldest(const struct reader *reader, struct storage_queue *queue);
/* A record that was read is not in the queue any more. */
void reader_removed(struct reader *reader, uint64_t sequence);

void reading_fini(struct reading *reading); /* but the packet */

#endif
