/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_OPTIONS_H
#define GATEWAY_OPTIONS_H

#include "config/load.h"
#include "config/table.h"

/* The command line: `--flag value` and `--flag=value`, with the Collector's names. Strings belong
 * to argv. */
struct options {
	const char *command; /* NULL: run */
	/* NULL-terminated; arguments: everything but flags */
	const char **configs, **compares, **sets, **arguments;
	const char *feature_gates, *format, *mode, *shutdown_timeout, *repeat, *to;
	bool help, version, insecure_listen, dry_run, include_partial, deny_warnings, strict_exit;
};

/* The options of the command line, for the parser, --help, the manual and the man page. */
enum option_kind { OPTION_SWITCH, OPTION_STRING, OPTION_LIST };

struct option {
	const char *flag, *letter; /* "--version", "-v"; letter may be NULL */
	const char *argument;      /* its placeholder; NULL for a switch */
	const char *help;
	enum option_kind kind;
	size_t at; /* of the member of struct options: bool, const char * or const char ** */
};

extern const struct option options_table[]; /* flag == NULL ends */

bool options_parse(struct options *options, int argc, char **argv, struct error *err);
void options_fini(struct options *options);

extern const char options_gate[]; /* the only feature gate */

/* The merged and expanded tree of --config and --set. With --insecure-listen, changes the
 * environment first. */
struct node *options_load(const struct options *options, struct error *err);
/* Reads all of it again. [any thread; may wait for disks and servers] */
struct node *options_load_again(const struct options *options, struct error *err);

#endif
