/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_GRAPH_LINT_H
#define PIPELINE_GRAPH_LINT_H

#include "pipeline/graph/inventory.h"

/*
 * Warnings about a configuration that is valid, but probably not what was meant. `validate` prints
 * them, and the log has them at each start and reload. `service::silence` lists the identifiers of
 * those that are not wanted.
 *
 * Data alone: the checks read the declarations and start nothing. [loop thread]
 */
struct lint;

struct lint_check {
	const char *id;   /* "no-policy" */
	const char *help; /* for the manual: when there is a warning, and why */
	void (*look)(struct lint *lint);
};

extern const struct lint_check lint_checks[]; /* id == NULL ends */

struct lint_finding {
	const char *id;       /* of the check */
	const char *text;     /* "file:line:column: path: text" */
	const char *variable; /* of the environment, which is not set; NULL: it is not about one */
};

/* Reports each warning. Returns their number. */
uint32_t lint_inventory(const struct inventory *inventory,
			void (*found)(void *context, const struct lint_finding *finding),
			void *context);

/* With service::require_policy, a pipeline without policy is an error. */
void lint_require_policy(const struct inventory *inventory, struct problems *problems);

/* Are these identifiers of checks? */
void lint_check_silence(const struct strings *ids, struct faults *faults);

#endif
