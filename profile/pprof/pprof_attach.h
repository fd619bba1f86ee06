/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_PPROF_PPROF_ATTACH_H
#define PROFILE_PPROF_PPROF_ATTACH_H

#include "profile/pprof/pprof_reader.h"

/*
 * Labels, flags and other fields of a pprof that OTLP does not have become attributes and links of
 * the open tables.
 *
 * Functions that return false have set r->err.
 */
struct pprof_label_set {        /* what one combination of labels became */
	struct list attributes; /* in indices */
	uint32_t link;
};

/* The attributes and the link of the labels in r->labels (which are changed). */
bool pprof_attach_labels(struct pprof_reader *r, struct pprof_label_set *set);
bool pprof_attach_folded(struct pprof_reader *r, struct location *location);
bool pprof_attach_mapping(struct pprof_reader *r, struct mapping *mapping, uint32_t build_id,
			  const uint64_t *flags);
/* After these: the mapping is the first of several, which pprof defines as the program's own. */
bool pprof_attach_main(struct pprof_reader *r, struct mapping *mapping);
/* Records that the mapping's flags are all false although its locations have lines. */
bool pprof_attach_no_flags(struct pprof_reader *r, struct mapping *mapping);
bool pprof_attach_profile(struct pprof_reader *r, struct profile *profile);
bool pprof_attach_scope(struct pprof_reader *r, struct scope *scope);
bool pprof_attach_resource(struct pprof_reader *r, struct resource *resource,
			   const struct metadatum *attributes);

#endif
