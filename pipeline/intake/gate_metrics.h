/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_GATE_METRICS_H
#define PIPELINE_INTAKE_GATE_METRICS_H

#include "base/metrics.h"
#include "pipeline/refusal.h"
#include "profile/request.h"

/* The counters of a gate, for one receiver and one transport. All series are created at once, so
 * that counting (mainly refusals from the headers) is one atomic addition. Each request is counted
 * once, when it ends. */
struct gate_counters {
	struct metric_series *accepted, *refused, *failed, *duplicate; /* samples */
	struct metric_series *bad_profiles, *repaired_strings;
	struct metric_series *success, *partial, *refusal, *failure, *repeated; /* requests */
	struct metric_series *empty;                  /* of the successful ones */
	struct metric_series *incomplete;             /* a pipeline refused what another one took */
	struct metric_series *reasons[REFUSAL_COUNT]; /* none for REFUSAL_NONE */
};

extern const struct metric *const gate_metrics[]; /* for the manual; NULL-terminated */

void gate_counters_init(struct gate_counters *c, struct metrics *metrics, const char *receiver,
			enum transport transport);

#endif
