/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "pipeline/delivery/on_disk.h"

#define MS UINT64_C(1000000)

static const struct metric sent_samples = { "otelcol_exporter_sent_profile_samples", METRIC_COUNTER,
					    "{samples}", "Samples that the destination accepted." };
static const struct metric failed_samples = {
	"otelcol_exporter_send_failed_profile_samples", METRIC_COUNTER, "{samples}",
	"Samples dropped, or kept as dead letters, after sending failed permanently."
};
static const struct metric enqueue_failed_samples = {
	"otelcol_exporter_enqueue_failed_profile_samples", METRIC_COUNTER, "{samples}",
	"Samples dropped, or kept as dead letters, because the destination's queue was full or "
	"because they did not fit into its own batch."
};
static const struct metric rejected_samples = {
	"otelcol_exporter_rejected_profiles", METRIC_COUNTER, "{profiles}",
	"Profiles that the destination rejected while accepting their request (partial_success)."
};
static const struct metric queue_size = { "otelcol_exporter_queue_size", METRIC_GAUGE, "{units}",
					  "Current size of the queue, in units of its sizer." };
static const struct metric queue_capacity = { "otelcol_exporter_queue_capacity", METRIC_GAUGE,
					      "{units}",
					      "Capacity of the queue, in units of its sizer." };
static const struct metric held_bytes = {
	"otelcol_exporter_queue_memory_bytes", METRIC_GAUGE, "By",
	"Memory used by the destination's packets, queued or in flight, including their encodings "
	"and parts."
};
static const struct metric share_bytes = {
	"otelcol_exporter_queue_memory_limit_bytes", METRIC_GAUGE, "By",
	"The destination's share of the memory limit. Data that does not fit is dropped for this "
	"destination, as when its queue is full."
};
static const struct metric usage_ratio = {
	"otelcol_exporter_queue_usage_ratio", METRIC_GAUGE, "1",
	"How full the queue is: the larger of its size divided by its capacity, and of its memory "
	"divided by what it may use. Above 1 while it keeps what no other queue would.",
	.decimals = 3
};
static const struct metric oldest_age = {
	"otelcol_exporter_oldest_packet_age_seconds", METRIC_GAUGE, "s",
	"Age of the oldest packet that the destination has not accepted yet, in memory or in the "
	"queue on disk, since it arrived, also before a restart; 0: there is none.",
	.decimals = 3
};
static const struct metric in_flight = { "otelcol_exporter_in_flight_requests", METRIC_GAUGE,
					 "{requests}", "Requests in flight." };
static const struct metric retries = { "otelcol_exporter_retries", METRIC_COUNTER, "{requests}",
				       "Failed attempts that are retried." };

static const struct metric circuit_state = {
	"otelcol_exporter_circuit_state", METRIC_GAUGE, "{state}",
	"0: closed, the destination answers. 1: half-open, it answers again, and the number of "
	"requests in flight increases. 2: open, only one probe at a time is sent."
};
static const struct metric killed_metric = { "otelcol_exporter_killed", METRIC_GAUGE, "",
					     "1 while the kill switch stops the destination." };
static const struct metric unstored_packets = {
	"otelcol_exporter_queue_unstored_requests", METRIC_COUNTER, "{requests}",
	"Requests that could not be stored, and wait in memory alone. A crash loses them."
};
static const struct metric unreadable_records = {
	"otelcol_exporter_queue_unreadable_records", METRIC_COUNTER, "{records}",
	"Records of the queue on disk that could not be read, by reason."
};

const struct metric *const delivery_metrics[] = { &sent_samples,
						  &failed_samples,
						  &enqueue_failed_samples,
						  &rejected_samples,
						  &queue_size,
						  &queue_capacity,
						  &held_bytes,
						  &share_bytes,
						  &usage_ratio,
						  &oldest_age,
						  &in_flight,
						  &retries,
						  &circuit_state,
						  &killed_metric,
						  &unstored_packets,
						  &unreadable_records,
						  &plan_learned_bytes,
						  &plan_learned_samples,
						  &plan_refused,
						  NULL };

/* Series of queues on disk. */
static void init_durable(struct delivery_counters *c, const struct delivery_options *options)
{
	struct metric_label labels[] = { { "exporter", options->id }, { "reason", NULL }, { 0 } };
	for (unsigned i = RECORD_SOUND + 1; i < RECORD_FAULTS; i++) {
		labels[1].value = record_faults[i];
		c->unreadable[i] = metrics_series(options->metrics, &unreadable_records, labels);
	}
	labels[1].name = NULL;
	c->unstored = metrics_series(options->metrics, &unstored_packets, labels);
}

void delivery_counters_init(struct delivery_counters *c, const struct delivery_options *options,
			    int64_t capacity)
{
	const struct metric_label labels[] = { { "exporter", options->id }, { 0 } };
	const struct metric_label typed[] = { { "data_type", "profiles" },
					      { "exporter", options->id },
					      { 0 } };
	struct metric_label addressed[] = { labels[0], { 0 }, { 0 }, { 0 } };
	struct metrics *m = options->metrics;
	if (options->ops->destination) {
		addressed[1].name = "server_address";
		addressed[2].name = "server_port";
		options->ops->destination(options->exporter, &addressed[1].value,
					  &addressed[2].value);
	}
	c->sent = metrics_series(m, &sent_samples, addressed);
	c->failed = metrics_series(m, &failed_samples, addressed);
	c->enqueue_failed = metrics_series(m, &enqueue_failed_samples, labels);
	c->rejected = metrics_series(m, &rejected_samples, labels);
	c->retried = metrics_series(m, &retries, labels);
	c->killed = metrics_series(m, &killed_metric, labels);
	c->size = metrics_series(m, &queue_size, typed);
	c->flights = metrics_series(m, &in_flight, typed);
	c->held = metrics_series(m, &held_bytes, typed);
	c->share = metrics_series(m, &share_bytes, typed);
	c->usage = metrics_series(m, &usage_ratio, typed);
	c->age = metrics_series(m, &oldest_age, labels);
	c->circuit = metrics_series(m, &circuit_state, labels);
	metric_set(metrics_series(m, &queue_capacity, typed), capacity);
	if (options->storage)
		init_durable(c, options);
}

/* The earlier of two times; 0 is none. */
static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

void delivery_metrics_refresh(void *context)
{
	struct delivery *d = context;
	pthread_mutex_lock(&d->lock);
	uint64_t oldest = earlier(backlog_oldest(&d->backlog), on_disk_oldest(d));
	pthread_mutex_unlock(&d->lock);
	uint64_t now = clock_now();
	metric_set(d->count.age, oldest && oldest < now ? (int64_t)((now - oldest) / MS) : 0);
	metric_set(d->count.held, backlog_bytes(&d->backlog));
	if (d->lanes)
		metric_set(d->count.circuit, lanes_circuit(d));
	metric_set(d->count.usage, backlog_load(&d->backlog));
	outage_refresh(&d->outage);
}
