/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_DELIVERY_METRICS_H
#define PIPELINE_DELIVERY_DELIVERY_METRICS_H

#include "pipeline/delivery/delivery.h"
#include "pipeline/delivery/record.h"

/* What a delivery counts, besides its ledgers. */
struct delivery_counters {
	struct metric_series *sent, *failed, *enqueue_failed, *rejected, *size, *flights, *retried,
		*held, *share, *usage, *age, *circuit, *killed, *unstored;
	struct metric_series *unreadable[RECORD_FAULTS];
};

/* capacity: of the queue, in units of its sizer. */
void delivery_counters_init(struct delivery_counters *c, const struct delivery_options *options,
			    int64_t capacity);
/* Before a scrape. [any thread] */
void delivery_metrics_refresh(void *delivery);

#endif
