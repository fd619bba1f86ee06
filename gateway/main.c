/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/commands.h"
#include "base/version.h"

#include <stdio.h>
#include <string.h>

const struct command commands[] = {
	{ "validate", "", "Checks the configuration without starting anything.", command_validate },
	{ "print-config", "", "Prints the effective configuration, secrets redacted.", command_print_config },
	{ "components", "[TYPE]", "Lists what this build has, or describes one component.", command_components },
	{ "explain", "FILE [NAME=VALUE ...]", "Shows what the first pipeline's policy does to a profile: keys and counts.",
	  command_explain },
	{ "send", "FROM TO", "Carries a profile from a file or URL to a file or URL (--repeat N times).", command_send },
	{ "featuregate", "[ID]", "Lists the feature gates that are accepted.", command_feature_gate },
	{ "manual", "", "Prints docs/MANUAL.md.", command_manual },
	{ 0 }
};

static void usage(FILE *out)
{
	fputs("portcullis: a gateway for profiles, compatible with the OpenTelemetry Collector\n\n"
	      "Usage:\n"
	      "  portcullis --config FILE [flags]\n",
	      out);
	for (const struct command *c = commands; c->name; c++)
		fprintf(out, "  portcullis %s %s\n        %s\n", c->name, c->arguments, c->help);
	fputs("\nFlags:\n"
	      "  --config LOCATION          file, file:, env: or yaml: location; repeatable, merged in order\n"
	      "  --set KEY=VALUE            overrides one setting (a.b=c); repeatable\n"
	      "  --feature-gates LIST       accepted for compatibility; service.profilesSupport is always on\n"
	      "  --shutdown-timeout TIME    how long SIGTERM may drain (20s)\n"
	      "  --mode redacted|unredacted  of print-config\n"
	      "  --repeat N                 of send: post it so many times\n"
	      "  --version, --help\n",
	      out);
}

static const struct command *find(const char *name)
{
	static const struct command run = { "", "", "", command_run };
	const struct command *c = commands;
	if (!name)
		return &run;
	if (!strcmp(name, "print-initial-config"))
		name = "print-config";
	while (c->name && strcmp(c->name, name) != 0)
		c++;
	return c->name ? c : NULL;
}

static bool dispatch(const struct options *options, struct error *err)
{
	const struct command *command = find(options->command);
	if (options->help) {
		usage(stdout);
		return true;
	}
	if (options->version) {
		puts("portcullis version " PORTCULLIS_VERSION);
		return true;
	}
	if (!command)
		return error_set(err, ERROR_CONFIG, "unknown command \"%s\" for \"portcullis\"", options->command);
	return command->run(options, err);
}

int main(int argc, char **argv)
{
	struct options options;
	struct error err;
	error_clear(&err);
	bool ok = options_parse(&options, argc, argv, &err) && dispatch(&options, &err);
	options_fini(&options);
	if (!ok)
		fprintf(stderr, "Error: %s\n", err.text);
	return ok ? 0 : 1;
}
