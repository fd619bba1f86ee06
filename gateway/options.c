/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/options.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"
#include "config/suggest.h"
#include "gateway/profiles_only.h"
#include "net/http/http_call.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define FETCH_NS (30 * UINT64_C(1000000000))
#define FETCH_AGAIN_NS (5 * UINT64_C(1000000000)) /* so that a shutdown need not wait */

static size_t count(const char *const *list)
{
	size_t n = 0;
	while (list && list[n])
		n++;
	return n;
}

static void add(const char ***list, const char *text)
{
	size_t n = count(*list);
	*list = memory_resize(*list, (n + 2) * sizeof **list);
	(*list)[n] = text;
	(*list)[n + 1] = NULL;
}

#define OPTION(flag_, member_, ...) \
	{ \
		.flag = flag_, .at = offsetof(struct options, member_), __VA_ARGS__ \
	}

const struct option options_table[] = {
	OPTION("--config", configs, .kind = OPTION_LIST, .letter = "-c", .argument = "LOCATION",
	       .help = "A file, or a file:, env:, yaml:, http: or https: location. Repeatable; "
		       "later locations are merged over earlier ones."),
	OPTION("--set", sets, .kind = OPTION_LIST, .argument = "KEY=VALUE",
	       .help = "Overrides one setting (a.b=c). Repeatable."),
	OPTION("--compare", compares, .kind = OPTION_LIST, .argument = "LOCATION",
	       .commands = "explain",
	       .help = "Another configuration for explain, which then prints where the two differ. "
		       "Repeatable, as --config is."),
	OPTION("--environment", environment, .kind = OPTION_SWITCH, .commands = "validate",
	       .help = "validate also checks this machine: ports can be bound, certificates load, "
		       "match their keys and have not expired, files can be written, and the "
		       "names of destinations resolve. It connects to no destination."),
	OPTION("--connect", connect, .kind = OPTION_SWITCH, .commands = "validate",
	       .help = "validate also asks the destinations of all exporters in use, with their "
		       "TLS, credentials and proxies, whether they would take data. The request "
		       "has no data, so nothing is stored."),
	OPTION("--timeout", timeout, .kind = OPTION_STRING, .argument = "TIME",
	       .commands = "validate",
	       .help = "How long each destination may take to answer with --connect; overrides "
		       "the timeout of its exporter."),
	OPTION("--profiles-only", profiles_only, .kind = OPTION_SWITCH,
	       .help = "Skips pipelines of other signals, the components that no pipeline for "
		       "profiles uses, and extensions that this build does not have, with a "
		       "warning for each: for a configuration shared with a Collector."),
	OPTION("--insecure-listen", insecure_listen, .kind = OPTION_SWITCH,
	       .help = "Sets ${env:PORTCULLIS_INSECURE_LISTEN} to 0.0.0.0, unless the environment "
		       "sets it. The default configuration, which has no TLS, then listens on all "
		       "interfaces instead of on loopback."),
	OPTION("--shutdown-timeout", shutdown_timeout, .kind = OPTION_STRING, .argument = "TIME",
	       .commands = "",
	       .help = "Maximum duration of the drain after SIGTERM; overrides "
		       "service::shutdown::timeout (20s)."),
	OPTION("--strict-exit", strict_exit, .kind = OPTION_SWITCH, .commands = "",
	       .help = "Exits with status 3 after a shutdown that lost data."),
	OPTION("--mode", mode, .kind = OPTION_STRING, .argument = "redacted|unredacted",
	       .commands = "print-config",
	       .help = "Whether print-config shows secrets (redacted)."),
	OPTION("--format", format, .kind = OPTION_STRING, .argument = "yaml|json",
	       .commands = "print-config,explain",
	       .help = "The output format of print-config (yaml). explain prints text, or JSON."),
	OPTION("--repeat", repeat, .kind = OPTION_STRING, .argument = "N", .commands = "send",
	       .help = "The number of times that send posts the profile (1)."),
	OPTION("--to", to, .kind = OPTION_STRING, .argument = "EXPORTER", .commands = "replay",
	       .help = "The ID of the exporter with which replay sends."),
	OPTION("--dry-run", dry_run, .kind = OPTION_SWITCH, .commands = "replay",
	       .help = "replay reads and checks all letters, and sends and removes nothing."),
	OPTION("--include-partial", include_partial, .kind = OPTION_SWITCH, .commands = "replay",
	       .help = "replay also sends what a destination has accepted in part. That part is "
		       "then sent twice."),
	OPTION("--deny-warnings", deny_warnings, .kind = OPTION_SWITCH, .commands = "validate",
	       .help = "validate fails if there is a warning that service::silence does not name."),
	OPTION("--feature-gates", feature_gates, .kind = OPTION_STRING, .argument = "LIST",
	       .help = "Accepted for compatibility; service.profilesSupport is always on. Others "
		       "have no effect and are logged."),
	OPTION("--version", version, .kind = OPTION_SWITCH, .letter = "-v", .commands = "",
	       .help = "Prints the version, and the commit of its sources with its date."),
	OPTION("--help", help, .kind = OPTION_SWITCH, .letter = "-h", .commands = "*",
	       .help = "Prints the commands and options, or with a command its own."),
	{ 0 }
};

