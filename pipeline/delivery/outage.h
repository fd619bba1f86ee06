/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_OUTAGE_H
#define PIPELINE_DELIVERY_OUTAGE_H

#include <pthread.h>
#include <stdatomic.h>

#include "pipeline/component.h"

/*
 * What the log and the metrics say of a destination that fails. A destination is failing from an
 * attempt that failed until one that succeeds.
 *
 * The first failure is logged at once, then one line for each OUTAGE_LINE_NS while it lasts, and
 * the recovery at once. A destination that fails and recovers again and again gets no more lines
 * than that: what begins sooner than OUTAGE_LINE_NS after the last line waits for the next one,
 * which has the number of outages. In this time, at most two lines say that it fails (one of them
 * that data was dropped), and as many that it works again.
 */
#define OUTAGE_LINE_NS (60 * UINT64_C(1000000000))

/* The state of the delivery, for a line. */
struct outage_view {
	int64_t waiting;         /* samples in the queue or in flight */
	int64_t queue_percent;   /* of the queue's capacity, or of its memory if that is more */
	uint64_t dropped, saved; /* samples since the start; saved: as dead letters */
};

/* Samples that will not be sent again. */
struct outage_loss {
	const char *reason; /* as in the ledger */
	uint64_t samples;
	uint32_t attempts; /* of the request */
	bool saved;        /* there are dead letters */
};

struct outage_options {
	struct loop *loop;
	struct log *log;
	struct metrics *metrics;
	const char *id;       /* exporter ID */
	const char *endpoint; /* NULL: none */
	void (*look)(void *context, struct outage_view *view);
	void *context;
	uint64_t line_ns; /* 0: OUTAGE_LINE_NS */
};

struct outage {
	struct outage_options options;
	struct loop_timer *timer;
	_Atomic bool failing;
	_Atomic uint64_t succeeded_at; /* clock_now; at first: of the start */

	struct metric_series *up, *idle;

	pthread_mutex_t lock; /* guards all of this */
	/* the series of the last failure; NULL: there was none */
	struct metric_series *last, *failures;
	const char *last_reason, *last_cause;
	bool open;      /* an outage, or several, that the log has not closed */
	bool announced; /* and the log has a line about it */
	bool armed;     /* the timer runs */
	bool loss_logged;
	uint64_t began;            /* clock_now, of the first one */
	uint64_t quiet_until;      /* no line before */
	uint64_t loss_quiet_until; /* the same of losses */
	uint32_t outages;
	uint64_t attempts; /* that have failed */
	struct outage_view before;
	struct send_result result; /* of the last failure */
	char *member;              /* the same; NULL: none */
};

extern const struct metric *const outage_metrics[]; /* for the manual; NULL-terminated */

void outage_init(struct outage *outage, const struct outage_options *options);
void outage_fini(struct outage *outage);
/* [loop thread] An attempt has failed. One of the next two follows, unless nothing is to be logged.
 * member: the endpoint of the one of several members that has failed, which the outage frees; NULL:
 * the destination itself. */
void outage_failed(struct outage *outage, const struct send_result *result, char *member);
/* [loop thread] There will be another attempt after this time. attempts: of the request so far. */
void outage_retries(struct outage *outage, uint32_t attempts, uint64_t delay_ns);
/* [loop thread] */
void outage_drops(struct outage *outage, const struct outage_loss *loss);
/* [any thread] An attempt has succeeded. whole: the destination does not fail any more; false: one
 * of its members still does. */
void outage_succeeded(struct outage *outage, bool whole);
/* [any thread] False: it is not failing; else *why is the last failure, with literal strings. */
bool outage_is_failing(struct outage *outage, struct send_result *why);
/* The fields by which lines describe a failure: error, cause, stage, errno, and the statuses of the
 * answer. Returns their number, at most OUTAGE_CAUSE_FIELDS. */
enum { OUTAGE_CAUSE_FIELDS = 7 };
size_t outage_cause(const struct send_result *why, struct log_field *fields);
/* Before a scrape. */
void outage_refresh(struct outage *outage);

#endif
