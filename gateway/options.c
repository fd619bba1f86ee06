/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/options.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"
#include "net/http/http_client.h"

#include <stdlib.h>
#include <string.h>

#define FETCH_NS (30 * UINT64_C(1000000000))

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

static bool take_switch(struct options *o, const char *flag)
{
	if (!strcmp(flag, "--help") || !strcmp(flag, "-h"))
		o->help = true;
	else if (!strcmp(flag, "--version") || !strcmp(flag, "-v"))
		o->version = true;
	else if (!strcmp(flag, "--insecure-listen"))
		o->insecure_listen = true;
	else
		return !strcmp(flag, "--validate") || !strcmp(flag, "--validate=true"); /* always */
	return true;
}

static bool take_value(struct options *o, const char *flag, size_t len, const char *value)
{
	const struct {
		const char *flag;
		const char **one, ***many;
	} flags[] = {
		{ "--config", NULL, &o->configs },
		{ "--set", NULL, &o->sets },
		{ "--feature-gates", &o->feature_gates, NULL },
		{ "--format", &o->format, NULL },
		{ "--mode", &o->mode, NULL },
		{ "--shutdown-timeout", &o->shutdown_timeout, NULL },
		{ "--repeat", &o->repeat, NULL },
	};
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		if (strlen(flags[i].flag) != len || strncmp(flags[i].flag, flag, len) != 0)
			continue;
		if (value && flags[i].one)
			*flags[i].one = value;
		else if (value)
			add(flags[i].many, value);
		return true;
	}
	return false;
}

/* Returns how many arguments it took; 0 on error. */
static int take_flag(struct options *o, const char *flag, const char *next, struct error *err)
{
	const char *equals = strchr(flag, '=');
	size_t len = equals ? (size_t)(equals - flag) : strlen(flag);
	const char *value = equals ? equals + 1 : next;
	if (take_switch(o, flag))
		return 1;
	if (!take_value(o, flag, len, value))
		return error_set(err, ERROR_CONFIG, "unknown flag: %.*s", (int)len, flag);
	if (!value)
		return error_set(err, ERROR_CONFIG, "flag needs an argument: %s", flag);
	return equals ? 1 : 2;
}

const char options_gate[] = "service.profilesSupport";

static bool check_gate(const char *name, size_t len, struct error *err)
{
	bool off = len && *name == '-';
	size_t sign = len && (off || *name == '+');
	if (len - sign != strlen(options_gate) ||
	    memcmp(name + sign, options_gate, len - sign) != 0)
		return error_set(err, ERROR_CONFIG,
				 "no such feature gate \"%.*s\", valid gates: [%s]",
				 (int)(len - sign), name + sign, options_gate);
	if (off)
		return error_set(err, ERROR_CONFIG,
				 "feature gate \"%s\" is stable, can not be disabled",
				 options_gate);
	return true;
}

static bool check_gates(const char *gates, struct error *err)
{
	for (const char *at = gates; at && *at;) {
		size_t len = strcspn(at, ",");
		if (len && !check_gate(at, len, err))
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
	return error_set(err, ERROR_CONFIG, "--%s: neither %s nor %s: \"%s\"", flag, one, other,
			 value);
}

/* What cannot be had is refused, never ignored. */
static bool check_choices(const struct options *o, struct error *err)
{
	return is_one_of("mode", o->mode, "redacted", "unredacted", err) &&
	       is_one_of("format", o->format, "yaml", "json", err) &&
	       check_gates(o->feature_gates, err);
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

void options_fini(struct options *o)
{
	memory_free(o->configs);
	memory_free(o->sets);
	memory_free(o->arguments);
}

struct loading {
	struct log log;
	uint64_t until; /* clock_now: all that is fetched */
};

static void warn_unset(void *context, const char *variable)
{
	struct loading *loading = context;
	log_warn(&loading->log, "Configuration references unset environment variable",
		 log_text("name", variable));
}

/* What is no URL is not repeated: nobody knows which part of it is the password. */
static bool explain_fetch(const char *url, bool answered, int status, struct error *err)
{
	if (!answered && err->kind == ERROR_CONFIG)
		return error_prefix(err, "unable to fetch what \"%.*s://\" begins",
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

/* A server that is slow must not keep us from saying so. */
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

struct node *options_load(const struct options *o, struct error *err)
{
	struct loading loading = { .until = clock_now() + FETCH_NS };
	if (!o->configs) {
		error_set(err, ERROR_CONFIG, "at least one config flag must be provided");
		return NULL;
	}
	if (o->insecure_listen)
		setenv("PORTCULLIS_INSECURE_LISTEN", "0.0.0.0", false);
	return config_load(
		&(struct config_sources){
			.locations = o->configs,
			.location_count = count(o->configs),
			.sets = o->sets,
			.set_count = count(o->sets),
			.unset = warn_unset,
			.fetch = fetch,
			.context = &loading,
		},
		err);
}
