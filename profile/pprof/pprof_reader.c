/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/pprof/pprof_reader.h"

bool pprof_reader_refuse(struct pprof_reader *r, const char *what)
{
	return error_set(r->err, ERROR_INVALID, "%s", what);
}

bool pprof_reader_too_large(struct pprof_reader *r)
{
	return profiles_over_cap(r->p, r->err);
}
