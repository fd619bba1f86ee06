/* SPDX-License-Identifier: Apache-2.0 */
#include <strings.h>

#include "base/memory.h"
#include "net/http/http_internal.h"

/*
 * Cross-origin resource sharing (Fetch standard, "CORS protocol"), with the rules of the
 * Collector's confighttp: credentials are always allowed; GET, HEAD and POST are the allowed
 * methods; without allowed_headers, the headers are Accept, Content-Type and X-Requested-With. A
 * preflight is answered with 204 whatever it asks for: a browser reads from the headers whether it
 * may continue.
 */
static const struct config_row rows[] = {
	CONFIG_ROW(struct http_cors_config, allowed_origins, .key = "allowed_origins",
		   .help = "Origins from which browsers may send requests, such as "
			   "`https://*.example.com`. One `*` in each stands for any characters. "
			   "Without origins, there is no CORS."),
	CONFIG_ROW(struct http_cors_config, allowed_headers, .key = "allowed_headers",
		   .help = "Request headers that browsers may send; `*`: any. Empty: Accept, "
			   "Content-Type and X-Requested-With."),
	CONFIG_ROW(struct http_cors_config, exposed_headers, .key = "exposed_headers",
		   .help = "Response headers that scripts may read."),
	CONFIG_ROW(struct http_cors_config, max_age, .key = "max_age", .def = "0", .unit = "s",
		   .help = "Time for which browsers may keep the answer to a preflight; 0: the "
			   "browser's default. Negative: they may not keep it."),
	{ 0 }
};

const struct config_table http_cors_table = { sizeof(struct http_cors_config), rows,
					      .optional = true };

static const char *const default_headers[] = { "accept", "content-type", "x-requested-with" };

bool http_cors_is_on(const struct http_server_config *config)
{
	return config->cors.present.enabled && config->cors.allowed_origins.count;
}

/* Without case: a browser writes origins in lower case. */
static bool matches(const char *pattern, const char *origin)
{
	const char *star = strchr(pattern, '*');
	if (!star)
		return !strcasecmp(pattern, origin);
	size_t before = (size_t)(star - pattern), after = strlen(star + 1), len = strlen(origin);
	return len >= before + after && !strncasecmp(pattern, origin, before) &&
	       !strcasecmp(star + 1, origin + len - after);
}

static bool has(const struct strings *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcasecmp(list->at[i], name))
			return true;
	return false;
}

/* What Access-Control-Allow-Origin says; NULL: nothing. */
static const char *allowed_origin(const struct strings *patterns, const char *origin)
{
	if (!origin || !*origin)
		return NULL;
	if (has(patterns, "*"))
		return "*";
	for (size_t i = 0; i < patterns->count; i++)
		if (matches(patterns->at[i], origin))
			return origin;
	return NULL;
}

static bool method_is_allowed(const char *method)
{
	static const char *const methods[] = { "GET", "HEAD", "POST", "OPTIONS" };
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
		if (!strcmp(methods[i], method))
			return true;
	return false;
}

static bool header_is_allowed(const struct strings *allowed, struct view name)
{
	size_t count =
		allowed->count ? allowed->count : sizeof default_headers / sizeof *default_headers;
	for (size_t i = 0; i < count; i++) {
		const char *known = allowed->count ? allowed->at[i] : default_headers[i];
		if (strlen(known) == name.len &&
		    !strncasecmp(known, (const char *)name.at, name.len))
			return true;
	}
	return false;
}

/* The names in a list with commas. */
static bool headers_are_allowed(const struct strings *allowed, const char *list)
{
	static const char blank[] = " \t";
	if (has(allowed, "*"))
		return true;
	while (list && *list) {
		list += strspn(list, " \t,");
		size_t len = strcspn(list, ",");
		struct view name = { (const uint8_t *)list, len };
		while (name.len && strchr(blank, name.at[name.len - 1]))
			name.len--;
		if (name.len && !header_is_allowed(allowed, name))
			return false;
		list += len;
	}
	return true;
}

static bool is_repeated(struct http_exchange *x, const char *name)
{
	int count = 0;
	for (const struct metadatum *h = http_exchange_headers(x); h->name; h++)
		count += !strcmp(h->name, name);
	return count > 1;
}

static void judge_preflight(struct http_exchange *x, const char *origin, const char *method)
{
	static const char name[] = "access-control-request-headers";
	const char *headers = http_exchange_header(x, name);
	x->cors.preflight = true;
	if (!origin || !method_is_allowed(method) || is_repeated(x, name) ||
	    !headers_are_allowed(&x->server->config->cors.allowed_headers, headers))
		return;
	x->cors.origin = memory_text(origin);
	x->cors.method = memory_text(method);
	x->cors.headers = headers && *headers ? memory_text(headers) : NULL;
}

bool http_cors_judge(struct http_exchange *x)
{
	const struct http_server_config *config = x->server->config;
	if (!http_cors_is_on(config))
		return false;
	const char *origin =
		allowed_origin(&config->cors.allowed_origins, http_exchange_header(x, "origin"));
	const char *wanted = http_exchange_header(x, "access-control-request-method");
	if (!strcmp(x->method, "OPTIONS") && wanted && *wanted)
		judge_preflight(x, origin, wanted);
	else if (origin && method_is_allowed(x->method))
		x->cors.origin = memory_text(origin);
	return x->cors.preflight;
}

void http_cors_forget(struct http_exchange *x)
{
	memory_free(x->cors.origin);
	memory_free(x->cors.method);
	memory_free(x->cors.headers);
}

char *http_cors_exposed(const struct http_server_config *config)
{
	const struct strings *names = &config->cors.exposed_headers;
	char *list = NULL;
	for (size_t i = 0; i < names->count; i++) {
		char *longer =
			memory_format("%s%s%s", list ? list : "", list ? ", " : "", names->at[i]);
		memory_free(list);
		list = longer;
	}
	return list;
}

static void add_preflight(const struct http_exchange *x, http_add_header *add, void *context)
{
	const struct http_cors_config *config = &x->server->config->cors;
	add(context, "Access-Control-Allow-Methods", x->cors.method);
	if (x->cors.headers)
		add(context, "Access-Control-Allow-Headers", x->cors.headers);
	if (config->max_age)
		add(context, "Access-Control-Max-Age", x->server->cors_max_age);
}

void http_cors_each_header(const struct http_exchange *x, http_add_header *add, void *context)
{
	if (!http_cors_is_on(x->server->config))
		return;
	add(context, "Vary",
	    x->cors.preflight
		    ? "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"
		    : "Origin");
	if (!x->cors.origin)
		return;
	add(context, "Access-Control-Allow-Origin", x->cors.origin);
	add(context, "Access-Control-Allow-Credentials", "true");
	if (x->cors.preflight)
		add_preflight(x, add, context);
	else if (x->server->cors_exposed)
		add(context, "Access-Control-Expose-Headers", x->server->cors_exposed);
}
