/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_BUDGET_H
#define PIPELINE_BUDGET_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/metrics.h"

/*
 * The budget, in bytes. What is in use is the resident size when the program became ready plus
 * everything charged since: bodies, tables, open batches, queued packets. A charge is taken before
 * the memory is used (before decompression, before decoding), so the ceiling holds whatever a
 * sender does.
 *
 * budget_take and budget_give are a few atomic operations, and wake claims that wait; any
 * thread.
 */
struct budget {
	_Atomic int64_t charged;
	_Atomic int64_t baseline;  /* resident bytes at ready */
	_Atomic int64_t spare;     /* of charged: by budget_take_spare */
	_Atomic bool over;         /* the last reading of the real resident size passed the limit */
	_Atomic int64_t claimed;   /* by claims that wait */
	_Atomic unsigned holders;  /* threads with a large claim */
	_Atomic uint64_t released; /* clock_now of the last release of one */
	/* clock_now of the last budget_refuse for want of room; 0: none yet */
	_Atomic uint64_t refused;
	pthread_mutex_t mutex;  /* of the large claims' turns */
	pthread_cond_t changed; /* a turn ended, or something was given back while claims wait */
	uint64_t arrived, turn; /* mutex: large claims so far, and the one whose turn it is */
	int64_t limit, soft;    /* set before the first request */
	struct metric_series *charged_now, *at_rest;
};

/* 80 % of the cgroup's limit (v2, then v1), or of the machine's memory without one. */
int64_t budget_ceiling(void);

void budget_init(struct budget *b, int64_t limit, int64_t spike);
/* Tells malloc what it may keep of what was freed, for all threads together a fraction of the
 * limit: the more it keeps, the less it faults in again, and what it keeps is nobody's. Once,
 * before the first request. */
void budget_tune(const struct budget *b);
/* Takes the baseline. False: the limit leaves too little above it for requests; err says how much
 * is missing. */
bool budget_ready(struct budget *b, struct error *err);
/* What is left for everything that is charged, by the soft limit; before budget_ready, by what is
 * resident now. */
int64_t budget_allowance(const struct budget *b);
/*
 * What the packets of each destination may take of it, by the number of destinations. Requests keep
 * a quarter of the room, or what an ordinary one takes for each worker if that is more, but at most
 * half.
 */
int64_t budget_share(const struct budget *b, uint32_t workers, uint32_t destinations);
/* How large a batch may become: exporters make many times as much of it, one after the other, and
 * some keep a multiple. */
int64_t budget_batch_max(const struct budget *b, int64_t share);
/* Reads the real size; gives freed pages back to the kernel when it is above the soft limit. */
void budget_check(struct budget *b);

/* Charges bytes unless that would pass `soft`, or, when they are many and the budget is short, the
 * real size the limit. */
bool budget_take(struct budget *b, int64_t bytes, int64_t soft);
/* What can still be charged before the soft limit; negative when it is passed. */
int64_t budget_room(const struct budget *b);
/* Is less than an eighth of what requests can have left, or the real size over the limit, or was
 * something refused a moment ago that was larger than what is left? */
bool budget_is_short(const struct budget *b);
/*
 * For what can be had again when memory is short, such as connections: charges bytes unless that
 * would make the budget short. An eighth of what requests can have is theirs even then, lest nobody
 * can come in to hear when to come again.
 */
bool budget_take_spare(struct budget *b, int64_t bytes);
void budget_give_spare(struct budget *b, int64_t bytes);
/* How much budget_take_spare would still take. */
int64_t budget_spare(const struct budget *b);
/* Would the bytes fit if nothing else were charged? */
bool budget_could_take(const struct budget *b, int64_t bytes);
/* Why it does not: ERROR_BUSY, or ERROR_TOO_LARGE when to come back would be in vain; false. */
bool budget_refuse(struct budget *b, int64_t bytes, struct error *err);
/* Charges without asking: for what is already there (a batch that grew). */
void budget_add(struct budget *b, int64_t bytes);
/*
 * Charges for what must be done with what was taken already (a plan, an encoding), until the same
 * thread releases as much. From 1 MiB on a claim waits for room as long as others hold claims and
 * release one a second, or a tenth of a second when nobody does; meanwhile nobody is let in. Then
 * it goes ahead: it alone may be more than there is. A claim within one of the same thread waits
 * for nobody. [pool threads]
 */
void budget_claim(struct budget *b, int64_t bytes);
void budget_release(struct budget *b, int64_t bytes);
void budget_give(struct budget *b, int64_t bytes);
/* The same as a packet's account (profile/packet.h): budget_claim or budget_release with `claim`,
 * else budget_add. */
void budget_charge(void *budget, int64_t bytes, bool claim);

/* Shows the budget as metrics until budget_hide. */
extern const struct metric *const budget_metrics[]; /* for the manual; NULL-terminated */
void budget_show(struct budget *b, struct metrics *metrics);
void budget_hide(struct budget *b, struct metrics *metrics);

#endif
