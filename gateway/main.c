/* SPDX-License-Identifier: Apache-2.0 */
#include "base/version.h"
#include "gateway/commands.h"
#include "gateway/usage.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct command commands[] = {
	{ "", "--config FILE", "Runs the gateway.", command_run },
	{ "validate", "--config FILE",
	  "Checks the configuration without starting anything. Prints nothing if it is valid, except "
	  "warnings.",
	  command_validate },
	{ "print-config", "--config FILE", "Prints the effective configuration without secrets.",
	  command_print_config },
	{ "components", "[TYPE]",
	  "Lists the components of this build, or prints the manual of one component.",
	  command_components, 1 },
	{ "explain", "--config FILE PROFILE [NAME=VALUE ...]",
	  "Applies the policy of each pipeline to the profiles in a file and prints what "
	  "happens to each field, and by which rule: keys and counts, no values. PROFILE is a "
	  "pprof, a request of OTLP, or what the exporter file writes; - is standard input. "
	  "NAME=VALUE adds a resource attribute to a pprof, as a receiver would.",
	  command_explain, SIZE_MAX },
	{ "replay", "DIRECTORY --to EXPORTER --config FILE",
	  "Sends the dead letters in a directory again, with an exporter of the configuration, and "
	  "removes each one that was accepted. No processor runs again.",
	  command_replay, 1 },
	{ "send", "FROM TO",
	  "Copies a profile from a file or a URL (by GET) to a file or a URL (by POST).",
	  command_send, 2 },
	{ "featuregate", "[ID]", "Lists the supported feature gates.", command_feature_gate, 1 },
	{ "manual", "", "Prints the reference, docs/manual/reference.md.", command_manual },
	{ "man", "", "Prints the man page portcullis(1).", command_man },
	{ 0 }
};

static bool print_usage(void)
{
	struct bytes out;
	bytes_init(&out, SIZE_MAX / 2);
	bytes_add_text(&out, "A gateway for profiles, compatible with the OpenTelemetry "
			     "Collector.\n\n");
	usage_print(&out);
	bool ok = fwrite(out.at, 1, out.len, stdout) == out.len;
	bytes_fini(&out);
	return ok;
}

static const struct command *find(const char *name)
{
	const struct command *c = commands;
	if (!name)
		name = "";
	if (!strcmp(name, "print-initial-config"))
		name = "print-config";
	while (c->name && strcmp(c->name, name) != 0)
		c++;
	return c->name ? c : NULL;
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

static bool dispatch(const struct options *options, struct error *err)
{
	const struct command *command = find(options->command);
	if (options->help)
		return print_usage();
	if (options->version) {
		puts("portcullis version " PORTCULLIS_VERSION);
		return true;
	}
	if (!command)
		return error_set(err, ERROR_CONFIG, "unknown command \"%s\" for \"portcullis\"",
				 options->command);
	return check_arguments(command, options->arguments, err) && command->run(options, err);
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

int main(int argc, char **argv)
{
	fill_standard_streams();
	struct options options;
	struct error err;
	error_clear(&err);
	bool ok = options_parse(&options, argc, argv, &err) && dispatch(&options, &err);
	options_fini(&options);
	if (!ok)
		fprintf(stderr, "Error: %s\n", err.text);
	return ok ? command_status : 1;
}
