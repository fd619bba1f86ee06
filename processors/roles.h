/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_ROLES_H
#define PROCESSORS_ROLES_H

#include "config/table.h"
#include "profile/sites.h"

/* The key `roles` of processors that search strings: a set of enum site_role, one bit each. Keys of
 * attributes are none of their business. */
#define ROLES_ALL ((1u << ROLE_COUNT) - 1 - (1u << ROLE_KEY))

/* An empty list stands for `all`. at: where the key stands, with ": " at the end, or "". */
bool roles_read(const struct strings *names, uint32_t all, uint32_t *roles, const char *at,
		struct faults *faults);

#endif
