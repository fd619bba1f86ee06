/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXTENSIONS_PPROF_PROFILE_H
#define EXTENSIONS_PPROF_PROFILE_H

#include "base/bytes.h"
#include "extensions/pprof_symbols.h"

/* A CPU profile under construction: distinct stacks with their counts. One thread. */
struct own_profile;

struct own_profile *own_profile_new(void);
void own_profile_unref(struct own_profile **profile);
/* Adds one sample. It is silently dropped if the profile would exceed its memory (8 MiB of
 * stacks). */
void own_profile_add(struct own_profile *profile, const uint64_t *pcs, size_t count);
/* Appends the pprof message, not compressed. Times in ns, wall clock. */
bool own_profile_write(const struct own_profile *profile, struct symbols *symbols, uint64_t time,
		       uint64_t duration, struct bytes *out);

#endif
