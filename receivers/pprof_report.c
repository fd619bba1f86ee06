/* SPDX-License-Identifier: Apache-2.0 */
#include "receivers/pprof_report.h"

#include <string.h>

static const struct metric scrapes = {
	"otelcol_scraper_scrapes", METRIC_COUNTER, "{scrapes}",
	"Scrapes of `pprof` receivers by outcome (success, skipped, postponed, failed) and "
	"reason. Skipped: the profile was the first of its target or of a restarted process, so "
	"there is no difference. Postponed: memory is short, or (busy) the queues are full or the "
	"target has used up its share."
};
static const struct metric duration = { "otelcol_scraper_scrape_duration_seconds", METRIC_COUNTER,
					"s",
					"Time that scrapes took, from the request until a pipeline "
					"accepted the profile.",
					3 };
static const struct metric targets = {
	"otelcol_scraper_targets", METRIC_GAUGE, "{targets}",
	"Targets by state. Up: the last scrape of each profile was successful. Down: one failed. "
	"Unknown: a profile was never scraped."
};
static const struct metric in_flight = { "otelcol_scraper_scrapes_in_flight", METRIC_GAUGE,
					 "{scrapes}", "Scrapes in progress." };
static const struct metric waiting = {
	"otelcol_scraper_scrapes_waiting", METRIC_GAUGE, "{scrapes}",
	"Scrapes that are due but wait because max_concurrent_scrapes are in progress."
};
static const struct metric oldest = {
	"otelcol_scraper_oldest_success_age_seconds", METRIC_GAUGE, "s",
	"Time since the last successful scrape of the profile that has waited longest for one."
};
static const struct metric delta_bytes = { "otelcol_scraper_delta_state_bytes", METRIC_GAUGE, "By",
					   "Memory of the last values of cumulative profiles." };
static const struct metric bad_files = { "otelcol_scraper_failed_target_files", METRIC_GAUGE,
					 "{files}",
					 "Target files that cannot be read, so that their last "
					 "targets stay in use." };

const struct metric pprof_file_reads = {
	"otelcol_receiver_file_reads", METRIC_COUNTER, "{files}",
	"Files that `pprof` receivers have read, by outcome (success, postponed, failed). "
	"Postponed: memory is short or the queues are full."
};

const struct metric *const pprof_report_metrics[] = { &scrapes,     &duration,  &targets,
						      &in_flight,   &waiting,   &oldest,
						      &delta_bytes, &bad_files, &pprof_file_reads,
						      NULL };

/* The reasons of failures of the HTTP client are its own words. */
static const struct {
	const char *outcome, *reason;
} names[SCRAPE_RESULTS] = {
	[SCRAPE_SUCCESS] = { "success", "none" },
	[SCRAPE_FIRST] = { "skipped", "first" },
	[SCRAPE_RESTARTED] = { "skipped", "restarted" },
	[SCRAPE_NO_MEMORY] = { "postponed", "memory" },
	[SCRAPE_BUSY] = { "postponed", "busy" },
	[SCRAPE_STATUS] = { "failed", "http_status" },
	[SCRAPE_REDIRECTED] = { "failed", "redirected" },
	[SCRAPE_DEADLINE] = { "failed", "deadline_exceeded" },
	[SCRAPE_TLS] = { "failed", "tls" },
	[SCRAPE_UNRESOLVED] = { "failed", "unresolved" },
	[SCRAPE_CUT] = { "failed", "cut" },
	[SCRAPE_UNAVAILABLE] = { "failed", "unavailable" },
	[SCRAPE_URL] = { "failed", "url" },
	[SCRAPE_AUTH] = { "failed", "auth" },
	[SCRAPE_TOO_LARGE] = { "failed", "too_large" },
	[SCRAPE_ENCODING] = { "failed", "encoding" },
	[SCRAPE_INVALID] = { "failed", "invalid" },
	[SCRAPE_REFUSED] = { "failed", "refused" },
	[SCRAPE_CANCELLED] = { "failed", "cancelled" },
};

static const char *const states[SCRAPE_STATES] = { "unknown", "up", "down" };

void pprof_report_init(struct pprof_report *r, const struct host *host)
{
	struct metric_label labels[] = { { "receiver", host->id }, { 0 }, { 0 }, { 0 } };
	*r = (struct pprof_report){
		.log = &host->log,
		.lines = REPORT_LINES,
		.duration = metrics_series(host->metrics, &duration, labels),
		.in_flight = metrics_series(host->metrics, &in_flight, labels),
		.waiting = metrics_series(host->metrics, &waiting, labels),
		.oldest = metrics_series(host->metrics, &oldest, labels),
		.delta_bytes = metrics_series(host->metrics, &delta_bytes, labels),
		.bad_files = metrics_series(host->metrics, &bad_files, labels),
	};
	for (int i = 0; i < SCRAPE_STATES; i++) {
		labels[1] = (struct metric_label){ "state", states[i] };
		r->targets[i] = metrics_series(host->metrics, &targets, labels);
	}
	for (int i = 0; i < SCRAPE_RESULTS; i++) {
		labels[1] = (struct metric_label){ "outcome", names[i].outcome };
		labels[2] = (struct metric_label){ "reason", names[i].reason };
		r->results[i] = metrics_series(host->metrics, &scrapes, labels);
	}
}

enum scrape_result pprof_report_failure(const char *failure)
{
	for (int i = SCRAPE_STATUS; i < SCRAPE_RESULTS; i++)
		if (!strcmp(names[i].reason, failure))
			return (enum scrape_result)i;
	return SCRAPE_UNAVAILABLE;
}

enum scrape_state pprof_report_state(enum scrape_state before, enum scrape_result result)
{
	if (result == SCRAPE_NO_MEMORY || result == SCRAPE_BUSY || result == SCRAPE_CANCELLED)
		return before;
	return result < SCRAPE_NO_MEMORY ? SCRAPE_UP : SCRAPE_DOWN;
}

void pprof_report_result(struct pprof_report *r, enum scrape_result result, uint64_t duration_ns)
{
	metric_add(r->results[result], 1);
	metric_add(r->duration, (int64_t)(duration_ns / 1000000));
}

void pprof_report_change(struct pprof_report *r, const char *place, const char *profile,
			 enum scrape_result result, int status, const char *error)
{
	bool up = pprof_report_state(SCRAPE_UNKNOWN, result) == SCRAPE_UP;
	if (!r->lines) {
		r->failed += !up;
		r->well += up;
		return;
	}
	r->lines--;
	if (up)
		log_info(r->log, "Scrapes succeed again", log_text("target", place),
			 log_text("profile", profile));
	else
		log_warn(r->log, "Scrapes fail", log_text("target", place),
			 log_text("profile", profile), log_text("reason", names[result].reason),
			 log_number("status", status), log_text("error", error ? error : ""));
}

void pprof_report_period(struct pprof_report *r, const struct scrape_numbers *n)
{
	if (r->failed || r->well)
		log_warn(r->log, "More targets changed their state",
			 log_number("failing", r->failed), log_number("succeeding", r->well));
	r->failed = r->well = 0;
	r->lines = REPORT_LINES;
	for (int i = 0; i < SCRAPE_STATES; i++)
		metric_set(r->targets[i], n->targets[i]);
	metric_set(r->in_flight, n->in_flight);
	metric_set(r->waiting, n->waiting);
	metric_set(r->oldest, n->oldest_ns / 1000000000);
	metric_set(r->delta_bytes, n->delta_bytes);
}
