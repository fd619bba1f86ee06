/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_REQUEST_LIMITS_H
#define PIPELINE_INTAKE_REQUEST_LIMITS_H

#include "base/metrics.h"
#include "config/table.h"
#include "profile/profiles.h"

/*
 * What one request may contain, whatever its protocol (service::limits). Sizes in bytes are limits
 * of the servers. Exceeding a limit is ERROR_TOO_LARGE; the message names the key, its value and
 * what was observed. A limit of 0 means none.
 */
struct request_limits {
	int64_t max_documents;
	int64_t max_decompression_ratio;
	int64_t max_profiles, max_samples, max_stack_depth, max_string_length, max_table_entries;
};

extern const struct config_table request_limits_table;

/* The keys, in the order of the members. */
enum limit_kind {
	LIMIT_DOCUMENTS,
	LIMIT_RATIO,
	LIMIT_PROFILES,
	LIMIT_SAMPLES,
	LIMIT_STACK_DEPTH,
	LIMIT_STRING_LENGTH,
	LIMIT_TABLE_ENTRIES,
	LIMIT_KINDS
};

/* Limits as they are enforced, with the counters of one receiver. Zeroed memory limits nothing. */
struct request_limiter {
	struct request_limits limits;
	struct metric_series *exceeded[LIMIT_KINDS]; /* NULL: not counted */
};

void request_limits_init(struct request_limiter *limiter, const struct request_limits *limits,
			 struct metrics *metrics, const char *receiver);

/* Is `observed` within the limit? Otherwise it is counted, and err has the message. [any thread] */
bool request_limits_allows(const struct request_limiter *limiter, enum limit_kind kind,
			   uint64_t observed, struct error *err);
/* Is a decoded document within its limits? Linear in its tables. [worker] */
bool request_limits_allows_tables(const struct request_limiter *limiter, const struct profiles *p,
				  struct error *err);

extern const struct metric *const request_limits_metrics[]; /* for the manual; NULL-terminated */

#endif
