/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_USAGE_H
#define GATEWAY_USAGE_H

#include "base/bytes.h"

/*
 * What an operator has to know about the process, stated once: --help, the manual and the man page
 * print it from here and from the tables of commands and options. Text in backquotes is literal.
 */
struct usage_fact {
	const char *name, *meaning; /* name == NULL ends */
};

extern const struct usage_fact usage_signals[], usage_statuses[], usage_environment[],
	usage_files[];

/* The commands and options, as --help and the manual show them. */
void usage_print(struct bytes *out);
/* Prints what --help shows: of one command, or (NULL) all. */
struct command;
void usage_write(const struct command *command);
/* A Markdown list of the facts. */
void usage_list(const struct usage_fact *facts, struct bytes *out);
/* The man page portcullis(1), in the man macros of roff. */
void usage_man(struct bytes *out);

#endif
