/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_LEDGER_H
#define PIPELINE_LEDGER_H

#include "base/metrics.h"

/*
 * The conservation law, in samples, per pipeline and destination, true whenever nothing is on its way:
 *
 *	in = merged + dropped + batched        (ledger of the pipeline)
 *	     + out + dropped + queued          (ledger of the destination in that pipeline)
 *
 * `in` counts what decoded and was handed to the pipeline. Reasons are fixed words.
 */
struct ledger {
	struct series *in, *merged, *batched;
	struct metrics *metrics;
	const char *pipeline;
};

struct ledger_destination {
	struct series *out, *queued;
	struct metrics *metrics;
	const char *pipeline, *exporter;
};

extern const struct metric *const ledger_metrics[]; /* for the manual; NULL-terminated */

void ledger_init(struct ledger *ledger, struct metrics *metrics, const char *pipeline);
void ledger_drop(struct ledger *ledger, const char *reason, int64_t samples);

void ledger_destination_init(struct ledger_destination *d, struct metrics *metrics, const char *pipeline,
			     const char *exporter);
void ledger_destination_drop(struct ledger_destination *d, const char *reason, int64_t samples);

#endif
