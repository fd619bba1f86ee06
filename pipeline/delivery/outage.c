/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/outage.h"

#include "base/clock.h"
#include "base/memory.h"

#include <assert.h>
#include <string.h>

enum { FIELDS_MAX = 24 };
#define MS UINT64_C(1000000)
#define SECOND_NS UINT64_C(1000000000)

static const struct metric up_metric = {
	"otelcol_exporter_up", METRIC_GAUGE, "",
	"0 while the destination is failing: its last attempt failed. 1: it accepted the last "
	"request, or got none yet."
};
static const struct metric idle_metric = {
	"otelcol_exporter_last_success_age_seconds", METRIC_GAUGE, "s",
	"Seconds since the destination accepted a request; before the first one, since the start.",
	.decimals = 3
};
static const struct metric last_metric = {
	"otelcol_exporter_last_error", METRIC_GAUGE, "",
	"1 for the error of the last failed attempt and its cause, 0 for those before it."
};
static const struct metric failures_metric = { "otelcol_exporter_failed_attempts", METRIC_COUNTER,
					       "{attempts}", "Failed attempts by error." };

const struct metric *const outage_metrics[] = { &up_metric, &idle_metric, &last_metric,
						&failures_metric, NULL };

static void due(void *argument);

void outage_init(struct outage *o, const struct outage_options *options)
{
	const struct metric_label labels[] = { { "exporter", options->id }, { 0 } };
	*o = (struct outage){ .options = *options };
	o->options.line_ns = options->line_ns ? options->line_ns : OUTAGE_LINE_NS;
	o->succeeded_at = clock_now();
	o->timer = loop_timer_new(options->loop, due, o);
	o->up = metrics_series(options->metrics, &up_metric, labels);
	o->idle = metrics_series(options->metrics, &idle_metric, labels);
	pthread_mutex_init(&o->lock, NULL);
	outage_refresh(o);
}

/* Nobody must be alarmed by an exporter that is not configured any more. */
void outage_fini(struct outage *o)
{
	metric_set(o->up, 1);
	metric_set(o->idle, 0);
	if (o->last)
		metric_set(o->last, 0);
	loop_timer_unref(&o->timer);
	memory_free(o->member);
	pthread_mutex_destroy(&o->lock);
}

void outage_refresh(struct outage *o)
{
	uint64_t at = o->succeeded_at;
	metric_set(o->up, !o->failing);
	metric_set(o->idle, (int64_t)((clock_now() - at) / MS));
	pthread_mutex_lock(&o->lock);
	if (o->last) /* an earlier exporter of this ID has left it */
		metric_set(o->last, 1);
	pthread_mutex_unlock(&o->lock);
}

/* ---- lines */

struct message {
	struct log_field at[FIELDS_MAX];
	size_t count;
};

static void add_text(struct message *line, const char *key, const char *value)
{
	if (value)
		line->at[line->count++] = (struct log_field)log_text(key, value);
}

static void add_number(struct message *line, const char *key, uint64_t value)
{
	line->at[line->count++] = (struct log_field)log_number(key, value);
}

/* Numbers of which 0 says nothing. */
static void add_if(struct message *line, const char *key, uint64_t value)
{
	if (value)
		add_number(line, key, value);
}

static void add_why(struct message *line, const struct send_result *r)
{
	add_text(line, "error", r->reason);
	add_text(line, "cause", cause_text(r->cause.kind));
	add_text(line, "stage", cause_stage(r->cause.kind));
	add_text(line, "errno", r->cause.os_error ? strerrorname_np(r->cause.os_error) : NULL);
	add_if(line, "http_status", (uint64_t)r->http_status);
	add_if(line, "grpc_status", (uint64_t)r->grpc_status);
	add_if(line, "kafka_status", (uint64_t)r->kafka_status);
}

static void add_cause(const struct outage *o, struct message *line, const struct send_result *r)
{
	add_text(line, "endpoint", o->member ? o->member : o->options.endpoint);
	add_why(line, r);
}

size_t outage_cause(const struct send_result *why, struct log_field *fields)
{
	struct message line = { 0 };
	add_why(&line, why);
	assert(line.count <= OUTAGE_CAUSE_FIELDS);
	memcpy(fields, line.at, line.count * sizeof *fields);
	return line.count;
}

bool outage_is_failing(struct outage *o, struct send_result *why)
{
	pthread_mutex_lock(&o->lock);
	bool failing = o->failing;
	if (failing)
		*why = o->result;
	pthread_mutex_unlock(&o->lock);
	return failing;
}

/* What has happened since the outage began, and what is left. */
static void add_sums(const struct outage *o, struct message *line, const struct outage_view *now,
		     bool ended)
{
	add_number(line, ended ? "failed_for_s" : "failing_for_s",
		   (clock_now() - o->began) / SECOND_NS);
	if (o->outages > 1)
		add_number(line, "outages", o->outages);
	add_number(line, "failed_attempts", o->attempts);
	add_number(line, "waiting_items", (uint64_t)now->waiting);
	add_number(line, "queue_percent", (uint64_t)now->queue_percent);
	add_number(line, "dropped_items", now->dropped - o->before.dropped);
	add_if(line, "dead_letter_items", now->saved - o->before.saved);
}

static struct outage_view look(const struct outage *o)
{
	struct outage_view view = { 0 };
	o->options.look(o->options.context, &view);
	return view;
}

static void add_queue(const struct outage *o, struct message *line)
{
	struct outage_view now = look(o);
	add_number(line, "waiting_items", (uint64_t)now.waiting);
	add_number(line, "queue_percent", (uint64_t)now.queue_percent);
}

