/* SPDX-License-Identifier: Apache-2.0 */
#include "base/size_limit.h"

bool size_limit_exceeded(const struct size_limit *limit, const char *what, uint64_t observed,
			 struct error *err)
{
	return error_set(err, ERROR_TOO_LARGE, "%s has %s%lu bytes; %s is %ld", what,
			 observed ? "" : "more than ", observed ? observed : (uint64_t)limit->max,
			 limit->setting, limit->value);
}
