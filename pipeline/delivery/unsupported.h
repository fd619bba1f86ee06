/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_UNSUPPORTED_H
#define PIPELINE_DELIVERY_UNSUPPORTED_H

#include "base/metrics.h"
#include "profile/profiles.h"

/*
 * Counts the items of a packet that are unsupported by its destination, when the packet is prepared
 * for it, so that nothing is lost silently. Labels of series and samples have counters of their own
 * (profile/stores/series.h).
 */
enum unsupported_kind {
	UNSUPPORTED_TIMESTAMP,   /* of samples, each */
	UNSUPPORTED_NEGATIVE,    /* samples with such a sum */
	UNSUPPORTED_ZERO,        /* samples with that sum */
	UNSUPPORTED_EMPTY_STACK, /* samples whose stack has no frames */
	UNSUPPORTED_ADDRESS,     /* of locations that have functions */
	UNSUPPORTED_COLUMN,      /* of lines */
	UNSUPPORTED_DOC_URL,     /* of Profiles; a profile_attribute elsewhere */
	UNSUPPORTED_PERIOD,      /* of Profiles */
	UNSUPPORTED_PROFILE_ID,
	UNSUPPORTED_SCOPE, /* names and versions of scopes */
	UNSUPPORTED_RESOURCE_ATTRIBUTE,
	UNSUPPORTED_SCOPE_ATTRIBUTE, /* of all attributes: those that pprof has no field for */
	UNSUPPORTED_PROFILE_ATTRIBUTE,
	/* of mappings and locations: once for each of them in a packet */
	UNSUPPORTED_MAPPING_ATTRIBUTE,
	UNSUPPORTED_LOCATION_ATTRIBUTE,
	UNSUPPORTED_KINDS
};

/* What pprof itself does not support. */
#define UNSUPPORTED_BY_PPROF \
	(1u << UNSUPPORTED_TIMESTAMP | 1u << UNSUPPORTED_PROFILE_ID | 1u << UNSUPPORTED_SCOPE | \
	 1u << UNSUPPORTED_MAPPING_ATTRIBUTE | 1u << UNSUPPORTED_LOCATION_ATTRIBUTE)

struct unsupported {
	struct metric_series *series[UNSUPPORTED_KINDS]; /* NULL: supported */
};

extern const struct metric unsupported_metric;

/* kinds: a set of bits by enum unsupported_kind. */
void unsupported_init(struct unsupported *n, uint32_t kinds, struct metrics *metrics,
		      const char *exporter);

struct unsupported_counts {
	uint64_t at[UNSUPPORTED_KINDS];
};

/* [any thread] Looks at the open tables of a sealed packet before they are changed; counts once the
 * packet was prepared. */
void unsupported_look(const struct profiles *p, struct unsupported_counts *counts);
void unsupported_count(const struct unsupported *n, const struct unsupported_counts *counts);

#endif
