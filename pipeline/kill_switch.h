/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_KILL_SWITCH_H
#define PIPELINE_KILL_SWITCH_H

#include "base/log.h"
#include "base/metrics.h"
#include "config/table.h"
#include "net/loop.h"
#include "pipeline/kill_rules.h"

/*
 * The kill switch: the rules in force (kill_rules.h), from a file that is watched and from the
 * administrator (kill_switch_set). It belongs to the runtime and outlives configurations; a
 * configuration says only where the file is, and how senders are answered.
 *
 * The file is looked at five times a second, on the pool, because a disk may hang. A change is in
 * force when two looks have seen the same file, so that a file that is just being written is not
 * read in part: within half a second. A file that is missing has no rules. A file that cannot be
 * read or has an error changes nothing: the last rules stay in force, and the error is logged once
 * and counted. When the program starts, such a file is an error.
 *
 * On the loop thread, except where marked.
 */
enum kill_response { KILL_RESPONSE_REJECT, KILL_RESPONSE_RETRY };
enum kill_queues { KILL_QUEUES_KEEP, KILL_QUEUES_DROP };

struct kill_config { /* service::kill_switch */
	char *file;
	struct choice response;     /* enum kill_response */
	struct choice destinations; /* enum kill_queues */
	struct duration retry_after;
};

extern const struct config_table kill_config_table;

struct kill_switch;

struct kill_switch *kill_switch_new(struct loop *loop, struct metrics *metrics);
void kill_switch_unref(struct kill_switch **kills); /* after loop_run returned */

/* Called after each change of the rules. */
void kill_switch_notify(struct kill_switch *kills, void (*changed)(void *context), void *context);

/* What a configuration changes. It reads its file at once; nothing is in force before it is
 * applied. NULL: the file cannot be used. The configuration outlives the change. */
struct kill_change;
struct kill_change *kill_switch_prepare(struct kill_switch *kills, const struct kill_config *config,
					struct error *err);
/* Both clear; NULL: nothing happens. No other change was applied since this one was prepared. */
void kill_switch_apply(struct kill_change **change);
void kill_change_free(struct kill_change **change);
/* Replaces the rules of the administrator. `who` is for the log. */
bool kill_switch_set(struct kill_switch *kills, struct view text, const char *who,
		     struct error *err);
/* Calls `each` for all rules in force. */
void kill_switch_each(const struct kill_switch *kills,
		      void (*each)(const struct kill_rule *rule, void *context), void *context);

/* [any thread] The rules, to be given back with kill_rules_unref; NULL: there are none about
 * data. */
struct kill_rules *kill_switch_hold(struct kill_switch *kills);
/* [any thread] Is everything killed, without exception? */
bool kill_switch_is_total(const struct kill_switch *kills);
/* [any thread] Sets the error for data that is killed by this rule: ERROR_FORBIDDEN, or ERROR_BUSY
 * with a hint. Returns false. */
bool kill_switch_refuse(struct kill_switch *kills, const struct kill_rule *rule, struct error *err);
/* [any thread] Counts a request that was refused before it was decoded. */
void kill_switch_count_request(struct kill_switch *kills, const struct kill_rule *rule);
/* [any thread] Counts decoded samples that were rejected. */
void kill_switch_count(struct kill_switch *kills, const struct kill_rule *rule, uint64_t samples);

bool kill_switch_kills_destination(const struct kill_switch *kills, const char *id);
/* Do the queues of killed destinations drop what they have? */
bool kill_switch_drops(const struct kill_switch *kills);

extern const struct metric *const kill_switch_metrics[]; /* for the manual; NULL-terminated */

#endif
