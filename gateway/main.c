/* SPDX-License-Identifier: Apache-2.0 */
#include "base/version.h"
#include "gateway/build_info.h"
#include "gateway/commands.h"
#include "gateway/usage.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct command commands[] = {
	{ "", "--config FILE", "Runs the gateway.", command_run, .configured = true },
	{ "validate", "[FILE ...]",
	  "Checks the configuration without starting anything. Prints nothing but warnings if it "
	  "is valid, and otherwise every error with its line.",
	  command_validate, SIZE_MAX, .configured = true, .locations = true },
	{ "print-config", "[FILE ...]", "Prints the effective configuration without secrets.",
	  command_print_config, SIZE_MAX, .configured = true, .locations = true },
	{ "components", "[TYPE]",
	  "Lists the components of this build, or prints the manual of one component.",
	  command_components, 1 },
	{ "explain", "--config FILE PROFILE [NAME=VALUE ...]",
	  "Applies the policy of each pipeline to the profiles in a file and prints what "
	  "happens to each field, and by which rule: keys and counts, no values. PROFILE is a "
	  "pprof, a request of OTLP, or what the exporter file writes; - is standard input. "
	  "NAME=VALUE adds a resource attribute to a pprof, as a receiver would.",
	  command_explain, SIZE_MAX, .configured = true },
	{ "replay", "DIRECTORY --to EXPORTER --config FILE",
	  "Sends the dead letters in a directory again, with an exporter of the configuration, and "
	  "removes each one that was accepted. No processor runs again.",
	  command_replay, 1, .configured = true },
	{ "send", "FROM TO",
	  "Copies a profile from a file or a URL (by GET) to a file or a URL (by POST).",
	  command_send, 2 },
	{ "featuregate", "[ID]", "Lists the supported feature gates.", command_feature_gate, 1 },
	{ "manual", "[TYPE]",
	  "Prints the reference, docs/manual/reference.md, or the page of one component: that of "
	  "pii is docs/POLICY.md.",
	  command_manual, 1 },
	{ "man", "", "Prints the man page portcullis(1).", command_man },
	{ "completion", "bash|zsh|fish",
	  "Prints the completion of commands and options for a shell.", command_completion, 1 },
	{ "help", "[COMMAND]", "Prints the commands and options, or those of one command.",
	  command_help, 1 },
	{ 0 }
};

const struct command *command_find(const char *name)
{
	const struct command *c = commands;
	if (!strcmp(name, "print-initial-config"))
		name = "print-config";
	while (c->name && strcmp(c->name, name) != 0)
		c++;
	return c->name ? c : NULL;
}

static void print_version(void)
{
	printf("portcullis version " PORTCULLIS_VERSION "\ncommit %s of %s\n", build_info_commit,
	       build_info_date);
}

static bool check_arguments(const struct command *command, const char *const *arguments,
			    struct error *err)
{
	for (size_t i = 0; arguments && arguments[i]; i++)
		if (i == command->arguments_max)
			return error_set(err, ERROR_CONFIG,
					 "too many arguments for \"portcullis %s\": \"%s\"",
					 command->name, arguments[i]);
	return true;
}

static bool dispatch(struct options *options, struct error *err)
{
	const struct command *command = command_find(options->command ? options->command : "");
	if (options->version) {
		print_version();
		return true;
	}
	if (!command)
		return command_unknown(options->command, err);
	if (options->help) {
		usage_write(options->command ? command : NULL);
		return true;
	}
	if (!check_arguments(command, options->arguments, err))
		return false;
	if (command->locations)
		options_take_configs(options);
	return command->run(options, err);
}

/* Where a standard stream is missing, the next file or socket would take its number, and get what
 * is meant for it. */
static void fill_standard_streams(void)
{
	int fd;
	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

static void print_errors(const struct problems *problems, const struct error *err)
{
	if (!problems->count)
		fprintf(stderr, "Error: %s\n", err->text);
	for (size_t i = 0; i < problems->count; i++)
		fprintf(stderr, "Error: %s\n", problems->at[i]);
	if (problems->omitted)
		fprintf(stderr, "Error: %zu more error%s\n", problems->omitted,
			problems->omitted == 1 ? "" : "s");
}

int main(int argc, char **argv)
{
	fill_standard_streams();
	struct options options;
	struct problems problems = { 0 };
	struct error err;
	error_clear(&err);
	bool ok = options_parse(&options, argc, argv, &err);
	options.problems = &problems;
	ok = ok && dispatch(&options, &err) && command_end_output(&err);
	options_fini(&options);
	if (!ok)
		print_errors(&problems, &err);
	problems_fini(&problems);
	return ok ? command_status : 1;
}
