/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/commands.h"
#include "gateway/components.h"
#include "gateway/options.h"
#include "pipeline/component.h"

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

/* The words that a command takes instead of files. */
static void add_arguments(struct bytes *out, const struct command *c)
{
	if (!strcmp(c->name, "components") || !strcmp(c->name, "manual"))
		add_types(out);
	else if (!strcmp(c->name, "help"))
		add_commands(out);
	else if (is_choice(c->arguments))
		add_words(out, c->arguments);
}

/* What stands for a character of `special` in the text. */
struct escape {
	const char *special, *prefix;
};

/* The first sentence of a help text, without its full stop. */
static void add_sentence(struct bytes *out, const char *help, const struct escape *escapes)
{
	const char *end = strstr(help, ". ");
	size_t len = end ? (size_t)(end - help) : strlen(help);
	for (size_t i = 0; i < len && !(help[i] == '.' && i + 1 == len); i++) {
		for (const struct escape *e = escapes; e->special; e++)
			if (strchr(e->special, help[i]))
				bytes_add_text(out, e->prefix);
		bytes_add_byte(out, (uint8_t)help[i]);
	}
}

/* ---- bash */

static void add_flags(struct bytes *out, const struct command *c)
{
	for (const struct option *o = options_table; o->flag; o++)
		if (option_is_of(o, c->name, c->configured))
			bytes_format(out, "%s ", o->flag);
}

static void add_bash_value(struct bytes *out, const struct option *o)
{
	bytes_format(out, "\t%s%s%s) COMPREPLY=($(compgen ", o->flag, o->letter ? "|" : "",
		     o->letter ? o->letter : "");
	if (is_choice(o->argument)) {
		bytes_add_text(out, "-W \"");
		add_words(out, o->argument);
		bytes_add_text(out, "\"");
	} else {
		bytes_add_text(out, "-f");
	}
	bytes_add_text(out, " -- \"$word\")); return;;\n");
}

static void add_bash_command(struct bytes *out, const struct command *c)
{
	bytes_format(out, "\t\"%s\") words=\"", c->name);
	add_flags(out, c);
	if (*c->name)
		add_arguments(out, c);
	else
		add_commands(out);
	bytes_add_text(out, "\";;\n");
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
	for (const struct option *o = options_table; o->flag; o++)
		if (o->argument)
			add_bash_value(out, o);
	bytes_add_text(out, "\tesac\n\tcase $command in\n");
	for (const struct command *c = commands; c->name; c++)
		add_bash_command(out, c);
	bytes_add_text(out, "\tesac\n"
			    "\tCOMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
			    "}\n"
			    "complete -o default -F _portcullis portcullis\n");
}

/* ---- zsh */

/* In '...': a quote ends it. */
static const struct escape zsh_word[] = { { "'", "'\\'" }, { 0 } };
/* In '[...]' of _arguments. */
static const struct escape zsh_option[] = { { "'", "'\\'" }, { "[]\\", "\\" }, { 0 } };

static void add_zsh_option(struct bytes *out, const struct option *o, const char *flag,
			   const char *equals)
{
	bytes_format(out, " \\\n\t\t\t'%s%s%s[", o->kind == OPTION_LIST ? "*" : "", flag, equals);
	add_sentence(out, o->help, zsh_option);
	bytes_add_text(out, "]");
	if (is_choice(o->argument)) {
		bytes_add_text(out, ":value:(");
		add_words(out, o->argument);
		bytes_add_text(out, ")");
	} else if (o->argument) {
		bytes_format(out, ":%s:_files", o->argument);
	}
	bytes_add_text(out, "'");
}

static void add_zsh_positions(struct bytes *out, const struct command *c)
{
	struct bytes words;
	if (!*c->name) {
		bytes_add_text(out, " \\\n\t\t\t'1:command:_portcullis_commands'");
		return;
	}
	bytes_init(&words, SIZE_MAX / 2);
	add_arguments(&words, c);
	bytes_format(out, " \\\n\t\t\t'1:command:(%s)' \\\n\t\t\t'*:argument:", c->name);
	if (words.len)
		bytes_format(out, "(%.*s)'", (int)words.len, (const char *)words.at);
	else
		bytes_add_text(out, "_files'");
	bytes_fini(&words);
}

static void add_zsh_command(struct bytes *out, const struct command *c)
{
	bytes_format(out, "\t'%s')\n\t\t_arguments", c->name);
	for (const struct option *o = options_table; o->flag; o++) {
		if (!option_is_of(o, c->name, c->configured))
			continue;
		if (o->letter)
			add_zsh_option(out, o, o->letter, "");
		add_zsh_option(out, o, o->flag, o->argument ? "=" : "");
	}
	add_zsh_positions(out, c);
	bytes_add_text(out, "\n\t\t;;\n");
}

