/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/retry.h"

#include "base/hash.h"

/* A destination that always answers at once must not keep us busy. */
#define DELAY_MIN_NS 10000000
#define DELAY_MAX_NS (INT64_C(1) << 62)
#define ASKED_MAX_NS INT64_C(3600000000000)

static void check_retry(const void *config, struct faults *faults)
{
	const struct retry_config *r = config;
	if (r->initial_interval.ns < 0)
		faults_add(faults, "'initial_interval' must be non-negative");
	if (r->randomization_factor < 0 || r->randomization_factor > 1)
		faults_add(faults, "'randomization_factor' must be within [0, 1]");
	if (r->multiplier < 0)
		faults_add(faults, "'multiplier' must be non-negative");
	if (r->max_interval.ns < 0)
		faults_add(faults, "'max_interval' must be non-negative");
	if (r->max_elapsed_time.ns < 0)
		faults_add(faults, "'max_elapsed_time' must be non-negative");
	if (r->max_elapsed_time.ns > 0 && r->max_elapsed_time.ns < r->initial_interval.ns)
		faults_relate(faults, "initial_interval",
			      "'max_elapsed_time' must not be less than 'initial_interval'");
	if (r->max_elapsed_time.ns > 0 && r->max_elapsed_time.ns < r->max_interval.ns)
		faults_relate(faults, "max_interval",
			      "'max_elapsed_time' must not be less than 'max_interval'");
}

/* check_retry says it when one is negative. */
#define INTERVAL_ROW(name, value, text) \
	CONFIG_ROW(struct retry_config, name, .key = #name, .def = value, .limited = true, \
		   .min = INT64_MIN, .max = INT64_MAX, .help = text)

static const struct config_row retry_rows[] = {
	INTERVAL_ROW(initial_interval, "5s", "Delay before the first retry; at least 10 ms."),
	CONFIG_ROW(struct retry_config, randomization_factor, .key = "randomization_factor",
		   .def = "0.5",
		   .help = "Each delay is chosen at random from interval * [1 - f, 1 + f]."),
	CONFIG_ROW(struct retry_config, multiplier, .key = "multiplier", .def = "1.5",
		   .help = "Factor by which the interval grows with each retry; 0 means 1."),
	INTERVAL_ROW(max_interval, "30s", "Maximum of the interval."),
	INTERVAL_ROW(max_elapsed_time, "5m",
		     "Data is dropped after it has been retried for this time; 0: it is "
		     "retried without limit."),
	{ 0 }
};
const struct config_table retry_table = { .size = sizeof(struct retry_config),
					  .rows = retry_rows,
					  .check = check_retry,
					  .optional = true };

/* A destination whose clock is wrong asks for years. It is asked again when what waits for it now
 * would be given up. */
static double asked_max(const struct retry_config *r)
{
	return (double)(r->max_elapsed_time.ns > 0 ? r->max_elapsed_time.ns : ASKED_MAX_NS);
}

uint64_t retry_delay(const struct retry_config *r, int64_t interval_ns, int64_t asked_ms)
{
	uint32_t random;
	hash_random(&random, sizeof random);
	double delay = (double)interval_ns *
		       (1 + r->randomization_factor * (2.0 * random / UINT32_MAX - 1));
	double asked = (double)asked_ms * 1e6, most = asked_max(r);
	if (asked > most)
		asked = most;
	if (delay < asked)
		delay = asked;
	if (delay < DELAY_MIN_NS)
		delay = DELAY_MIN_NS;
	return delay < (double)DELAY_MAX_NS ? (uint64_t)delay : DELAY_MAX_NS;
}

int64_t retry_next_interval(const struct retry_config *r, int64_t interval_ns)
{
	double next = (double)interval_ns * (r->multiplier > 0 ? r->multiplier : 1);
	return next < (double)r->max_interval.ns ? (int64_t)next : r->max_interval.ns;
}
