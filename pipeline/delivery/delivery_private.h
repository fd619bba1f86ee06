/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_DELIVERY_PRIVATE_H
#define PIPELINE_DELIVERY_DELIVERY_PRIVATE_H

#include <pthread.h>

#include "pipeline/budget.h"
#include "pipeline/delivery/backlog.h"
#include "pipeline/delivery/circuit.h"
#include "pipeline/delivery/dead_letters.h"
#include "pipeline/delivery/delivery.h"
#include "pipeline/delivery/delivery_metrics.h"
#include "pipeline/delivery/durable.h"
#include "pipeline/delivery/lanes.h"
#include "pipeline/delivery/outage.h"

/*
 * Inside a delivery: delivery.c has the queue and the consumers; sending.c has the life of one item
 * at a consumer: its plan, attempts, retries and result; lanes.c has the members of a destination
 * that consists of several; ending.c has the end of the delivery, and
 * what it drops or leaves on disk then or when it is killed.
 */
/*
 * One consumer: delivers one item at a time. It belongs to the thread that took it from the idle
 * ones, then to the one that learns the result of its send.
 */
struct sending {
	/* what its result leads to [any thread] */
	void (*done)(struct sending *sending, const struct send_result *result);
	struct delivery *delivery;
	struct lane *lane; /* NULL: it takes from the backlog */
	struct circuit_place place;
	struct sending *next; /* idle */
	struct item *item;    /* NULL: idle */
	int64_t expected;     /* bytes of the parts, until they are made */
	struct parts parts;
	uint32_t part;
	struct loop_timer *timer;
	struct send_result result;
	uint64_t expires;       /* the item, clock_now; UINT64_MAX: never */
	uint64_t retried_until; /* the part, clock_now; UINT64_MAX: without limit */
	int64_t interval_ns;
	uint32_t attempts;        /* of the part */
	bool asked;               /* the destination, by the last attempt */
	bool flying;              /* between ops->send and sending_done */
	bool planned;             /* the item has its parts */
	bool again;               /* the part is to be split, as its refusal requires */
	bool divides;             /* the rest of the item is to be divided among members */
	uint32_t change;          /* of the members, before the item was last divided */
	bool waiting;             /* for its own retry, or for the end of a kill; loop thread */
	enum ack_outcome outcome; /* of the item: the worst of its parts */
};

struct delivery {
	struct delivery_options options;
	struct sending *consumers;
	uint32_t consumer_count;
	bool waits;
	unsigned acks;        /* the ack modes of senders that it answers */
	_Atomic bool awaited; /* some graph has senders that wait */
	struct plan plan;
	struct circuit circuit;
	struct outage outage;
	_Atomic uint64_t dropped, saved; /* samples, because the destination did not take them */
	struct lane *lanes;              /* NULL: there is one destination */
	uint32_t lane_count, lane_consumers; /* consumers: of each lane */
	_Atomic int64_t member_count;        /* when an item was last divided */
	_Atomic uint32_t changes;            /* of the members */

	/* Guards all of this. An item waits only while no consumer is idle, or memory is short and
	 * one is busy. */
	pthread_mutex_t lock;
	struct backlog backlog;
	struct sending *idle;
	uint32_t busy; /* consumers, and threads that drop an item */
	struct book *books;
	struct durable durable;
	struct dead_letters letters;
	bool settled; /* and posted */
	void (*drained)(void *argument);
	void *argument;

	_Atomic bool draining;
	_Atomic enum delivery_kill kill;
	/* clock_now: when the log may say again that the queue is full */
	_Atomic uint64_t quiet_until;
	_Atomic bool logged_full;          /* the log says that it is */
	_Atomic bool logged[PART_DROPPED]; /* that samples are dropped for this reason */
	bool logged_expired;               /* the same; loop thread */
	_Atomic uint64_t lost;             /* samples dropped since draining began */
	struct delivery_counters count;
	struct budget_relief relief; /* of a best-effort destination that has started */
};

/* ---- sending.c ---- */

void sending_init(struct sending *s, struct delivery *d, struct lane *lane);
void sending_start(struct circuit_place *place); /* the circuit's options `start`, `expired` */
void sending_expired(struct circuit_place *place);
void sending_fini(struct sending *s);
/* [any thread] Delivers s->item; ends in delivery_finish. */
void sending_begin(struct sending *s);
void sending_hasten(struct sending *s); /* [loop thread] The next attempt is due now. */
/* Does what is dropped for this reason ask senders that wait for a retry? */
bool sending_may_be_repeated(enum ledger_column reason);

/* [any thread] Logs, once for each kind, that the destination's limits drop data. */
void sending_log_dropped(struct delivery *d, enum part_dropped kind, enum ledger_column reason,
			 uint64_t samples);

/* ---- delivery.c ---- */

/* [any thread] The item is delivered or dropped, or the consumer has none: it waits in a lane, or
 * there was none to load. The consumer takes the next one, or is idle. Then others may end the
 * delivery, and free it. */
void delivery_finish(struct sending *s, enum ack_outcome outcome);
/* [any thread] Is the destination killed? discards: and does it drop what it has? */
bool delivery_is_killed(const struct delivery *d);
bool delivery_discards(const struct delivery *d);
/* [any thread] Is memory short, and the destination best-effort? Its caller drops something. */
bool delivery_sheds(const struct delivery *d);
/* [any thread] Idle consumers take what waits. */
void delivery_wake(struct delivery *d);
/* An item of the packet, which has no place yet. */
struct item *delivery_item(struct delivery *d, struct packet *packet, struct book *book);
/* [any thread] Samples of an item have come to an end. */
void delivery_settle(struct item *item, enum ledger_column end, uint64_t samples);
/* [any thread] The only way for samples of an item that will not be delivered: they become a dead
 * letter, or are dropped. */
void delivery_lose(struct delivery *d, struct item *item, const struct loss *loss);
/* [any thread] The end of that. kept: as a dead letter. */
void delivery_settle_loss(struct delivery *d, struct item *item, const struct loss *loss,
			  bool kept);
/* [any thread] The end of a hold; the last one removes the item. */
void delivery_release_item(struct delivery *d, struct item *item);
/* [any thread] The same for the consumer (`s`) or the queue (NULL), which is done with it. Its
 * senders get their answer, unless they have it. */
void delivery_end_item(struct delivery *d, struct item *item, struct sending *s,
		       enum ack_outcome outcome);

/* ---- ending.c ---- */

/* Under the lock. Once for each: the queue on disk may be closed, and then nothing is left, and
 * nothing will come. The caller posts delivery_end. */
bool delivery_has_ended(struct delivery *d);
void delivery_end(void *delivery); /* [loop thread] */
/* [any thread] Drops what has come back into the queue, if nothing is sent from it any more. */
void delivery_drop_returned(struct delivery *d);
/* The relief of the budget. True: something was dropped. */
bool delivery_shed_waiting(void *delivery);

#endif
