/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/ledger.h"

static const struct metric in_samples = {
	"otelcol_ledger_in_samples", METRIC_COUNTER, "{samples}",
	"Samples that the pipeline received from its receivers."
};
static const struct metric merged_samples = {
	"otelcol_ledger_merged_samples", METRIC_COUNTER, "{samples}",
	"Samples that were merged into an identical one (values added or timestamps concatenated)."
};
static const struct metric batched_samples = { "otelcol_ledger_batched_samples", METRIC_GAUGE,
					       "{samples}",
					       "Samples in open batches of the pipeline." };
static const struct metric dropped_samples = {
	"otelcol_ledger_dropped_samples", METRIC_COUNTER, "{samples}",
	"Samples dropped by the pipeline (no exporter label) or for one destination, by reason."
};
static const struct metric out_samples = { "otelcol_ledger_out_samples", METRIC_COUNTER,
					   "{samples}",
					   "Samples of the pipeline that a destination accepted." };
static const struct metric queued_samples = {
	"otelcol_ledger_queued_samples", METRIC_GAUGE, "{samples}",
	"Samples of the pipeline that are waiting for a destination, in its queue or its own "
	"batches, or are in flight to it."
};

static const struct metric restored_samples = {
	"otelcol_ledger_restored_samples", METRIC_COUNTER, "{samples}",
	"Samples of the pipeline that were in the destination's queue on disk at the start."
};

const struct metric *const ledger_metrics[] = { &in_samples,       &merged_samples,
						&batched_samples,  &dropped_samples,
						&out_samples,      &queued_samples,
						&restored_samples, NULL };

const char *const ledger_reasons[LEDGER_REASONS] = {
	[LEDGER_REFUSED] = "refused",     [LEDGER_POLICY] = "policy",
	[LEDGER_QUOTA] = "quota",         [LEDGER_QUEUE_FULL] = "queue_full",
	[LEDGER_PERMANENT] = "permanent", [LEDGER_TOO_LARGE] = "too_large",
	[LEDGER_TOO_OLD] = "too_old",     [LEDGER_TOO_NEW] = "too_new",
	[LEDGER_NO_RETRY] = "no_retry",   [LEDGER_RETRIES_EXHAUSTED] = "retries_exhausted",
	[LEDGER_SHUTDOWN] = "shutdown",   [LEDGER_KILLED] = "killed",
	[LEDGER_EXPIRED] = "expired",     [LEDGER_PLAN] = "plan",
	[LEDGER_CORRUPT] = "corrupt",
};

/* labels: reason first. */
static void make_dropped(struct metrics *metrics, struct metric_label *labels,
			 enum ledger_reason first, enum ledger_reason end,
			 struct metric_series **dropped)
{
	for (enum ledger_reason r = first; r < end; r++) {
		labels[0] = (struct metric_label){ "reason", ledger_reasons[r] };
		dropped[r] = metrics_series(metrics, &dropped_samples, labels);
	}
}

void ledger_init(struct ledger *ledger, struct metrics *metrics, const char *pipeline)
{
	struct metric_label labels[] = { { "reason", NULL }, { "pipeline", pipeline }, { 0 } };
	*ledger = (struct ledger){
		.in = metrics_series(metrics, &in_samples, labels + 1),
		.merged = metrics_series(metrics, &merged_samples, labels + 1),
		.batched = metrics_series(metrics, &batched_samples, labels + 1),
		.metrics = metrics,
		.pipeline = pipeline,
	};
	make_dropped(metrics, labels, LEDGER_REFUSED, LEDGER_QUEUE_FULL, ledger->dropped);
}

void ledger_destination_init(struct ledger_destination *d, const struct ledger *pipeline,
			     const char *exporter)
{
	struct metric_label labels[] = { { "reason", NULL },
					 { "pipeline", pipeline->pipeline },
					 { "exporter", exporter },
					 { 0 } };
	*d = (struct ledger_destination){
		.out = metrics_series(pipeline->metrics, &out_samples, labels + 1),
		.queued = metrics_series(pipeline->metrics, &queued_samples, labels + 1),
		.restored = metrics_series(pipeline->metrics, &restored_samples, labels + 1),
	};
	make_dropped(pipeline->metrics, labels, LEDGER_QUEUE_FULL, LEDGER_REASONS, d->dropped);
}

struct ledger_totals ledger_totals(struct metrics *metrics)
{
	return (struct ledger_totals){
		.out = metrics_sum(metrics, &out_samples, ""),
		.queued = metrics_sum(metrics, &queued_samples, ""),
		.lost = metrics_sum(metrics, &dropped_samples, "reason=\"shutdown\""),
	};
}
