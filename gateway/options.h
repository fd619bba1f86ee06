/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_OPTIONS_H
#define GATEWAY_OPTIONS_H

#include "config/load.h"
#include "config/table.h"

/* The command line: `--flag value` and `--flag=value`, with the Collector's names. Texts are
 * argv's. */
struct options {
	const char *command;                       /* NULL: run */
	const char **configs, **sets, **arguments; /* NULL-terminated; arguments: what is no flag */
	const char *feature_gates, *format, *mode, *shutdown_timeout, *repeat;
	bool help, version, insecure_listen;
};

bool options_parse(struct options *options, int argc, char **argv, struct error *err);
void options_fini(struct options *options);

extern const char options_gate[]; /* the only feature gate */

/* The merged and expanded tree of --config and --set. With --insecure-listen, changes the
 * environment first. */
struct node *options_load(const struct options *options, struct error *err);

#endif
