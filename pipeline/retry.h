/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_RETRY_H
#define PIPELINE_RETRY_H

#include "config/table.h"

/* The Collector's keys of repeated attempts (configretry): `retry_on_failure` of exporters and
 * `error_backoff` of the receiver `kafka`. */
struct retry_config {
	struct optional present;
	struct duration initial_interval, max_interval, max_elapsed_time;
	double randomization_factor, multiplier;
};

extern const struct config_table retry_table;

/* The delay before a retry: chosen at random from interval * [1 - f, 1 + f], but at least what the
 * destination asked for (-1 ms: it did not). It cannot ask for more than max_elapsed_time, or for
 * more than an hour if that is 0. And the interval of the next retry. */
uint64_t retry_delay(const struct retry_config *r, int64_t interval_ns, int64_t asked_ms);
int64_t retry_next_interval(const struct retry_config *r, int64_t interval_ns);

#endif
