/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/commands.h"
#include "gateway/components.h"
#include "gateway/options.h"
#include "pipeline/component.h"

#include <stdio.h>
#include <string.h>

/* Completion of commands, options and the fixed values of options, from the tables of both. Where a
 * value is free, files are offered. */

/* An argument such as "yaml|json" lists the values. */
static bool is_choice(const char *argument)
{
	return argument && strchr(argument, '|');
}

static void add_words(struct bytes *out, const char *words)
{
	for (; *words; words++)
		bytes_add_byte(out, *words == '|' ? ' ' : (uint8_t)*words);
}

static void add_commands(struct bytes *out)
{
	for (const struct command *c = commands; c->name; c++)
		if (*c->name)
			bytes_format(out, "%s ", c->name);
}

static void add_types(struct bytes *out)
{
	for (const struct component_factory *const *f = components; *f; f++)
		bytes_format(out, "%s ", (*f)->type);
}

static void add_flags(struct bytes *out, const struct command *c)
{
	for (const struct option *o = options_table; o->flag; o++)
		if (option_is_of(o, c->name, c->configured))
			bytes_format(out, "%s ", o->flag);
}

/* The words that a command takes instead of files. */
static void add_arguments(struct bytes *out, const struct command *c)
{
	if (!strcmp(c->name, "components"))
		add_types(out);
	else if (!strcmp(c->name, "help"))
		add_commands(out);
	else if (!strcmp(c->name, "completion"))
		bytes_add_text(out, "bash ");
}

static void add_patterns(struct bytes *out, const struct option *o)
{
	bytes_format(out, "%s%s%s", o->flag, o->letter ? "|" : "", o->letter ? o->letter : "");
}

static void add_bash(struct bytes *out)
{
	bytes_add_text(out,
		       "# bash completion of portcullis; printed by `portcullis completion bash`\n"
		       "_portcullis() {\n"
		       "\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
		       "\tlocal command= words= i\n"
		       "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
		       "\t\tcase \" ");
	add_commands(out);
	bytes_add_text(out, "\" in *\" ${COMP_WORDS[i]} \"*) command=${COMP_WORDS[i]}; break;; "
			    "esac\n\tdone\n\tcase $before in\n");
	for (const struct option *o = options_table; o->flag; o++) {
		if (!o->argument)
			continue;
		bytes_add_text(out, "\t");
		add_patterns(out, o);
		bytes_add_text(out, ") COMPREPLY=($(compgen ");
		if (is_choice(o->argument)) {
			bytes_add_text(out, "-W \"");
			add_words(out, o->argument);
			bytes_add_text(out, "\"");
		} else {
			bytes_add_text(out, "-f");
		}
		bytes_add_text(out, " -- \"$word\")); return;;\n");
	}
	bytes_add_text(out, "\tesac\n\tcase $command in\n");
	for (const struct command *c = commands; c->name; c++) {
		bytes_format(out, "\t\"%s\") words=\"", c->name);
		add_flags(out, c);
		if (*c->name)
			add_arguments(out, c);
		else
			add_commands(out);
		bytes_add_text(out, "\";;\n");
	}
	bytes_add_text(out, "\tesac\n"
			    "\tCOMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
			    "}\n"
			    "complete -o default -F _portcullis portcullis\n");
}

bool command_completion(const struct options *options, struct error *err)
{
	struct bytes out;
	if (!options->arguments || strcmp(options->arguments[0], "bash") != 0)
		return error_set(err, ERROR_CONFIG, "completion: the shell must be bash");
	bytes_init(&out, SIZE_MAX / 2);
	add_bash(&out);
	bool ok = fwrite(out.at, 1, out.len, stdout) == out.len;
	bytes_fini(&out);
	return ok || error_set(err, ERROR_CONFIG, "cannot write: %m");
}
