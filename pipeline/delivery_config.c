/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery.h"

#include <string.h>

#include "base/hash.h"

/* The rules and their words are the Collector's (config/configretry, exporterhelper), where it has them. */
enum { CONSUMERS_MAX = 10000 };

/* A destination that always answers at once must not keep us busy. */
#define DELAY_LEAST_NS 10000000
#define DELAY_MOST_NS (INT64_C(1) << 62)

static const char *const sizers[] = { "requests", "items", "bytes", NULL };

/* `batch: {enabled: false}` says what is so here anyway. */
static bool wants_batch(const struct node *batch)
{
	const struct node *enabled = batch ? node_get(batch, "enabled") : NULL;
	bool off = enabled && enabled->kind == NODE_SCALAR && !strcmp(enabled->text, "false");
	return batch && batch->kind != NODE_NULL && !off;
}

static bool check_queue(const void *config, struct error *err)
{
	const struct queue_config *q = config;
	if (q->num_consumers <= 0)
		return error_set(err, ERROR_CONFIG, "`num_consumers` must be positive");
	if (q->num_consumers > CONSUMERS_MAX)
		return error_set(err, ERROR_CONFIG, "`num_consumers` must be at most %d", CONSUMERS_MAX);
	if (q->queue_size <= 0)
		return error_set(err, ERROR_CONFIG, "`queue_size` must be positive");
	if (q->storage)
		return error_set(err, ERROR_CONFIG, "`storage`: this build has no persistent queue");
	if (wants_batch(q->batch))
		return error_set(err, ERROR_CONFIG, "`batch`: use the batch processor; this build batches there");
	return true;
}

static const struct config_row queue_rows[] = {
	CONFIG_ROW(struct queue_config, num_consumers, .key = "num_consumers", .def = "10",
		   .help = "Packets being delivered at once, those waiting for a retry included; 1 to 10000."),
	CONFIG_ROW(struct queue_config, queue_size, .key = "queue_size", .def = "1000",
		   .help = "Capacity in units of `sizer`, at least 1; the queue's share of memory bounds it too. "
			   "An empty queue takes one packet of any size, and a batch that was answered for "
			   "stretches it where all are full."),
	CONFIG_ROW(struct queue_config, sizer, .key = "sizer", .def = "requests", .choices = sizers,
		   .help = "What `queue_size` counts: `requests`, `items` (samples) or `bytes`."),
	CONFIG_ROW(struct queue_config, wait_for_result, .key = "wait_for_result", .def = "false",
		   .help = "The sender is answered only after this destination took or refused the data."),
	CONFIG_ROW(struct queue_config, block_on_overflow, .key = "block_on_overflow", .def = "false",
		   .help = "A full queue makes the receivers refuse (with a retry hint) instead of dropping."),
	CONFIG_ROW(struct queue_config, storage, .key = "storage",
		   .help = "Extension for a persistent queue; an error in this build, which has none."),
	CONFIG_ROW(struct queue_config, batch, .key = "batch",
		   .help = "Batching in the queue; an error in this build: use the `batch` processor."),
	{ 0 }
};
const struct config_table queue_table = {
	.size = sizeof(struct queue_config), .rows = queue_rows, .check = check_queue, .optional = true
};

static bool check_retry(const void *config, struct error *err)
{
	const struct retry_config *r = config;
	if (r->initial_interval.ns < 0)
		return error_set(err, ERROR_CONFIG, "'initial_interval' must be non-negative");
	if (r->randomization_factor < 0 || r->randomization_factor > 1)
		return error_set(err, ERROR_CONFIG, "'randomization_factor' must be within [0, 1]");
	if (r->multiplier < 0)
		return error_set(err, ERROR_CONFIG, "'multiplier' must be non-negative");
	if (r->max_interval.ns < 0)
		return error_set(err, ERROR_CONFIG, "'max_interval' must be non-negative");
	if (r->max_elapsed_time.ns < 0)
		return error_set(err, ERROR_CONFIG, "'max_elapsed_time' must be non-negative");
	if (r->max_elapsed_time.ns > 0 && r->max_elapsed_time.ns < r->initial_interval.ns)
		return error_set(err, ERROR_CONFIG, "'max_elapsed_time' must not be less than 'initial_interval'");
	if (r->max_elapsed_time.ns > 0 && r->max_elapsed_time.ns < r->max_interval.ns)
		return error_set(err, ERROR_CONFIG, "'max_elapsed_time' must not be less than 'max_interval'");
	return true;
}

/* check_retry says it when one is negative. */
#define INTERVAL_ROW(name, value, text) \
	CONFIG_ROW(struct retry_config, name, .key = #name, .def = value, .limited = true, .min = INT64_MIN, \
		   .max = INT64_MAX, .help = text)

static const struct config_row retry_rows[] = {
	INTERVAL_ROW(initial_interval, "5s", "Wait before the first retry; never less than 10 ms."),
	CONFIG_ROW(struct retry_config, randomization_factor, .key = "randomization_factor", .def = "0.5",
		   .help = "Each wait is drawn from interval * [1 - f, 1 + f]."),
	CONFIG_ROW(struct retry_config, multiplier, .key = "multiplier", .def = "1.5",
		   .help = "Growth of the interval from retry to retry; 0 is 1."),
	INTERVAL_ROW(max_interval, "30s", "Upper bound of the interval."),
	INTERVAL_ROW(max_elapsed_time, "5m", "After that the data is dropped; 0 retries for ever."),
	{ 0 }
};
const struct config_table retry_table = {
	.size = sizeof(struct retry_config), .rows = retry_rows, .check = check_retry, .optional = true
};

uint64_t retry_delay(const struct retry_config *r, int64_t interval_ns, int64_t asked_ms)
{
	uint32_t random;
	hash_random(&random, sizeof random);
	double delay = (double)interval_ns * (1 + r->randomization_factor * (2.0 * random / UINT32_MAX - 1));
	double asked = (double)asked_ms * 1e6;
	if (delay < asked)
		delay = asked;
	if (delay < DELAY_LEAST_NS)
		delay = DELAY_LEAST_NS;
	return delay < (double)DELAY_MOST_NS ? (uint64_t)delay : DELAY_MOST_NS;
}

int64_t retry_next_interval(const struct retry_config *r, int64_t interval_ns)
{
	double next = (double)interval_ns * (r->multiplier > 0 ? r->multiplier : 1);
	return next < (double)r->max_interval.ns ? (int64_t)next : r->max_interval.ns;
}
