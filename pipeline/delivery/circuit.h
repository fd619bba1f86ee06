/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_CIRCUIT_H
#define PIPELINE_DELIVERY_CIRCUIT_H

#include <pthread.h>
#include <stdatomic.h>

#include "pipeline/delivery/delivery.h"

/*
 * Decides whether a destination may be asked now. While the destination answers, the circuit is
 * closed, and everything may be sent. It opens when several attempts in a row have failed, or when
 * the destination has named a delay. Then nothing is sent but one probe at a time, after the delays
 * of retry_on_failure. Everything else waits in line without an attempt. A probe that fails goes to
 * the end of the line, so that a request that always fails does not keep the circuit open.
 *
 * When a probe is answered, also by a permanent rejection, the circuit is half-open: two attempts
 * may be in flight, and one more after each further answer. It closes when all consumers may send.
 * A failure meanwhile opens it again.
 *
 * A place belongs to one consumer. `start` is called for a place that waited in line and may now
 * attempt, by the thread that found it. `expired` is called for a place whose deadline has passed
 * in the line, on the loop thread. Both are called without any lock.
 */
struct circuit_place {
	struct circuit_place *next;
	uint64_t deadline; /* clock_now: it does not wait beyond; UINT64_MAX: without limit */
	bool counted;      /* its attempt is one of those that a half-open circuit permits */
};

struct circuit_options {
	const struct retry_config *retry;
	uint32_t consumers;
	struct loop *loop;
	struct metric_series *gauge; /* NULL: none */
	void (*start)(struct circuit_place *place);
	void (*expired)(struct circuit_place *place);
};

struct circuit {
	struct circuit_options options;
	struct loop_timer *timer;
	_Atomic enum circuit_state state; /* changes under the lock */
	_Atomic uint32_t failures;        /* in a row, while it is closed */

	pthread_mutex_t lock; /* guards all of this */
	struct circuit_place *line, **end;
	uint32_t flying, allowed; /* while it is half-open */
	int64_t interval_ns;
	uint64_t probe_at; /* clock_now, while it is open */
	uint64_t timed;    /* clock_now: when the timer is due; UINT64_MAX: it need not be */
	bool bypassed;
};

void circuit_init(struct circuit *circuit, const struct circuit_options *options);
void circuit_fini(struct circuit *circuit); /* nothing waits in line */

/* [any thread] May it attempt now? False: it waits in line, and `start` or `expired` is called
 * later. */
bool circuit_enter(struct circuit *circuit, struct circuit_place *place);
/* [any thread] The attempt of the place has ended without a failure of the destination. `answered`:
 * the destination has answered; false: it was not asked. */
void circuit_leave(struct circuit *circuit, struct circuit_place *place, bool answered);
/* [loop thread] The destination has failed. asked_ms: the delay that it named; -1: none. If the
 * circuit is open, `expired` is called for all whose deadline is before the next probe. */
enum circuit_outcome {
	CIRCUIT_ALONE, /* it is still closed: the place may repeat its attempt by itself */
	CIRCUIT_WAITS, /* it waits in line */
	CIRCUIT_EXPIRED,
};
enum circuit_outcome circuit_fail(struct circuit *circuit, struct circuit_place *place,
				  int64_t asked_ms);
/* [any thread] There is another destination now: it is closed, and nothing waits in line. */
void circuit_reset(struct circuit *circuit);
/* [loop thread] From now on everything may be sent, also what waits in line; or as before. */
void circuit_bypass(struct circuit *circuit, bool on);

#endif
