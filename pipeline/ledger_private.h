/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_LEDGER_PRIVATE_H
#define PIPELINE_LEDGER_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "pipeline/ledger.h"

/* Inside the ledger: ledger.c has the rows and the transactions; ledger_snapshot.c reads, checks
 * and shows them. */
enum ledger_side { LEDGER_SOURCE, LEDGER_HELD, LEDGER_END };

struct ledger_column_info {
	const char *name; /* in the log; of a dropped column, the reason */
	enum ledger_side side;
	const struct metric *metrics[LEDGER_SCOPES]; /* NULL: rows of this scope have no such
							 column */
	bool dropped;                                /* the metrics have the label `reason` */
};

extern const struct ledger_column_info ledger_columns[LEDGER_COLUMNS];

enum { LEDGER_LOCKS = 16, LEDGER_BUCKETS = 512, LEDGER_LINE = 64 /* bytes of a cache line */ };

struct ledger_row {
	struct ledger_row *next, *next_in_bucket;
	struct ledger *ledger;
	enum ledger_scope scope;
	char *name, *exporter; /* exporter: of a destination, whose name is its pipeline's */
	struct metric_series *series[LEDGER_COLUMNS]; /* NULL: none yet; under the ledger's lock */
	bool logged;                                  /* that it does not balance; the same */
	/* NULL: itself. Otherwise this is a name of a tenant without a row, and not in `rows`. */
	struct ledger_row *counts_as;
	_Atomic int64_t at[LEDGER_COLUMNS];
};

/* Of the threads with the same number modulo LEDGER_LOCKS. */
struct ledger_lock {
	_Alignas(LEDGER_LINE) pthread_mutex_t mutex;
};

struct ledger {
	struct metrics *metrics;
	struct metric_series *imbalances;
	_Atomic bool aborts;
	pthread_mutex_t lock; /* guards the rows; before the locks of transactions */
	struct ledger_row *rows, **last, *names, *buckets[LEDGER_BUCKETS];
	uint32_t count, tenants, tenants_max;
	struct ledger_lock locks[LEDGER_LOCKS];
};

/* Creates the series of a column. Under the ledger's lock. */
void ledger_show_column(struct ledger_row *row, enum ledger_column column);
/* The callback of metrics_on_scrape. */
void ledger_publish(void *ledger);

#endif
