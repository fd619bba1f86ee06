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
 * The memory budget, in bytes. The memory in use is the resident size when the program became ready
 * (the baseline) plus everything charged since: bodies, tables, open batches, queued packets. A
 * charge is taken before the memory is used (before decompression, before decoding), so the limit
 * holds whatever a sender does.
 *
 * budget_take and budget_give are a few atomic operations, and wake waiting claims; any thread.
 */
struct budget_relief;
struct budget {
	_Atomic int64_t charged;
	_Atomic int64_t baseline; /* resident bytes when the program became ready */
	_Atomic int64_t spare;    /* the part of `charged` that was taken by budget_take_spare */
	/* the last reading of the actual resident size exceeded the limit */
	_Atomic bool over;
	_Atomic int64_t claimed;   /* bytes of waiting claims */
	_Atomic unsigned holders;  /* threads with a large claim */
	_Atomic uint64_t released; /* clock_now of the last release of one */
	/* clock_now of the last budget_refuse for lack of room; 0: none yet */
	_Atomic uint64_t refused;
	pthread_mutex_t mutex;  /* guards the turns of large claims */
	pthread_cond_t changed; /* a turn ended, or memory was given back while claims wait */
	/* mutex: the number of large claims so far, and that of the claim whose turn it is */
	uint64_t arrived, turn;
	int64_t limit, soft;           /* set before the first request */
	pthread_mutex_t relieving;     /* guards the list, and is held while it is called */
	struct budget_relief *reliefs; /* best-effort owners of memory */
	_Atomic bool shed;             /* best-effort data gave way since the last check */
	_Atomic bool shedding;         /* as of the last check */
	/* loop thread: checks in a row with little charged; trims in a row that returned little;
	 * after the last trim, what was charged, and what was resident and charged to nobody */
	uint32_t calm, vain;
	int64_t charged_then, unaccounted_then;
	struct metric_series *charged_now, *at_rest, *sheds_now;
};

/* 80 % of the cgroup's limit (v2, then v1); without one, of the machine's memory. */
int64_t budget_ceiling(void);

void budget_init(struct budget *b, int64_t limit, int64_t spike);
/* Configures how much freed memory malloc keeps: for all threads together, a fraction of the limit.
 * The more it keeps, the fewer page faults there are; but what it keeps cannot be used for anything
 * else. Called once, before the first request. */
void budget_tune(const struct budget *b);
/* Measures the baseline. False: the limit leaves too little above it for requests; err says how
 * much is missing. */
bool budget_ready(struct budget *b, struct error *err);
/* The room for everything that is charged, below the soft limit; before budget_ready, calculated
 * from the current resident size. */
int64_t budget_allowance(const struct budget *b);
/* The share of the room for the packets of each destination. Requests keep a quarter of the room,
 * or the need of one ordinary request per worker if that is more, but at most half. */
int64_t budget_share(const struct budget *b, uint32_t workers, uint32_t destinations);
/* The maximum size of a batch: exporters create many times as much from it, one after the other,
 * and some keep a multiple of it. */
int64_t budget_batch_max(const struct budget *b, int64_t share);
/*
 * Reads the actual resident size, periodically. Returns freed pages to the kernel if it is above
 * the soft limit, or once little has been charged for a few checks and much more is resident than
 * is charged: again and again, with pauses that double while that returns little. Best-effort data
 * gives way if memory is still short. [loop thread]
 */
void budget_check(struct budget *b);

/* Charges bytes. False, with nothing charged, if that would exceed `soft` or, for a large charge
 * while the budget is short, if the actual resident size would exceed its limit. */
bool budget_take(struct budget *b, int64_t bytes, int64_t soft);
/* The number of bytes that can still be charged below the soft limit; negative if it is
 * exceeded. */
int64_t budget_room(const struct budget *b);
/* Is less than an eighth of the room for requests left, or the actual resident size over the limit,
 * or was a request refused a moment ago because it was larger than what is left? */
bool budget_is_short(const struct budget *b);
/*
 * Best-effort data gives way before anything else is refused: from the moment when less than a
 * quarter of the room for requests is left, or something did not fit. budget_sheds: is it so now?
 * [any thread]
 */
bool budget_sheds(const struct budget *b);
/* Notes that it has given way: budget_check sets `shedding` until memory is no longer short. */
void budget_note_shed(struct budget *b);
/* An owner of best-effort data: `shed` drops what it can, and returns false if there is nothing. It
 * is called by a charge that does not fit, with locks of batches held. After budget_off_short it is
 * not running. [any thread] */
struct budget_relief {
	struct budget_relief *next;
	bool (*shed)(void *context);
	void *context;
};
void budget_on_short(struct budget *b, struct budget_relief *relief);
void budget_off_short(struct budget *b, struct budget_relief *relief);

/* For memory that can be reclaimed, such as that of connections: charges bytes unless that would
 * make the budget short. Even then an eighth of the room for requests is available to it, so that
 * senders can connect to be refused with a retry hint. */
bool budget_take_spare(struct budget *b, int64_t bytes);
void budget_give_spare(struct budget *b, int64_t bytes);
/* The number of bytes that budget_take_spare would still accept. */
int64_t budget_spare(const struct budget *b);
/* Would the bytes fit if nothing else were charged? */
bool budget_could_take(const struct budget *b, int64_t bytes);
/* Sets the error for a charge that did not fit: ERROR_BUSY, or ERROR_TOO_LARGE if a retry would be
 * useless. Returns false. */
bool budget_refuse(struct budget *b, int64_t bytes, struct error *err);
/* Charges unconditionally: for memory that is already in use (a batch that grew). */
void budget_add(struct budget *b, int64_t bytes);
/*
 * Charges memory that is needed to process data that was already accepted (a plan, an encoding),
 * until the same thread releases as much. A claim of 1 MiB or more waits for its turn, then for
 * room: as long as others hold claims and release at least one per second, or a tenth of a second
 * if nobody holds one. Meanwhile no request is admitted. Then the claim is granted; it alone may
 * exceed the limit. A claim within another one of the same thread does not wait. [pool threads]
 */
void budget_claim(struct budget *b, int64_t bytes);
void budget_release(struct budget *b, int64_t bytes);
void budget_give(struct budget *b, int64_t bytes);
/* The same as a packet's account (profile/packet.h): budget_claim or budget_release if `claim`,
 * else budget_add. */
void budget_charge(void *budget, int64_t bytes, bool claim);

/* Shows the budget as metrics until budget_hide. */
extern const struct metric *const budget_metrics[]; /* for the manual; NULL-terminated */
void budget_show(struct budget *b, struct metrics *metrics);
void budget_hide(struct budget *b, struct metrics *metrics);

#endif
