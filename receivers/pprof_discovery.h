/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECEIVERS_PPROF_DISCOVERY_H
#define RECEIVERS_PPROF_DISCOVERY_H

#include "base/log.h"
#include "config/table.h"
#include "receivers/pprof_targets.h"

/*
 * Target files (Prometheus' file_sd): which files match the globs, and what was last read from
 * each. A file is read again when its inode, size or time of modification has changed, also behind
 * symbolic links. A file that cannot be read keeps its last targets, and is logged once. A file
 * that is gone has no targets.
 *
 * Used by one thread at a time. [pool thread]
 */
struct pprof_discovery;

struct pprof_discovery *pprof_discovery_new(const struct strings *globs,
					    const struct pprof_targets_defaults *defaults,
					    const struct log *log);
/* Reads what has changed. True: `out`, an empty list, gets the targets of all files. False: nothing
 * has changed since the last call, and `anyway` is not set. *bad is the number of files that cannot
 * be read. */
bool pprof_discovery_read(struct pprof_discovery *discovery, bool anyway, struct pprof_targets *out,
			  uint32_t *bad);
void pprof_discovery_unref(struct pprof_discovery **discovery);

#endif
