/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_COMMANDS_H
#define GATEWAY_COMMANDS_H

#include "base/bytes.h"
#include "gateway/options.h"

/* One subcommand. run returns false with err set; its exit status is then 1. */
struct command {
	const char *name, *arguments, *help; /* name "": without a subcommand */
	bool (*run)(const struct options *options, struct error *err);
	size_t arguments_max;
	bool configured; /* reads a configuration: --config and its kind */
	bool locations;  /* its arguments are configurations too */
};

extern const struct command commands[]; /* name == NULL ends */
/* By its name, or the Collector's; NULL: there is none. */
const struct command *command_find(const char *name);
/* Sets err, with a suggestion; returns false. */
bool command_unknown(const char *name, struct error *err);

/* Prints to standard output, and frees. */
void command_print(struct bytes *out);
/* After the command: has all that it printed been written? A disk may be full, and what is there
 * must not be taken for whole. */
bool command_end_output(struct error *err);

/* The exit status after `run` has returned true: 0, unless the command has set another one. */
extern int command_status;

/* What the manual says of one component. */
struct component_factory;
void manual_component(const struct component_factory *factory, struct bytes *out);

bool command_run(const struct options *options, struct error *err);
bool command_validate(const struct options *options, struct error *err);
bool command_components(const struct options *options, struct error *err);
bool command_print_config(const struct options *options, struct error *err);
bool command_feature_gate(const struct options *options, struct error *err);
bool command_manual(const struct options *options, struct error *err);
bool command_man(const struct options *options, struct error *err);
bool command_help(const struct options *options, struct error *err);
bool command_completion(const struct options *options, struct error *err);
bool command_send(const struct options *options, struct error *err);
bool command_replay(const struct options *options, struct error *err);
bool command_explain(const struct options *options, struct error *err);

#endif
