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
	const char *feature_gates, *format, *mode, *shutdown_timeout, *timeout, *repeat, *to;
	/* gets all errors of the configuration; of the caller of options_parse */
	struct problems *problems;
	bool help, version, profiles_only, environment, insecure_listen, dry_run, include_partial;
	bool deny_warnings, strict_exit, connect;
};

/* The options of the command line, for the parser, --help, the manual and the man page. */
enum option_kind { OPTION_SWITCH, OPTION_STRING, OPTION_LIST };

struct option {
	const char *flag, *letter; /* "--version", "-v"; letter may be NULL */
	const char *argument;      /* its placeholder; NULL for a switch */
	/* of these commands, with commas between them ("": without one); "*": of all; NULL: of
	 * all that read a configuration */
	const char *commands;
	const char *help;
	enum option_kind kind;
	size_t at; /* of the member of struct options: bool, const char * or const char ** */
};

extern const struct option options_table[]; /* flag == NULL ends */
/* configured: the command reads a configuration. */
bool option_is_of(const struct option *option, const char *command, bool configured);

bool options_parse(struct options *options, int argc, char **argv, struct error *err);
/* The arguments are further --config. */
void options_take_configs(struct options *options);
void options_fini(struct options *options);

extern const char options_gate[]; /* the only feature gate */

/* The merged and expanded tree of --config and --set, as far as they can be read (config_load_all).
 * With --insecure-listen, changes the environment first. */
struct node *options_load(const struct options *options, struct problems *problems);
/* Reads all of it again. [any thread; may wait for disks and servers] */
struct node *options_load_again(const struct options *options, struct problems *problems);

#endif
