/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/usage.h"

#include "gateway/commands.h"

#include <string.h>

enum { COLUMNS = 100, COMMAND_INDENT = 8, OPTION_INDENT = 28 };

const struct usage_fact usage_signals[] = {
	{ "SIGTERM, SIGINT",
	  "Health checks fail for `service::shutdown::delay` (0s). Then the program drains in "
	  "order: receivers stop, workers finish, open batches are flushed, and each queued "
	  "packet gets one more attempt. Packets that are still waiting after "
	  "`service::shutdown::timeout` (20s) are dropped and counted with reason "
	  "`shutdown`. A second signal ends the delay and the wait. Operations that do not "
	  "end even then (such as a write to a network disk that hangs) are abandoned 5 s "
	  "later, and the log reports the loss." },
	{ "SIGHUP",
	  "Applies a changed configuration; connections and queues of components that did not "
	  "change survive. An invalid one changes nothing, and the log reports the reason. Also "
	  "reopens files and reads certificates again. If that fails for one of them, the "
	  "current one stays in use." },
	{ 0 }
};

const struct usage_fact usage_statuses[] = {
	{ "0", "Success. Also the status after SIGTERM and SIGINT, even if operations were "
	       "abandoned or data was lost." },
	{ "1", "An error. It is printed to stderr as `Error: ...`, with file, line and column "
	       "for errors in the configuration." },
	{ "3", "With `--strict-exit`: after SIGTERM or SIGINT, data was lost. The last line of the "
	       "log has the number of samples for each exporter." },
	{ 0 }
};

const struct usage_fact usage_environment[] = {
	{ "PORTCULLIS_INSECURE_LISTEN",
	  "The address on which the default configuration listens; see `--insecure-listen`. A "
	  "configuration may use any variable as `${env:NAME}`." },
	{ 0 }
};

const struct usage_fact usage_files[] = {
	{ "/etc/portcullis/gateway.yaml",
	  "The configuration of the systemd unit and of the image. The installed default "
	  "listens on loopback and logs counts." },
	{ "/var/lib/portcullis", "The working directory of the systemd unit and of the image, and "
				 "the only directory that they can write to." },
	{ 0 }
};

/* ---- --help and the manual */

static void add_spaces(struct bytes *out, size_t count)
{
	while (count--)
		bytes_add_byte(out, ' ');
}

/* Fills lines from `column` on; further ones begin at `indent`. */
static void fill(struct bytes *out, const char *text, size_t column, size_t indent)
{
	bool first = true;
	for (size_t len; *text; text += len + (text[len] == ' ')) {
		len = strcspn(text, " ");
		if (!first && column + 1 + len > COLUMNS) {
			bytes_add_byte(out, '\n');
			add_spaces(out, indent);
			column = indent;
		} else if (!first) {
			bytes_add_byte(out, ' ');
			column++;
		}
		bytes_add(out, text, len);
		column += len;
		first = false;
	}
	bytes_add_byte(out, '\n');
}

static void print_command(const struct command *c, struct bytes *out)
{
	bytes_format(out, "portcullis%s%s%s%s\n", *c->name ? " " : "", c->name,
		     *c->arguments ? " " : "", c->arguments);
	add_spaces(out, COMMAND_INDENT);
	fill(out, c->help, COMMAND_INDENT, COMMAND_INDENT);
}

static void print_option(const struct option *o, struct bytes *out)
{
	size_t mark = out->len;
	bytes_format(out, "%s%s%s%s%s", o->letter ? o->letter : "", o->letter ? ", " : "", o->flag,
		     o->argument ? " " : "", o->argument ? o->argument : "");
	size_t width = out->len - mark;
	if (width >= OPTION_INDENT) {
		bytes_add_byte(out, '\n');
		width = 0;
	}
	add_spaces(out, OPTION_INDENT - width);
	fill(out, o->help, OPTION_INDENT, OPTION_INDENT);
}

void usage_print(struct bytes *out)
{
	for (const struct command *c = commands; c->name; c++)
		print_command(c, out);
	bytes_add_byte(out, '\n');
	for (const struct option *o = options_table; o->flag; o++)
		print_option(o, out);
}

static void print_own(const struct command *c, struct bytes *out)
{
	print_command(c, out);
	bytes_add_byte(out, '\n');
	for (const struct option *o = options_table; o->flag; o++)
		if (option_is_of(o, c->name, c->configured))
			print_option(o, out);
}

void usage_write(const struct command *command)
{
	struct bytes out;
	bytes_init(&out, SIZE_MAX / 2);
	if (command) {
		print_own(command, &out);
	} else {
		bytes_add_text(&out, "A gateway for profiles, compatible with the OpenTelemetry "
				     "Collector.\n\n");
		usage_print(&out);
	}
	command_print(&out);
}

void usage_list(const struct usage_fact *facts, struct bytes *out)
{
	for (; facts->name; facts++)
		bytes_format(out, "- `%s`: %s\n", facts->name, facts->meaning);
}
