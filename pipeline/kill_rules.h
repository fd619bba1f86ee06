/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_KILL_RULES_H
#define PIPELINE_KILL_RULES_H

#include <stdatomic.h>

#include "base/bytes.h"
#include "base/error.h"

/*
 * The rules of the kill switch. One rule a line:
 *
 *	kill everything
 *	kill tenant team-a                  # INC-42, alice
 *	kill service checkout
 *	allow tenant team-a service checkout
 *	kill destination otlp_grpc/primary
 *	kill destination *
 *
 * A name with blanks or "#" is quoted: "a name", with \" and \\ in it. Empty lines are skipped.
 * What follows "#" is the note, which the log repeats.
 *
 * For data, the most specific rule that matches decides: tenant with service, then service, then
 * tenant, then everything. For a destination: its ID, then "*". Of a `kill` and an `allow` of the
 * same, which come from different places, `kill` wins. Without a matching rule, data passes.
 */
enum kill_scope { /* from the least specific to the most specific */
		  KILL_EVERYTHING,
		  KILL_TENANT,
		  KILL_SERVICE,
		  KILL_TENANT_SERVICE,
		  KILL_ANY_DESTINATION,
		  KILL_DESTINATION,
		  KILL_SCOPES
};

extern const char *const kill_scope_names[KILL_SCOPES]; /* for metrics */

struct kill_rule {
	enum kill_scope scope;
	bool allow;
	char *name;    /* of the tenant, service or destination; NULL: of everything, or "*" */
	char *service; /* of KILL_TENANT_SERVICE */
	char *note;    /* NULL: none */
};

enum { KILL_RULES_MAX = 10000, KILL_NAME_MAX = 1024 };

/* Immutable and refcounted; any thread. */
struct kill_rules {
	_Atomic uint32_t refs;
	uint32_t count;
	uint32_t of[2][KILL_SCOPES]; /* the numbers of kills and of allows */
	struct kill_rule at[];       /* sorted */
};

/* Parses a file. NULL with the number of the line in err, which repeats nothing of the file. */
struct kill_rules *kill_rules_parse(struct view text, struct error *err);
/* All rules of two sets, each of which may be NULL. */
struct kill_rules *kill_rules_join(const struct kill_rules *a, const struct kill_rules *b);
struct kill_rules *kill_rules_ref(struct kill_rules *rules);
void kill_rules_unref(struct kill_rules **rules); /* clears; accepts NULL */

/* The rule that kills data of this tenant (NULL: none) and service; NULL: it passes. */
const struct kill_rule *kill_rules_data(const struct kill_rules *rules, struct view tenant,
					struct view service);
/* The rule that kills everything that a request with this tenant could contain; NULL: it has to be
 * decoded to know. `final`: no attribute can name another tenant. */
const struct kill_rule *kill_rules_request(const struct kill_rules *rules, struct view tenant,
					   bool final);
const struct kill_rule *kill_rules_destination(const struct kill_rules *rules, const char *id);
/* Are there rules about data? */
bool kill_rules_about_data(const struct kill_rules *rules);
/* Is everything killed, without exception? */
bool kill_rules_total(const struct kill_rules *rules);

bool kill_rules_has(const struct kill_rules *rules, const struct kill_rule *rule);
/* As a line of a file, without the note. */
void kill_rule_print(const struct kill_rule *rule, struct bytes *out);

#endif
