/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_SIZE_LIMIT_H
#define BASE_SIZE_LIMIT_H

#include "base/error.h"

/* The maximum size of something that a sender sends, and the setting that it comes from. */
struct size_limit {
	size_t max;          /* bytes */
	const char *setting; /* the key */
	int64_t value;       /* as configured, in the unit of the setting */
};

/* Sets ERROR_TOO_LARGE: "<what> has <observed> bytes; <setting> is <value>". With an observed size
 * of 0, which is unknown: "more than <max> bytes". Returns false. */
bool size_limit_exceeded(const struct size_limit *limit, const char *what, uint64_t observed,
			 struct error *err);

#endif
