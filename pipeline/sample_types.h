/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_SAMPLE_TYPES_H
#define PIPELINE_SAMPLE_TYPES_H

#include "config/table.h"
#include "profile/profiles.h"

/*
 * Selects Profiles by their sample type. A name is a type ("cpu"), or a type and a unit
 * ("cpu:nanoseconds"). A Profile has one sample type, so nothing inside a Profile changes: neither
 * its values nor its temporality.
 */
struct sample_types_config {
	struct strings include, exclude;
};

extern const struct config_table sample_types_table;

/* Is the Profile's sample type among the names? */
bool sample_types_named(const struct strings *names, const struct profiles *p,
			const struct profile *profile);
/* Is it included, or is nothing, and not excluded? */
bool sample_types_pass(const struct sample_types_config *config, const struct profiles *p,
		       const struct profile *profile);
/* The configuration, or NULL if it selects all. */
const struct sample_types_config *sample_types_selects(const struct sample_types_config *config);
/* Checks the form of names. */
void sample_types_check(const struct strings *names, const char *key, struct faults *faults);

#endif