static const struct option *find_option(const char *flag, size_t len)
{
	for (const struct option *o = options_table; o->flag; o++)
		if ((strlen(o->flag) == len && !strncmp(o->flag, flag, len)) ||
		    (o->letter && strlen(o->letter) == len && !strncmp(o->letter, flag, len)))
			return o;
	return NULL;
}

static void take(struct options *options, const struct option *o, const char *value)
{
	void *member = (char *)options + o->at;
	switch (o->kind) {
	case OPTION_SWITCH:
		*(bool *)member = true;
		break;
	case OPTION_STRING:
		*(const char **)member = value;
		break;
	case OPTION_LIST:
		add(member, value);
	}
}

/* An option of validate in the Collector; here it always validates. */
static bool is_accepted_for_compatibility(const char *flag)
{
	return !strcmp(flag, "--validate") || !strcmp(flag, "--validate=true");
}

static bool unknown_flag(const char *flag, size_t len, struct error *err)
{
	char meant[SUGGEST_TEXT], *name = memory_text_of(flag, len);
	struct suggest suggest = { .name = name };
	for (const struct option *o = options_table; o->flag; o++)
		suggest_try(&suggest, o->flag);
	error_set(err, ERROR_CONFIG, "unknown flag: %.100s%s", name, suggest_text(&suggest, meant));
	memory_free(name);
	return false;
}

/* Returns the number of arguments taken; 0 on error. */
static int take_flag(struct options *options, const char *flag, const char *next, struct error *err)
{
	const char *equals = strchr(flag, '=');
	size_t len = equals ? (size_t)(equals - flag) : strlen(flag);
	const char *value = equals ? equals + 1 : next;
	const struct option *o = find_option(flag, len);
	if (is_accepted_for_compatibility(flag))
		return 1;
	if (!o || (equals && o->kind == OPTION_SWITCH))
		return unknown_flag(flag, len, err);
	if (!value && o->kind != OPTION_SWITCH)
		return error_set(err, ERROR_CONFIG, "flag needs an argument: %s", flag);
	take(options, o, value);
	return equals || o->kind == OPTION_SWITCH ? 1 : 2;
}

const char options_gate[] = "service.profilesSupport";

static void warn_gate(const char *name, size_t len, const struct log *log)
{
	char *gate = memory_text_of(name, len);
	log_warn(log, "Feature gate has no effect", log_text("gate", gate));
	memory_free(gate);
}

static bool check_gate(const char *name, size_t len, const struct log *log, struct error *err)
{
	bool off = len && *name == '-';
	size_t sign = len && (off || *name == '+');
	bool ours = len - sign == strlen(options_gate) &&
		    !memcmp(name + sign, options_gate, len - sign);
	if (!ours && log)
		warn_gate(name, len, log);
	if (ours && off)
		return error_set(err, ERROR_CONFIG,
				 "feature gate \"%s\" is stable, can not be disabled",
				 options_gate);
	return true;
}

/* log: names those without effect; NULL: nobody does. */
static bool check_gates(const char *gates, const struct log *log, struct error *err)
{
	for (const char *at = gates; at && *at;) {
		size_t len = strcspn(at, ",");
		if (len && !check_gate(at, len, log, err))
			return false;
		at += len + (at[len] == ',');
	}
	return true;
}

