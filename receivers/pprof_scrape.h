/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECEIVERS_PPROF_SCRAPE_H
#define RECEIVERS_PPROF_SCRAPE_H

#include "base/size_limit.h"
#include "net/http/http_client_config.h"
#include "pipeline/component.h"
#include "receivers/pprof_targets.h"

/*
 * Scrapes targets: each profile of each target at its own time, all on the main loop with one timer
 * and one HTTP client. An idle target is a few hundred bytes. A scrape is admitted by the gate
 * before it is sent, and its body is charged as it arrives; workers decode it.
 *
 * At most concurrent_max scrapes are in flight. Profiles whose last scrape failed may have a
 * quarter of that, so that dead targets, which take their whole timeout, do not delay the others.
 * What is due meanwhile waits. If a scrape takes longer than the interval, the missed ones are left
 * out.
 *
 * A scrape that finds no memory, or no room in the queues, is postponed for one to two seconds.
 *
 * With `delta`, the state of a profile (profile/delta.h) is kept until the target is gone, and
 * charged. It changes only when a pipeline has accepted the difference: if a scrape fails, the next
 * one has the difference of both intervals.
 */
struct pprof_scrape_profile {
	const char *name; /* for logs */
	/* the resource attribute __name__, which names the series in Pyroscope; NULL: none */
	const char *series;
	char *path; /* path and query: appended to the target's base */
	uint64_t timeout_ns;
	bool delta;
};

struct pprof_scraper_options {
	const struct host *host; /* borrowed, as everything is that follows */
	const struct pprof_scrape_profile *profiles;
	size_t profile_count;
	const struct http_client_config *client;
	uint64_t interval_ns, delay_ns; /* delay_ns: of the first scrape of a target */
	uint64_t jitter_ns;             /* a random part of this is added to it */
	uint32_t concurrent_max;
	struct size_limit body_limit;
};

struct pprof_scraper;

struct pprof_scraper *pprof_scraper_new(const struct pprof_scraper_options *options);
/* ERROR_CONFIG: the TLS files. [loop thread] */
bool pprof_scraper_start(struct pprof_scraper *scraper, struct error *err);
/* From now on these are the targets, which are sorted (pprof_targets_sort). Those that were targets
 * before keep their state and their times. False: memory is short, and nothing has changed. [loop
 * thread] */
bool pprof_scraper_set_targets(struct pprof_scraper *scraper, const struct pprof_targets *targets);
/* How many target files cannot be read, for the metrics. [loop thread] */
void pprof_scraper_bad_files(struct pprof_scraper *scraper, uint32_t count);
/* Ends scrapes in flight; those that were fetched have 10 s to complete. [pool thread] */
void pprof_scraper_stop(struct pprof_scraper *scraper);
/* Reads the certificate files again. [loop thread] */
bool pprof_scraper_reopen(struct pprof_scraper *scraper, struct error *err);
void pprof_scraper_unref(struct pprof_scraper **scraper);

#endif
