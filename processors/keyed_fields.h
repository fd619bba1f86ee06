/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_KEYED_FIELDS_H
#define PROCESSORS_KEYED_FIELDS_H

#include "profile/sites.h"

/*
 * The fields that are not attributes but count as keys of their site: the ID of a Profile
 * (profile_id), the links of samples (trace_id and span_id, both or none), and the entity
 * references of a resource, which pass if all keys that they name pass.
 */
struct keyed_fields {
	struct profiles *p;
	bool (*passes)(void *context, enum site site, struct view key);
	void *context;
	const char *what; /* for the audit */
};

/* Removes what does not pass at SITE_PROFILE, SITE_LINK or SITE_ENTITY. Returns the number of
 * removed fields. */
int64_t keyed_fields_filter(const struct keyed_fields *fields, enum site site);

#endif
