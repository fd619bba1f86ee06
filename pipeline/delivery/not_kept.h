/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_NOT_KEPT_H
#define PIPELINE_DELIVERY_NOT_KEPT_H

#include "base/metrics.h"
#include "profile/profiles.h"

/*
 * Counts what profiles have and their destination has no place for, so that nothing is lost in
 * silence: of a packet, when it is prepared for such a destination. Labels of series and samples
 * have counters of their own (profile/stores/series.h).
 */
enum not_kept_what {
	NOT_KEPT_TIMESTAMP, /* of samples, each */
	NOT_KEPT_NEGATIVE,  /* samples with such a sum */
	NOT_KEPT_ZERO,      /* samples with that sum */
	NOT_KEPT_ADDRESS,   /* of locations that have functions */
	NOT_KEPT_COLUMN,    /* of lines */
	NOT_KEPT_DOC_URL,   /* of Profiles; a profile_attribute elsewhere */
	NOT_KEPT_PERIOD,    /* of Profiles */
	NOT_KEPT_PROFILE_ID,
	NOT_KEPT_SCOPE, /* names and versions of scopes */
	NOT_KEPT_RESOURCE_ATTRIBUTE,
	NOT_KEPT_SCOPE_ATTRIBUTE, /* of all attributes: those that pprof has no field for */
	NOT_KEPT_PROFILE_ATTRIBUTE,
	/* of mappings and locations: once for each of them in a packet */
	NOT_KEPT_MAPPING_ATTRIBUTE,
	NOT_KEPT_LOCATION_ATTRIBUTE,
	NOT_KEPT_KINDS
};

/* What no pprof has a place for, however it is stored. */
#define NOT_KEPT_BY_PPROF \
	(1u << NOT_KEPT_TIMESTAMP | 1u << NOT_KEPT_PROFILE_ID | 1u << NOT_KEPT_SCOPE | \
	 1u << NOT_KEPT_MAPPING_ATTRIBUTE | 1u << NOT_KEPT_LOCATION_ATTRIBUTE)

struct not_kept {
	struct metric_series *series[NOT_KEPT_KINDS]; /* NULL: it is kept */
};

extern const struct metric not_kept_metric;

/* kinds: a set of bits by enum not_kept_what. */
void not_kept_init(struct not_kept *n, uint32_t kinds, struct metrics *metrics,
		   const char *exporter);

struct not_kept_counts {
	uint64_t at[NOT_KEPT_KINDS];
};

/* p: the open tables of a sealed packet, as they were; then, when it was prepared. Any thread. */
void not_kept_look(const struct profiles *p, struct not_kept_counts *counts);
void not_kept_count(const struct not_kept *n, const struct not_kept_counts *counts);

#endif
