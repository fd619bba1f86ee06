/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_DUPLICATES_H
#define PIPELINE_INTAKE_DUPLICATES_H

#include "base/hash.h"
#include "base/metrics.h"
#include "config/table.h"
#include "profile/request.h"

/*
 * The requests that a receiver has accepted within the last `window`, by their Idempotency-Key
 * (net/idempotency_key.h): the key `deduplicate` of receivers. A request with the key of an
 * accepted one is a repetition: its sender did not get the reply. The gate answers it as the first
 * one, and does not process it. While the first one is being processed, a repetition is refused
 * with a retry hint, so it is never answered before the first one is. A first one that is refused
 * or fails leaves no trace.
 *
 * A key belongs to its sender: the same receiver, the same tenant (as far as the headers give it),
 * and the same authenticated identity. The addresses of senders do not matter, because they change
 * when a sender restarts.
 *
 * All of this is in memory only, and begins empty when the program starts, or when a reload changes
 * the receiver's configuration. It has at most max_entries requests, and is charged to the budget
 * as it grows. When it cannot grow, an accepted request is forgotten before its time: the oldest
 * one of those senders who have the most. Senders are divided into DUPLICATES_GROUPS groups for
 * that, so a sender that floods the table forgets its own requests.
 *
 * One table for each receiver; all functions [any thread].
 */
enum { DUPLICATES_GROUPS = 64 };

struct duplicates_config {
	struct optional present;
	struct duration window;
	int64_t max_entries;
};

extern const struct config_table duplicates_table;
extern const struct metric *const duplicates_metrics[]; /* for the manual; NULL-terminated */

/* The row `deduplicate` of a receiver's table; `member` is a struct duplicates_config. */
#define DEDUPLICATE_ROW(type, member) \
	CONFIG_SECTION(type, member, duplicates_table, .key = "deduplicate", \
		       .presence = PRESENCE_DEFAULT, \
		       .help = "Requests that repeat an accepted one, by their header " \
			       "`Idempotency-Key`, are answered as that one, and dropped. Not a " \
			       "key of the Collector.")

struct budget;
struct duplicates;

/* What the first request was answered. */
struct duplicates_reply {
	uint64_t samples;
	uint32_t rejected_profiles;
	char rejection[160]; /* "": none, or there was no memory for it */
};

enum duplicates_answer {
	DUPLICATES_NEW,    /* to be processed */
	DUPLICATES_BUSY,   /* the first one is being processed */
	DUPLICATES_REPEATS /* *reply is what the first one was answered */
};

/* NULL if the section is absent. All other functions accept NULL. The configuration is borrowed. */
struct duplicates *duplicates_new(const struct duplicates_config *config, struct budget *budget,
				  struct metrics *metrics, const char *receiver);
/* No request is in it. */
void duplicates_unref(struct duplicates **duplicates);

/*
 * Looks the request up, and enters it if it is new. *place is 0 if there is nothing to remember
 * (it has no valid key, or there is no room); otherwise exactly one of the functions below follows.
 */
enum duplicates_answer duplicates_enter(struct duplicates *duplicates,
					const struct request *request,
					const struct metadatum *headers, uint32_t *place,
					struct duplicates_reply *reply);
/* The request was accepted: called before the sender is answered. */
void duplicates_keep(struct duplicates *duplicates, uint32_t place,
		     const struct duplicates_reply *reply);
/* It was not. */
void duplicates_forget(struct duplicates *duplicates, uint32_t place);

#endif
