/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_BACKLOG_H
#define PIPELINE_DELIVERY_BACKLOG_H

#include "pipeline/delivery/delivery.h"

/*
 * What one destination has not taken yet: packets that wait, first in, first out, and those that
 * are being delivered. It is bounded in units of the queue's sizer, as configured, and in bytes by
 * its share of memory. Bytes are what is charged: the packets with their encodings, whoever made
 * those and whenever (struct packet_holder), and what plans made of the packets.
 *
 * A queue is full from when something found no room in it until it is half empty. While it is, one
 * place in it is no reason to admit a request: a slow destination would take it, and a faster one
 * that is short of room for a moment would not.
 *
 * It is crowded when its share of memory is used up, for a few seconds at most, and not again
 * before it was empty. This is how a destination that is as fast as its senders looks for a moment
 * where memory is short: they are held up, and nothing is dropped. One that is slow is not empty
 * again so soon.
 *
 * Functions that change the list are called under the delivery's lock; the others by any thread.
 */
struct item { /* a packet of one pipeline */
	struct item *next;
	struct packet *packet;
	struct packet_holder holder;
	struct ledger_destination *ledger;
	int64_t units;
	uint64_t left; /* samples that the ledger has as queued */
};

struct backlog {
	enum queue_sizer sizer;
	int64_t capacity;                    /* units */
	bool plans;                          /* the exporter makes packets of its own */
	struct item *head, **tail;           /* those that wait */
	_Atomic int64_t units, bytes;        /* of the packets that wait or are being delivered */
	_Atomic int64_t made;                /* bytes of what plans made, or are expected to make */
	_Atomic int64_t bytes_max, made_max; /* 0: none */
	/* clock_now when its share was used up first since it was empty; 0: it was not */
	_Atomic uint64_t crowded;
	_Atomic bool full;
};

void backlog_init(struct backlog *b, const struct queue_config *config, bool plans);
/* It may use this much memory; 0: any. */
void backlog_set_share(struct backlog *b, int64_t bytes);
int64_t backlog_bytes(const struct backlog *b);
int64_t backlog_units_of(const struct backlog *b, const struct packet *packet);

/* How full it is, in thousandths of what it may hold; above 1000 when it was stretched. */
enum { BACKLOG_FULL = 1000 };
int64_t backlog_load(const struct backlog *b);
/* For this packet, or NULL: for any more. An empty one takes one packet of any size. `works`: the
 * destination does. */
enum delivery_room backlog_room(struct backlog *b, struct packet *packet, bool works);

/* False: full. What several threads saw room for at once all enters. */
bool backlog_add(struct backlog *b, struct item *item, enum queue_entry entry, bool works);
struct item *backlog_take(struct backlog *b); /* the first that waits, or NULL */
/* It is delivered or dropped, and was taken before. True: the backlog is no longer full. */
bool backlog_remove(struct backlog *b, struct item *item);

/* May a plan make so much more now? What plans hold is bounded too; one always may. */
bool backlog_may_make(const struct backlog *b, int64_t bytes);
void backlog_made(struct backlog *b, int64_t bytes);

#endif
