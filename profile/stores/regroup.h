/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_STORES_REGROUP_H
#define PROFILE_STORES_REGROUP_H

#include "profile/stores/series.h"
#include "profile/stores/slots.h"

/*
 * Open tables put into the order of a store that keeps pprofs by series, as Pyroscope does: each
 * pprof becomes one resource, whose attributes are the labels of its series; those of a series
 * stand together, in order of time.
 *
 * Labels are, by falling precedence: __name__ (what the pprof measures, named as the store's own
 * clients name it), service_name (the attribute service.name, else service_name, else
 * unknown_service), __delta__=false unless values are cumulative, then the attributes of resource,
 * scope and Profile, as profile/stores/series.h says; samples keep what is left.
 *
 * Each is a request. Of more than 4096 series of one packet the rest become service_name=overflow,
 * without attributes; and of more than 256 pprofs the later ones of a series share a resource.
 *
 * What such a store refuses, or misreads in silence, is mended: "-" in sample types and ":" in all
 * types and units become "_", an absent or long one "unknown"; an absent period type becomes the
 * sample type; stacks lose their root side over stack_max; a time that is missing is `now`.
 * Profiles of one series and millisecond with the same types become one, with the samples of all;
 * of others the later one moves to the series' next free millisecond.
 */
struct regroup {
	struct series_labels *series;
	struct slots *slots;
	bool cumulative;      /* no __delta__ */
	uint32_t stack_max;   /* frames; 0: none */
	uint32_t samples_max; /* of one pprof: more become several, a millisecond apart; 0: none */
	uint64_t now;         /* ns since the epoch */
	uint64_t stacks_cut, merged, moved; /* counted, never reset */
};

/* False: the tables would grow past their cap. */
bool regroup_by_series(struct regroup *r, struct profiles *p, struct error *err);

/* For slots: the series of tables that were regrouped and then cut into those of one. */
uint64_t regroup_key(const struct profiles *p);

#endif
