/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_STORES_REGROUP_H
#define PROFILE_STORES_REGROUP_H

#include "profile/stores/series.h"
#include "profile/stores/slots.h"

/*
 * Reorders open tables for a store that keeps pprofs by series, as Pyroscope does. Each pprof
 * becomes one resource, whose attributes are the labels of its series. The pprofs of a series are
 * adjacent, in order of time.
 *
 * Labels, by descending precedence: __name__ (the resource attribute of that key if the store
 * accepts it, else what the pprof measures, named as the store's own clients name it), service_name
 * (the attribute service.name, else service_name, else unknown_service), __delta__=false unless
 * values are cumulative (by the resource attribute __delta__, else `cumulative`), then the
 * attributes of resource, scope and Profile (see profile/stores/series.h). Samples keep the
 * remaining attributes.
 *
 * Each pprof is a request. If a packet has more than 4096 series, the rest become
 * service_name=overflow, without attributes. If it has more than 256 pprofs, the later ones of a
 * series share a resource.
 *
 * Data that such a store rejects or silently misreads is corrected: "-" in sample types and ":" in
 * all types and units become "_"; an absent or long one becomes "unknown"; an absent period type
 * becomes the sample type; stacks with more than stack_max frames are truncated at the root; a
 * missing time becomes `now`. If the resource attribute __name__ is used, the sender is a client of
 * the store, and the types are those of a direct write: an absent period type stays empty, and no
 * CPU time is added. Profiles of one series and millisecond with the same types become one, with
 * the samples of all. If their types differ, the later one moves to the next free millisecond of
 * the series.
 */
struct regroup {
	struct series_labels *series;
	struct slots *slots;
	bool cumulative;    /* true: no label __delta__, unless the sender said otherwise */
	uint32_t stack_max; /* frames; 0: no limit */
	/* of one pprof; more become several pprofs, one millisecond apart; 0: no limit */
	uint32_t samples_max;
	uint64_t now;                       /* ns since the epoch */
	uint64_t stacks_cut, merged, moved; /* counters, never reset */
};

/* False: the tables would grow past their cap. */
bool regroup_by_series(struct regroup *r, struct profiles *p, struct error *err);

/* The key for slots: the series of tables that were regrouped and then cut into those of one
 * series. */
uint64_t regroup_key(const struct profiles *p);

#endif
