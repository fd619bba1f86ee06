/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/ledger.h"

static const struct metric in_samples = {
	"otelcol_ledger_in_samples", METRIC_COUNTER, "{samples}",
	"Samples handed to the pipeline by its receivers."
};
static const struct metric merged_samples = {
	"otelcol_ledger_merged_samples", METRIC_COUNTER, "{samples}",
	"Samples that became part of an identical one (values added or timestamps concatenated)."
};
static const struct metric batched_samples = {
	"otelcol_ledger_batched_samples", METRIC_GAUGE, "{samples}",
	"Samples in open batches."
};
static const struct metric dropped_samples = {
	"otelcol_ledger_dropped_samples", METRIC_COUNTER, "{samples}",
	"Samples dropped: by the pipeline (no exporter label) or at one destination, by reason."
};
static const struct metric out_samples = {
	"otelcol_ledger_out_samples", METRIC_COUNTER, "{samples}",
	"Samples of the pipeline that a destination took."
};
static const struct metric queued_samples = {
	"otelcol_ledger_queued_samples", METRIC_GAUGE, "{samples}",
	"Samples of the pipeline that wait for a destination or are on their way to it."
};

const struct metric *const ledger_metrics[] = {
	&in_samples, &merged_samples, &batched_samples, &dropped_samples, &out_samples, &queued_samples, NULL
};

void ledger_init(struct ledger *ledger, struct metrics *metrics, const char *pipeline)
{
	const struct metric_label labels[] = { { "pipeline", pipeline }, { 0 } };
	*ledger = (struct ledger){
		.in = metrics_series(metrics, &in_samples, labels),
		.merged = metrics_series(metrics, &merged_samples, labels),
		.batched = metrics_series(metrics, &batched_samples, labels),
		.metrics = metrics,
		.pipeline = pipeline,
	};
}

void ledger_drop(struct ledger *ledger, const char *reason, int64_t samples)
{
	const struct metric_label labels[] = { { "pipeline", ledger->pipeline }, { "reason", reason }, { 0 } };
	if (samples)
		series_add(metrics_series(ledger->metrics, &dropped_samples, labels), samples);
}

void ledger_destination_init(struct ledger_destination *d, struct metrics *metrics, const char *pipeline,
			     const char *exporter)
{
	const struct metric_label labels[] = { { "exporter", exporter }, { "pipeline", pipeline }, { 0 } };
	*d = (struct ledger_destination){
		.out = metrics_series(metrics, &out_samples, labels),
		.queued = metrics_series(metrics, &queued_samples, labels),
		.metrics = metrics,
		.pipeline = pipeline,
		.exporter = exporter,
	};
}

void ledger_destination_drop(struct ledger_destination *d, const char *reason, int64_t samples)
{
	const struct metric_label labels[] = {
		{ "exporter", d->exporter }, { "pipeline", d->pipeline }, { "reason", reason }, { 0 }
	};
	if (samples)
		series_add(metrics_series(d->metrics, &dropped_samples, labels), samples);
}
