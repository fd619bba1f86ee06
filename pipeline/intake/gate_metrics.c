/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/gate_metrics.h"

static const struct metric accepted_samples = {
	"otelcol_receiver_accepted_profile_samples", METRIC_COUNTER, "{samples}",
	"Samples that were accepted, including those that the policy drops later."
};
static const struct metric refused_samples = {
	"otelcol_receiver_refused_profile_samples", METRIC_COUNTER, "{samples}",
	"Decoded samples that were refused: those of invalid Profiles and of requests that no "
	"pipeline accepted."
};
static const struct metric failed_samples = {
	"otelcol_receiver_failed_profile_samples", METRIC_COUNTER, "{samples}",
	"Decoded samples of requests that failed for an internal reason."
};
static const struct metric duplicate_samples = {
	"otelcol_receiver_duplicate_profile_samples", METRIC_COUNTER, "{samples}",
	"Samples of repeated requests, which were answered as the request that they repeat, and "
	"dropped (deduplicate)."
};
static const struct metric requests = {
	"otelcol_receiver_requests", METRIC_COUNTER, "{requests}",
	"Requests by outcome: success, partial, duplicate, refused, failure."
};
static const struct metric empty_requests = {
	"otelcol_receiver_empty_requests", METRIC_COUNTER, "{requests}",
	"Requests that were accepted and contain no samples."
};
static const struct metric incomplete_requests = {
	"otelcol_receiver_incomplete_requests", METRIC_COUNTER, "{requests}",
	"Requests of which at least one pipeline accepted data while another one refused data, "
	"also behind connectors. They are also counted by their outcome."
};
static const struct metric refused_requests = {
	"otelcol_receiver_refused_requests", METRIC_COUNTER, "{requests}",
	"Requests refused or failed, by reason. peer_memory, peer_queue: the sender has used "
	"up its share of the memory or of the request queue, while there is still room for "
	"other senders."
};
static const struct metric refused_profiles = {
	"otelcol_receiver_refused_profiles", METRIC_COUNTER, "{profiles}",
	"Invalid Profiles, and invalid documents of requests that contain several. The rest of "
	"such a request, if any, was accepted."
};
static const struct metric repaired_strings = { "otelcol_receiver_repaired_strings", METRIC_COUNTER,
						"{strings}",
						"Strings with invalid UTF-8, replaced by U+FFFD." };

const struct metric *const gate_metrics[] = { &accepted_samples,
					      &duplicate_samples,
					      &refused_samples,
					      &failed_samples,
					      &requests,
					      &empty_requests,
					      &incomplete_requests,
					      &refused_requests,
					      &refused_profiles,
					      &repaired_strings,
					      NULL };

void gate_counters_init(struct gate_counters *c, struct metrics *metrics, const char *receiver,
			enum transport transport)
{
	struct metric_label labels[] = {
		{ "receiver", receiver }, { "transport", transport_names[transport] }, { 0 }, { 0 }
	};
	*c = (struct gate_counters){
		.accepted = metrics_series(metrics, &accepted_samples, labels),
		.refused = metrics_series(metrics, &refused_samples, labels),
		.failed = metrics_series(metrics, &failed_samples, labels),
		.duplicate = metrics_series(metrics, &duplicate_samples, labels),
		.bad_profiles = metrics_series(metrics, &refused_profiles, labels),
		.empty = metrics_series(metrics, &empty_requests, labels),
		.incomplete = metrics_series(metrics, &incomplete_requests, labels),
		.repaired_strings = metrics_series(metrics, &repaired_strings, labels),
	};
	const struct {
		const char *outcome;
		struct metric_series **series;
	} outcomes[] = {
		{ "success", &c->success },    { "partial", &c->partial },
		{ "duplicate", &c->repeated }, { "refused", &c->refusal },
		{ "failure", &c->failure },
	};
	for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++) {
		labels[2] = (struct metric_label){ "outcome", outcomes[i].outcome };
		*outcomes[i].series = metrics_series(metrics, &requests, labels);
	}
	for (int i = REFUSAL_NONE + 1; i < REFUSAL_COUNT; i++) {
		labels[2] = (struct metric_label){ "reason", refusal_names[i] };
		c->reasons[i] = metrics_series(metrics, &refused_requests, labels);
	}
}
