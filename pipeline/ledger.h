/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_LEDGER_H
#define PIPELINE_LEDGER_H

#include "base/metrics.h"

/*
 * The conservation law, in samples, per pipeline and destination. It is true whenever nothing is in
 * transit:
 *
 *   in = merged + dropped + batched        (ledger of the pipeline)
 *        + out + dropped + queued          (ledger of the destination in that pipeline)
 *
 * What was in a destination's queue on disk at the start is `restored`; for that destination it
 * counts as `in`.
 *
 * At a destination with batches of its own, data in these batches is `queued`, and `batched` does
 * not count. `in` counts what was decoded and passed to the pipeline. All series are created by
 * init, so that counting is one atomic addition; any thread.
 */
enum ledger_reason {
	/* of the pipeline */
	LEDGER_REFUSED, /* a processor or collect refused the request; the sender was informed */
	LEDGER_POLICY,  /* removed by policy */
	LEDGER_QUOTA,   /* sampled away by a quota; the values of other samples were raised */
	/* of a destination */
	LEDGER_QUEUE_FULL,
	LEDGER_PERMANENT,
	LEDGER_TOO_LARGE,
	LEDGER_TOO_OLD,
	LEDGER_TOO_NEW,
	LEDGER_NO_RETRY,
	LEDGER_RETRIES_EXHAUSTED,
	LEDGER_EXPIRED, /* it waited too long */
	LEDGER_SHUTDOWN,
	LEDGER_KILLED,  /* the kill switch stopped the destination */
	LEDGER_PLAN,    /* the exporter's plan contains no part for it */
	LEDGER_CORRUPT, /* its record in the queue on disk cannot be read */
	LEDGER_REASONS
};

extern const char *const ledger_reasons[LEDGER_REASONS]; /* the label's values */

struct ledger {
	struct metric_series *in, *merged, *batched;
	struct metric_series *dropped[LEDGER_REASONS]; /* the pipeline's */
	struct metrics *metrics;
	const char *pipeline;
};

struct ledger_destination {
	struct metric_series *out, *queued, *restored;
	struct metric_series *dropped[LEDGER_REASONS]; /* the destination's */
};

extern const struct metric *const ledger_metrics[]; /* for the manual; NULL-terminated */

/* Of all destinations: accepted, waiting, and dropped because the program ends. */
struct ledger_totals {
	int64_t out, queued, lost;
};
struct ledger_totals ledger_totals(struct metrics *metrics);

/* The pipeline's ID is borrowed and outlives its ledger. */
void ledger_init(struct ledger *ledger, struct metrics *metrics, const char *pipeline);
void ledger_destination_init(struct ledger_destination *d, const struct ledger *pipeline,
			     const char *exporter);

#endif
