/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_PPROF_PPROF_RUN_H
#define PROFILE_PPROF_PPROF_RUN_H

#include "profile/pprof/pprof.h"
#include "profile/profiles.h"

/*
 * Which Profiles of a scope make one pprof: a maximal run of neighbours with equal time, duration,
 * period, attributes and the same sequence of (stack, attributes, link), ending where a sample type
 * repeats. Where the scope has pprof.scope.sample_type_order, a run ends with it instead, and the
 * sample types go back to where they stood.
 */
struct pprof_run_hints {       /* from the attributes of a scope */
	uint32_t default_type; /* string */
	struct list order; /* in attributes: of integers, if the scope is as decode_pprof made it */
};

struct pprof_run {
	const struct profile *profiles; /* neighbours */
	uint32_t count;
	uint16_t place[PPROF_TYPES_MAX]; /* of each sample type in the pprof: its Profile */
};

struct pprof_run_hints pprof_run_hints(const struct profiles *p, const struct scope *scope);
/* The run that starts with the scope's Profile `start`, by its hints' order. */
void pprof_run_find(const struct profiles *p, const struct scope *scope, struct list order,
		    uint32_t start, struct pprof_run *run);
/* The run of each of the Profiles, by its index: a number that is its own. The caller frees the
 * list. */
uint32_t *pprof_runs(const struct profiles *p);

#endif