static void add_zsh(struct bytes *out)
{
	bytes_add_text(out, "#compdef portcullis\n"
			    "# zsh completion of portcullis; printed by `portcullis completion "
			    "zsh`\n"
			    "_portcullis_commands() {\n"
			    "\tlocal -a commands\n"
			    "\tcommands=(\n");
	for (const struct command *c = commands; c->name; c++) {
		if (!*c->name)
			continue;
		bytes_format(out, "\t\t'%s:", c->name);
		add_sentence(out, c->help, zsh_word);
		bytes_add_text(out, "'\n");
	}
	bytes_add_text(out, "\t)\n"
			    "\t_describe command commands\n"
			    "}\n"
			    "_portcullis() {\n"
			    "\tlocal command= word\n"
			    "\tlocal -a names\n"
			    "\tnames=(");
	add_commands(out);
	bytes_add_text(out, ")\n"
			    "\tfor word in ${words[2,CURRENT-1]}; do\n"
			    "\t\tif (( ${names[(Ie)$word]} )); then command=$word; break; fi\n"
			    "\tdone\n"
			    "\tcase $command in\n");
	for (const struct command *c = commands; c->name; c++)
		add_zsh_command(out, c);
	bytes_add_text(out, "\tesac\n"
			    "}\n"
			    "if [ \"$funcstack[1]\" = _portcullis ]; then\n"
			    "\t_portcullis \"$@\"\n"
			    "else\n"
			    "\tcompdef _portcullis portcullis\n"
			    "fi\n");
}

/* ---- fish */

static const struct escape fish_word[] = { { "'\\", "\\" }, { 0 } };

/* The part that all lines begin with: which command they are for. */
static void add_fish_line(struct bytes *out, const struct command *c)
{
	bytes_format(out, "complete -c portcullis -n \"%s__fish_seen_subcommand_from %s\"",
		     *c->name ? "" : "not ", *c->name ? c->name : "$portcullis_commands");
}

static void add_fish_option(struct bytes *out, const struct command *c, const struct option *o)
{
	add_fish_line(out, c);
	bytes_format(out, " -l %s", o->flag + 2);
	if (o->letter)
		bytes_format(out, " -s %s", o->letter + 1);
	if (is_choice(o->argument)) {
		bytes_add_text(out, " -x -a '");
		add_words(out, o->argument);
		bytes_add_text(out, "'");
	} else if (o->argument) {
		bytes_add_text(out, " -r -F");
	}
	bytes_add_text(out, " -d '");
	add_sentence(out, o->help, fish_word);
	bytes_add_text(out, "'\n");
}

static void add_fish_arguments(struct bytes *out, const struct command *c)
{
	struct bytes words;
	bytes_init(&words, SIZE_MAX / 2);
	add_arguments(&words, c);
	if (words.len) {
		add_fish_line(out, c);
		bytes_format(out, " -f -a '%.*s'\n", (int)words.len, (const char *)words.at);
	}
	bytes_fini(&words);
}

static void add_fish(struct bytes *out)
{
	const struct command none = { .name = "" };
	bytes_add_text(out,
		       "# fish completion of portcullis; printed by `portcullis completion fish`\n"
		       "set -g portcullis_commands ");
	add_commands(out);
	bytes_add_text(out, "\n");
	for (const struct command *c = commands; c->name; c++) {
		for (const struct option *o = options_table; o->flag; o++)
			if (option_is_of(o, c->name, c->configured))
				add_fish_option(out, c, o);
		if (!*c->name)
			continue;
		add_fish_arguments(out, c);
		add_fish_line(out, &none);
		bytes_format(out, " -f -a %s -d '", c->name);
		add_sentence(out, c->help, fish_word);
		bytes_add_text(out, "'\n");
	}
}

bool command_completion(const struct options *options, struct error *err)
{
	static const struct {
		const char *name;
		void (*add)(struct bytes *out);
	} shells[] = { { "bash", add_bash }, { "zsh", add_zsh }, { "fish", add_fish }, { 0 } };
	const char *name = options->arguments ? options->arguments[0] : "";
	size_t i = 0;
	struct bytes out;
	while (shells[i].name && strcmp(shells[i].name, name) != 0)
		i++;
	if (!shells[i].name)
		return error_set(err, ERROR_CONFIG,
				 "completion: the shell must be bash, zsh or fish");
	bytes_init(&out, SIZE_MAX / 2);
	shells[i].add(&out);
	command_print(&out);
	return true;
}
