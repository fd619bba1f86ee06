/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_BACKLOG_H
#define PIPELINE_DELIVERY_BACKLOG_H

#include "pipeline/delivery/arrivals.h"
#include "pipeline/delivery/delivery.h"

/*
 * The packets that one destination has not accepted yet: those that wait, in the configured order,
 * and those that are being delivered. A backlog is limited in units of the queue's sizer, as
 * configured, and in bytes by its share of memory. The bytes are those that are charged: the
 * packets with all their encodings (struct packet_holder), and the parts that plans made of them.
 *
 * A queue is full from the first item that did not fit until it is half empty. In this state, a
 * single free place does not admit a request. Otherwise a slow destination would receive it, and a
 * faster destination that has no room for a moment would not.
 *
 * A backlog is crowded when its share of memory is used up: for a few seconds at most, and not
 * again before it was empty. A destination that keeps up with its senders enters this state when
 * memory is short for a moment: the senders are then delayed, and nothing is dropped. The backlog
 * of a slow destination is not empty again within this time.
 *
 * Functions that change the list are called under the delivery's lock. The others may be called by
 * any thread.
 */
struct item { /* a packet of one pipeline */
	struct item *next;
	struct packet *packet; /* NULL: it is divided, and nobody waits for it */
	struct packet_holder holder;
	uint32_t arrival; /* the place of its packet in the backlog's `arrivals` */
	struct book *book;
	int64_t units;
	bool several;  /* several senders have contributed to it */
	bool answered; /* its senders no longer wait for it; under the delivery's lock */
	/* samples that are neither delivered nor lost, and not in its children */
	_Atomic uint64_t left;
	/* those, those of its children, and those of dead letters that are not written yet: as the
	 * ledger counts them; 0 of a child */
	_Atomic uint64_t queued;
	struct stored *stored; /* its record on disk (durable.h); NULL: it has none */
	bool spilled;          /* does not wait in memory: it is on disk only, or will be soon */
	bool kept;             /* stays on disk when it is removed here */
	/* by its consumer or the queue, and by its dead letters; under the delivery's lock */
	uint32_t holds;
	bool placed; /* it has a place in the backlog */
	/* Of a delivery with lanes (lanes.h), under the delivery's lock. */
	uint32_t member;        /* whose lane it is in; 0: none */
	struct item *parent;    /* of which it is a part; that has the place and the record */
	bool divided;           /* it has children, and each has a hold of it */
	int64_t weight;         /* bytes, as its lane counts them */
	enum ack_outcome worst; /* of it and its children that have ended */
};

struct backlog {
	enum queue_sizer sizer;
	enum queue_order order;
	int64_t capacity;                    /* units */
	bool plans;                          /* the exporter makes its own packets */
	struct item *head, **tail;           /* the waiting packets */
	struct arrivals arrivals;            /* of all packets that are in memory */
	_Atomic int64_t units, bytes;        /* of packets that wait or are being delivered */
	_Atomic int64_t made;                /* bytes that plans made, or are expected to make */
	_Atomic int64_t bytes_max, made_max; /* 0: no limit */
	/* clock_now when its share was first used up since it was empty; 0: it was not used up */
	_Atomic uint64_t crowded;
	_Atomic bool full;
};

void backlog_init(struct backlog *b, const struct queue_config *config, bool plans);
void backlog_fini(struct backlog *b); /* it is empty */
/* Sets the memory that it may use; 0: no limit. */
void backlog_set_share(struct backlog *b, int64_t bytes);
int64_t backlog_bytes(const struct backlog *b);
int64_t backlog_units_of(const struct backlog *b, const struct packet *packet);

/* How full it is, in thousandths of its capacity. Above 1000 if it holds more than its capacity. */
enum { BACKLOG_FULL = 1000 };
int64_t backlog_load(const struct backlog *b);
/* Is there room for this packet, or (NULL) for any packet? An empty backlog accepts one packet of
 * any size. `works`: the destination is healthy. */
enum delivery_room backlog_room(struct backlog *b, struct packet *packet, bool works);

/* Is more than half of its memory in use by waiting packets? */
bool backlog_is_half_full(const struct backlog *b);
/* May it be added? False: the queue is full from now on. Asked once for each item: other threads
 * change the bytes that it holds. If several threads see the same room, all their items may. */
bool backlog_admits(struct backlog *b, const struct item *item, enum queue_entry entry, bool works);
/* An item that was admitted. A spilled one takes its place, but is not in the list. */
void backlog_add(struct backlog *b, struct item *item);
struct item *backlog_take(struct backlog *b); /* the first waiting item, or NULL */
/* The first waiting item that is stored, or NULL. */
struct item *backlog_take_stored(struct backlog *b);
/* Puts an item that has its place into the list after all, or back. */
void backlog_push(struct backlog *b, struct item *item);
/* The packet of an item is in memory, and waits or is being delivered. */
void backlog_attach(struct backlog *b, struct item *item);
/* The packet of an item leaves memory. If the item has a place, that remains. */
void backlog_detach(struct backlog *b, struct item *item);
/* When the oldest packet in memory has arrived (clock_now); 0: there is none. */
uint64_t backlog_oldest(const struct backlog *b);
/* Places of packets on disk come and go. True: the backlog is no longer full. */
bool backlog_count(struct backlog *b, int64_t units);
/* The item was taken, and was delivered or dropped. True: the backlog is no longer full. */
bool backlog_remove(struct backlog *b, struct item *item);

/* May a plan make this many more bytes now? The bytes that plans hold are limited too. One plan is
 * always allowed. */
bool backlog_may_make(const struct backlog *b, int64_t bytes);
void backlog_made(struct backlog *b, int64_t bytes);

#endif
