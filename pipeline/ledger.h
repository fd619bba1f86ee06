/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_LEDGER_H
#define PIPELINE_LEDGER_H

#include "base/log.h"
#include "base/metrics.h"

/*
 * The account of every sample of the process. There is one row for each receiver, each pipeline,
 * each destination of a pipeline, and each tenant. A row has columns of three kinds, and for every
 * row this is true at every instant:
 *
 *   sources = held + ends
 *
 *   row          sources        held                  ends
 *   receiver     in             processing            accepted, dropped
 *   pipeline     in             processing, batched   merged, passed, dropped
 *   destination  in, restored   queued                out, dead letter, dropped
 *   tenant       in, restored   queued                out, dead letter, dropped
 *
 * A receiver's `in` is what its requests contained, once for each request. A pipeline's `in` is
 * what it got of that. A destination's `in` is what was handed to it by the pipeline; if it has
 * batches of its own, data in them is `queued` there. A tenant's row is the sum of its data at all
 * destinations. What a pipeline passes on enters all its destinations in the same instant, so for
 * each destination that shares the pipeline's batches
 *
 *   in + restored = processing + merged + dropped + batched   (row of the pipeline)
 *                   + out + dead letter + dropped + queued    (row of the destination)
 *
 * holds at every instant too, as long as the destination belongs to the pipeline.
 *
 * A connector is a destination of the pipelines that lead to it: what enters is `out` when it
 * enters the pipelines behind it, in the same instant, or dropped.
 *
 * Samples move from column to column in transactions (ledger_enter to ledger_leave): additions to
 * atomic counters under one of several locks, which the thread shares with few others. A snapshot
 * takes all locks, so it never sees half of a transaction, and all its rows are of the same
 * instant. Metrics show snapshots only. Each snapshot is checked: in test builds, a row that does
 * not balance prints all rows and ends the program; in release builds it is counted and logged.
 *
 * Rows live as long as the ledger. All functions may be called by any thread.
 */
enum ledger_scope {
	LEDGER_RECEIVER,
	LEDGER_PIPELINE,
	LEDGER_DESTINATION,
	LEDGER_TENANT,
	LEDGER_SCOPES
};

/* What a new state of samples needs is its name here and its line in the table `columns` of
 * ledger.c. */
enum ledger_column {
	/* sources */
	LEDGER_IN,
	LEDGER_RESTORED, /* was in the queue on disk at the start */
	/* held */
	LEDGER_PROCESSING, /* decoded; the request or the document is not done */
	LEDGER_BATCHED,
	LEDGER_QUEUED, /* or in flight */
	/* ends */
	LEDGER_ACCEPTED,
	LEDGER_MERGED,
	LEDGER_PASSED, /* to the destinations */
	LEDGER_OUT,    /* a destination accepted it */
	/* a destination did not get it, and it is kept (pipeline/delivery/dead_letters.h) */
	LEDGER_DEAD_LETTER,
	/* ends: dropped, by reason */
	LEDGER_REFUSED,   /* the sender was informed */
	LEDGER_FAILED,    /* an error that is not the sender's */
	LEDGER_DUPLICATE, /* in a request that repeats an accepted one */
	LEDGER_POLICY,    /* removed by policy */
	LEDGER_QUOTA,     /* sampled away by a quota; the values of other samples were raised */
	LEDGER_QUEUE_FULL,
	LEDGER_PERMANENT,
	LEDGER_TOO_LARGE,
	LEDGER_TOO_OLD,
	LEDGER_TOO_NEW,
	LEDGER_NO_RETRY,
	LEDGER_RETRIES_EXHAUSTED,
	LEDGER_EXPIRED, /* it waited too long */
	LEDGER_SHUTDOWN,
	LEDGER_KILLED,   /* the kill switch stopped the destination */
	LEDGER_PLAN,     /* the exporter's plan contains no part for it */
	LEDGER_CORRUPT,  /* its record in the queue on disk cannot be read */
	LEDGER_SHED,     /* memory is short, and the destination is best-effort */
	LEDGER_UNROUTED, /* it takes no route of the connector */
	LEDGER_COLUMNS
};

/* The label's value of a column that is a reason. */
const char *ledger_reason(enum ledger_column column);

struct ledger;
struct ledger_row;

struct ledger *ledger_new(struct metrics *metrics);
void ledger_unref(struct ledger **ledger); /* before its metrics */

/* The number of tenants that get a row of their own, at most LEDGER_TENANTS_MAX; all others share
 * the row `other`, which is not among them. Rows that exist stay. */
enum { LEDGER_TENANTS_MAX = 1000 };
void ledger_limit_tenants(struct ledger *ledger, int64_t limit);

/* Finds or creates a row. */
struct ledger_row *ledger_receiver(struct ledger *ledger, const char *receiver);
struct ledger_row *ledger_pipeline(struct ledger *ledger, const char *pipeline);
struct ledger_row *ledger_destination(struct ledger *ledger, const char *pipeline,
				      const char *exporter);
/* NULL if there is no tenant (NULL). */
struct ledger_row *ledger_tenant(struct ledger *ledger, const char *tenant);
/* The same for a tenant that had data on disk at the start. If it counts as `other`, it does so
 * until the program ends, even if the limit is raised: its data is never in two rows. */
struct ledger_row *ledger_restored_tenant(struct ledger *ledger, const char *tenant);
/* Of a tenant: its name, or LEDGER_OTHER. */
#define LEDGER_OTHER "other"
const char *ledger_row_name(const struct ledger_row *row);

/* A transaction: short, with nothing in it but ledger_add and ledger_move. The caller may hold
 * locks; none is taken in between. */
void ledger_enter(struct ledger *ledger);
void ledger_leave(struct ledger *ledger);

/* Within a transaction. row NULL: nothing. ledger_bring: from a source into a column; ledger_move:
 * from one column into another. */
void ledger_add(struct ledger_row *row, enum ledger_column column, int64_t samples);
void ledger_bring(struct ledger_row *row, enum ledger_column source, enum ledger_column to,
		  uint64_t samples);
void ledger_move(struct ledger_row *row, enum ledger_column from, enum ledger_column to,
		 uint64_t samples);

int64_t ledger_get(const struct ledger_row *row, enum ledger_column column);

/* The sum of a column over all rows of a scope. */
int64_t ledger_sum(struct ledger *ledger, enum ledger_scope scope, enum ledger_column column);

/* Calls `each` for each row of a destination, so several times for an exporter of several
 * pipelines. It must not come back to the ledger. */
void ledger_each_destination(struct ledger *ledger, enum ledger_column column,
			     void (*each)(void *context, const char *exporter, int64_t samples),
			     void *context);

/* Takes a snapshot, and returns the number of its rows that do not balance; ends the program if
 * there are any and the ledger aborts. `rest`: nothing may be held except in queues. */
uint32_t ledger_check(struct ledger *ledger, bool rest);
/* The same for a row of which the caller knows that it is wrong, although it balances. */
void ledger_fail(struct ledger_row *row);
/* Whether it does: by default in every build but the release. */
void ledger_set_abort(struct ledger *ledger, bool aborts);

/* Logs a snapshot, one line for each row; of tenants, the ten with the most samples, and the sum of
 * the others. */
void ledger_log(struct ledger *ledger, const struct log *log);

extern const struct metric *const ledger_metrics[]; /* for the manual; NULL-terminated */

#endif