static bool is_one_of(const char *flag, const char *value, const char *one, const char *other,
		      struct error *err)
{
	if (!value || !strcmp(value, one) || !strcmp(value, other))
		return true;
	return error_set(err, ERROR_CONFIG, "--%s: must be %s or %s, got \"%s\"", flag, one, other,
			 value);
}

static bool check_choices(const struct options *o, struct error *err)
{
	return is_one_of("mode", o->mode, "redacted", "unredacted", err) &&
	       is_one_of("format", o->format, "yaml", "json", err) &&
	       check_gates(o->feature_gates, NULL, err);
}

bool options_parse(struct options *o, int argc, char **argv, struct error *err)
{
	*o = (struct options){ 0 };
	for (int i = 1; i < argc;) {
		if (argv[i][0] == '-' && argv[i][1]) {
			int taken = take_flag(o, argv[i], argv[i + 1], err);
			if (!taken)
				return false;
			i += taken;
			continue;
		}
		if (o->command)
			add(&o->arguments, argv[i]);
		else
			o->command = argv[i];
		i++;
	}
	return check_choices(o, err);
}

void options_take_configs(struct options *o)
{
	for (size_t i = 0; o->arguments && o->arguments[i]; i++)
		add(&o->configs, o->arguments[i]);
	memory_free(o->arguments);
	o->arguments = NULL;
}

bool option_is_of(const struct option *o, const char *command, bool configured)
{
	if (!o->commands)
		return configured;
	if (!strcmp(o->commands, "*"))
		return true;
	size_t len = strlen(command);
	for (const char *at = o->commands;; at++) {
		size_t word = strcspn(at, ",");
		if (word == len && !strncmp(at, command, len))
			return true;
		at += word;
		if (!*at)
			return false;
	}
}

void options_fini(struct options *o)
{
	memory_free(o->configs);
	memory_free(o->compares);
	memory_free(o->sets);
	memory_free(o->arguments);
}

struct loading {
	struct log log;
	uint64_t until; /* clock_now: all that is fetched */
};

/* An invalid URL is not repeated, because it is unknown which part of it is the password. */
static bool explain_fetch(const char *url, bool answered, int status, struct error *err)
{
	if (!answered && err->kind == ERROR_CONFIG)
		return error_prefix(err, "unable to fetch the \"%.*s://\" location",
				    (int)strcspn(url, ":"), url);
	char *shown = quote_place(url);
	if (answered)
		error_set(err, ERROR_CONFIG,
			  "failed to load resource from uri \"%.200s\". status code: %d", shown,
			  status);
	else
		error_prefix(err, "unable to fetch \"%.200s\"", shown);
	memory_free(shown);
	return false;
}

/* A slow server must not prevent the error message. */
static bool fetch(void *context, const char *url, struct bytes *out, struct error *err)
{
	const struct loading *loading = context;
	uint64_t now = clock_now();
	int status = 0;
	const struct http_call call = { .url = url,
					.timeout_ns =
						now < loading->until ? loading->until - now : 1 };
	bool answered = http_call(&call, &status, out, err);
	return (answered && status == 200) || explain_fetch(url, answered, status, err);
}

static struct node *load(const struct options *o, uint64_t fetch_ns, struct problems *problems)
{
	struct loading loading = { .until = clock_now() + fetch_ns };
	struct node *root = config_load_all(
		&(struct config_sources){
			.locations = o->configs,
			.location_count = count(o->configs),
			.sets = o->sets,
			.set_count = count(o->sets),
			.fetch = fetch,
			.context = &loading,
		},
		problems);
	if (o->profiles_only)
		profiles_only_apply(root, problems, &loading.log);
	return root;
}

struct node *options_load(const struct options *o, struct problems *problems)
{
	struct error why;
	if (!o->configs) {
		error_set(&why, ERROR_CONFIG,
			  "at least one config flag must be provided; write --config FILE");
		problems_add(problems, &why);
		problems->incomplete = true;
	}
	check_gates(o->feature_gates, &(struct log){ 0 }, NULL);
	if (o->insecure_listen)
		setenv("PORTCULLIS_INSECURE_LISTEN", "0.0.0.0", false);
	return load(o, FETCH_NS, problems);
}

struct node *options_load_again(const struct options *o, struct problems *problems)
{
	return load(o, FETCH_AGAIN_NS, problems);
}
