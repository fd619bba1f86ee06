/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_QUOTA_TABLE_H
#define PIPELINE_INTAKE_QUOTA_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/quota_sender.h"

/*
 * The token buckets of one kind of sender (tenants, services or peers), by name. It outlives a
 * configuration, and knows no limits: a bucket is the instant at which it will be full again, if
 * nothing more is taken (the generic cell rate algorithm). The rate and the burst are arguments, so
 * a new configuration applies to the buckets as they are.
 *
 * A bucket may be in debt: what is taken is taken, whatever is left. Its user asks before.
 *
 * Senders choose names, so the number of buckets is bounded. A full bucket says the same as none,
 * so a full one makes place for a new name. If there is no full one, new names share a bucket. No
 * name can therefore reset its bucket, or that of another, by displacing it. Names with limits of
 * their own (quota_table_pin) have a place of their own.
 *
 * The table is divided into shards by a keyed hash of the name, each with a lock. Any thread.
 */
struct quota_table;

enum { QUOTA_TABLE_SHARDS = 16, QUOTA_TABLE_MAX = 16384 };

extern const char *const quota_units[QUOTA_UNITS]; /* "bytes", "samples" */

struct quota_rate { /* 0: no limit */
	uint64_t per_second, burst;
};

struct quota_rates {
	struct quota_rate of[QUOTA_UNITS];
};

/* What is left in a bucket; negative: a debt. INT64_MAX: no limit. */
struct quota_left {
	int64_t of[QUOTA_UNITS];
};

/* At most `max` buckets that are not pinned. */
struct quota_table *quota_table_new(uint32_t max);
void quota_table_unref(struct quota_table **table);

void quota_table_pin(struct quota_table *table, struct hash128 name);

/* Takes the amounts at clock_now `now`, and returns what is left after that. Amounts may be 0. A
 * negative amount gives back what was taken, at most until the bucket is full; nothing happens if
 * the name has no bucket any more. */
struct quota_left quota_table_take(struct quota_table *table, struct hash128 name,
				   const struct quota_rates *rates,
				   const int64_t amounts[QUOTA_UNITS], uint64_t now);

/* The time until a bucket with `left` has something left again, in ms. */
uint32_t quota_table_wait_ms(const struct quota_rate *rate, int64_t left);

/* For metrics: buckets without the pinned ones, and the number of times that a name had to share
 * one. */
uint32_t quota_table_count(const struct quota_table *table);
uint64_t quota_table_shared(const struct quota_table *table);

#endif