static void log_retry(const struct outage *o, uint32_t attempts, uint64_t delay_ns)
{
	struct message line = { 0 };
	add_cause(o, &line, &o->result);
	add_number(&line, "attempts", attempts);
	add_number(&line, "interval_ms", delay_ns / MS);
	add_queue(o, &line);
	log_warn_fields(o->options.log, "Exporting failed. Will retry the request after interval.",
			line.at, line.count);
}

static void log_loss(const struct outage *o, const struct outage_loss *loss)
{
	struct message line = { 0 };
	add_text(&line, "reason", loss->reason);
	add_cause(o, &line, &o->result);
	add_number(&line, "attempts", loss->attempts);
	add_number(&line, "dropped_items", loss->samples);
	line.at[line.count++] = (struct log_field)log_bool("dead_letters", loss->saved);
	add_queue(o, &line);
	log_error_fields(o->options.log, "Exporting failed. Dropping data.", line.at, line.count);
}

static void log_state(const struct outage *o, bool fails)
{
	struct message line = { 0 };
	struct outage_view now = look(o);
	add_cause(o, &line, &o->result);
	add_sums(o, &line, &now, !fails);
	if (fails)
		log_warn_fields(o->options.log, "Exporting still fails.", line.at, line.count);
	else
		log_warn_fields(o->options.log, "Exporting failed from time to time.", line.at,
				line.count);
}

static void log_recovery(const struct outage *o)
{
	struct message line = { 0 };
	struct outage_view now = look(o);
	add_text(&line, "endpoint", o->options.endpoint);
	add_sums(o, &line, &now, true);
	log_info_fields(o->options.log, "Exporting works again.", line.at, line.count);
}

/* ---- metrics */

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Under the lock, as those below. Series exist for errors that have occurred. */
static void count_failure(struct outage *o, const struct send_result *r)
{
	const char *cause = cause_text(r->cause.kind);
	if (!o->last || !same(r->reason, o->last_reason) || !same(cause, o->last_cause)) {
		struct metric_label labels[] = { { "exporter", o->options.id },
						 { "error", r->reason },
						 { "cause", cause },
						 { 0 } };
		if (o->last)
			metric_set(o->last, 0);
		o->last = metrics_series(o->options.metrics, &last_metric, labels);
		labels[2].name = NULL;
		o->failures = metrics_series(o->options.metrics, &failures_metric, labels);
		o->last_reason = r->reason;
		o->last_cause = cause;
	}
	metric_set(o->last, 1);
	metric_add(o->failures, 1);
}

/* ---- outages */

static void close_outage(struct outage *o)
{
	o->open = o->announced = o->loss_logged = false;
}

static void arm(struct outage *o, uint64_t now)
{
	if (o->armed)
		return;
	o->armed = true;
	loop_timer_start(o->timer, o->quiet_until > now ? o->quiet_until - now : 0);
}

static void open_outage(struct outage *o, uint64_t now)
{
	if (o->open)
		return;
	o->open = true;
	o->began = now;
	o->outages = 0;
	o->attempts = 0;
	o->before = look(o);
}

void outage_failed(struct outage *o, const struct send_result *result, char *member)
{
	pthread_mutex_lock(&o->lock);
	count_failure(o, result);
	open_outage(o, clock_now());
	o->outages += !atomic_exchange(&o->failing, true);
	o->attempts++;
	o->result = *result;
	memory_free(o->member);
	o->member = member;
	pthread_mutex_unlock(&o->lock);
}

/* Now, or with the next line. */
static bool may_announce(struct outage *o, uint64_t now)
{
	if (o->announced || now < o->quiet_until)
		return false;
	o->announced = true;
	o->quiet_until = now + o->options.line_ns;
	return true;
}

void outage_retries(struct outage *o, uint32_t attempts, uint64_t delay_ns)
{
	uint64_t now = clock_now();
	pthread_mutex_lock(&o->lock);
	open_outage(o, now);
	if (may_announce(o, now))
		log_retry(o, attempts, delay_ns);
	arm(o, now);
	pthread_mutex_unlock(&o->lock);
}

void outage_drops(struct outage *o, const struct outage_loss *loss)
{
	uint64_t now = clock_now();
	pthread_mutex_lock(&o->lock);
	open_outage(o, now);
	bool first = may_announce(o, now);
	if (!o->loss_logged && (first || now >= o->loss_quiet_until)) {
		o->loss_logged = o->announced = true;
		o->loss_quiet_until = now + o->options.line_ns;
		log_loss(o, loss);
	}
	arm(o, now);
	pthread_mutex_unlock(&o->lock);
}

void outage_succeeded(struct outage *o, bool whole)
{
	atomic_store_explicit(&o->succeeded_at, clock_now(), memory_order_relaxed);
	if (!whole || !atomic_load_explicit(&o->failing, memory_order_relaxed))
		return;
	pthread_mutex_lock(&o->lock);
	if (atomic_exchange(&o->failing, false) && o->announced) {
		log_recovery(o);
		close_outage(o);
	}
	pthread_mutex_unlock(&o->lock);
}

/* On the loop thread: the next line may be written. */
static void due(void *argument)
{
	struct outage *o = argument;
	uint64_t now = clock_now();
	pthread_mutex_lock(&o->lock);
	o->armed = false;
	if (o->open) {
		o->quiet_until = now + o->options.line_ns;
		log_state(o, o->failing);
		o->announced = true;
		if (!o->failing)
			close_outage(o);
		else
			arm(o, now);
	}
	pthread_mutex_unlock(&o->lock);
}
