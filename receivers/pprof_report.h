/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECEIVERS_PPROF_REPORT_H
#define RECEIVERS_PPROF_REPORT_H

#include "pipeline/component.h"

/* What `remote` counts and logs, and the metric of `file`. Of the targets, no more than their
 * number is a metric. [loop thread] */
enum scrape_result {
	SCRAPE_SUCCESS,
	SCRAPE_FIRST,     /* a new beginning for deltas */
	SCRAPE_RESTARTED, /* the same: the process has restarted */
	SCRAPE_NO_MEMORY,
	SCRAPE_BUSY, /* the queues are full, or the target has used up its share */
	SCRAPE_STATUS,
	SCRAPE_REDIRECTED,
	SCRAPE_DEADLINE,
	SCRAPE_TLS,
	SCRAPE_UNRESOLVED,
	SCRAPE_CUT,
	SCRAPE_UNAVAILABLE,
	SCRAPE_URL,
	SCRAPE_AUTH, /* there are no credentials for the request */
	SCRAPE_TOO_LARGE,
	SCRAPE_ENCODING,
	SCRAPE_INVALID,
	SCRAPE_REFUSED,
	SCRAPE_CANCELLED,
	SCRAPE_RESULTS
};

enum scrape_state { SCRAPE_UNKNOWN, SCRAPE_UP, SCRAPE_DOWN, SCRAPE_STATES };

struct scrape_numbers { /* now */
	int64_t targets[SCRAPE_STATES];
	int64_t in_flight, waiting;
	int64_t oldest_ns; /* since the last success of the profile for which it is longest ago */
	int64_t delta_bytes;
};

struct pprof_report {
	const struct log *log;
	struct metric_series *results[SCRAPE_RESULTS];
	struct metric_series *targets[SCRAPE_STATES];
	struct metric_series *duration, *in_flight, *waiting, *oldest, *delta_bytes, *bad_files;
	uint32_t lines;        /* that may still be logged in this period */
	uint32_t failed, well; /* changes that were not logged */
};

extern const struct metric *const pprof_report_metrics[]; /* NULL-terminated */
extern const struct metric pprof_file_reads;

/* The period for which the number of lines is limited, and after which the gauges are set. */
enum { REPORT_LINES = 10 };
#define REPORT_PERIOD_NS UINT64_C(5000000000)

void pprof_report_init(struct pprof_report *report, const struct host *host);
/* The result of a failure of the HTTP client. */
enum scrape_result pprof_report_failure(const char *failure);
/* The state after this result; postponed scrapes leave it as it is. */
enum scrape_state pprof_report_state(enum scrape_state before, enum scrape_result result);
/* A scrape is over. */
void pprof_report_result(struct pprof_report *report, enum scrape_result result,
			 uint64_t duration_ns);
/* Logs a change between up and down. `status`: of the reply; 0: none. `error`: what was wrong with
 * the profile; NULL: nothing. */
void pprof_report_change(struct pprof_report *report, const char *place, const char *profile,
			 enum scrape_result result, int status, const char *error);
/* The period is over. */
void pprof_report_period(struct pprof_report *report, const struct scrape_numbers *numbers);

#endif
