/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECEIVERS_PPROF_REMOTE_CONFIG_H
#define RECEIVERS_PPROF_REMOTE_CONFIG_H

#include "receivers/pprof_private.h"
#include "receivers/pprof_targets.h"

struct pprof_files_config { /* an entry of file_sd_configs */
	struct strings files;
	struct duration refresh_interval;
};

extern const char *const pprof_builtin_names[PPROF_BUILTINS];

/* Appends the targets that the configuration lists itself. */
bool pprof_remote_targets(const struct pprof_remote_config *config, const char *job,
			  struct pprof_targets *targets, struct error *err);

#endif
