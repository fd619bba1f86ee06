/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/commands.h"

#include "base/memory.h"
#include "base/version.h"
#include "config/scalar.h"
#include "config/source.h"
#include "config/suggest.h"
#include "gateway/components.h"
#include "gateway/environment.h"
#include "gateway/service.h"
#include "gateway/usage.h"
#include "pipeline/graph/lint.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

int command_status;

static int output_fault; /* errno of what could not be written first */

static void note_output(bool written)
{
	if (!written && !output_fault)
		output_fault = errno;
}

void command_print(struct bytes *out)
{
	note_output(fwrite(out->at, 1, out->len, stdout) == out->len);
	bytes_fini(out);
}

bool command_end_output(struct error *err)
{
	note_output(fflush(stdout) == 0);
	if (!output_fault && !ferror(stdout))
		return true;
	return error_set(err, ERROR_CONFIG, "cannot write to standard output: %s",
			 strerror(output_fault ? output_fault : EIO));
}

bool command_run(const struct options *options, struct error *err)
{
	struct service service;
	bool ok = service_open(&service, options, err) && service_run(&service, err);
	command_status = service_exit_status(&service);
	service_close(&service);
	return ok;
}

static void print_warning(void *context, const struct lint_finding *found)
{
	(void)context;
	fprintf(stderr, "Warning: %s [%s]\n", found->text, found->id);
}

/* --timeout; 0: each exporter has its own. */
static bool read_timeout(const struct options *options, int64_t *ns, struct error *err)
{
	*ns = 0;
	if (!options->timeout)
		return true;
	if (!options->connect)
		return error_set(err, ERROR_CONFIG, "--timeout: has an effect only with --connect");
	if (!scalar_duration(options->timeout, ns, err))
		return error_prefix(err, "--timeout");
	return *ns >= 1000000 || error_set(err, ERROR_CONFIG, "--timeout: must be at least 1ms");
}

/* What the exporters log meanwhile, their errors say. */
static bool ask_destinations(struct graph *graph, uint64_t timeout_ns, struct problems *problems)
{
	signal(SIGPIPE, SIG_IGN);
	log_configure(&(struct log_config){ .level = LOG_ERROR }, NULL);
	return graph_probe(graph, timeout_ns, problems);
}

static bool look_around(struct service *service, int64_t timeout_ns)
{
	const struct options *o = service->options;
	struct graph *graph = service->reload.running->graph;
	bool ok = !o->environment ||
		  environment_check(graph, service->runtime.telemetry, o->connect, o->problems);
	return (!o->connect || ask_destinations(graph, (uint64_t)timeout_ns, o->problems)) && ok;
}

bool command_validate(const struct options *options, struct error *err)
{
	struct service service;
	int64_t timeout_ns;
	if (!read_timeout(options, &timeout_ns, err))
		return false;
	bool ok = service_open(&service, options, err);
	uint32_t warnings = ok ? graph_lint(service.reload.running->graph, print_warning, NULL) : 0;
	if (warnings && options->deny_warnings)
		ok = error_set(err, ERROR_CONFIG,
			       "warnings: %u. service::silence takes the identifiers in brackets",
			       warnings);
	ok = ok && look_around(&service, timeout_ns);
	service_close(&service);
	return ok;
}

static void print_whole(const struct service *service, bool redact, bool json)
{
	struct bytes out, telemetry;
	bytes_init(&out, SIZE_MAX / 2);
	bytes_init(&telemetry, SIZE_MAX / 2);
	telemetry_print(service->runtime.telemetry, redact, json, &telemetry);
	graph_print(service->reload.running->graph, redact, json, bytes_view(&telemetry), &out);
	command_print(&out);
	bytes_fini(&telemetry);
}

bool command_print_config(const struct options *options, struct error *err)
{
	struct service service;
	bool json = options->format && !strcmp(options->format, "json");
	bool redact = !options->mode || !strcmp(options->mode, "redacted");
	bool ok = service_open(&service, options, err);
	if (ok)
		print_whole(&service, redact, json);
	service_close(&service);
	return ok;
}

static void print_build_info(void)
{
	puts("buildinfo:\n"
	     "    command: portcullis\n"
	     "    description: Gateway for profiles\n"
	     "    version: " PORTCULLIS_VERSION);
}

static bool describe(const char *type, struct error *err)
{
	bool found = false;
	char meant[SUGGEST_TEXT];
	struct suggest suggest = { .name = type };
	for (const struct component_factory *const *f = components; *f; f++) {
		struct bytes out;
		suggest_try(&suggest, (*f)->type);
		if (strcmp((*f)->type, type) != 0 &&
		    !((*f)->alias && strcmp((*f)->alias, type) == 0))
			continue;
		found = true;
		bytes_init(&out, SIZE_MAX / 2);
		manual_component(*f, &out);
		command_print(&out);
	}
	return found || error_set(err, ERROR_CONFIG, "this build has no component of type \"%s\"%s",
				  type, suggest_text(&suggest, meant));
}

bool command_components(const struct options *options, struct error *err)
{
	if (options->arguments)
		return describe(options->arguments[0], err);
	print_build_info();
	for (enum component_kind kind = COMPONENT_RECEIVER; kind <= COMPONENT_EXTENSION; kind++) {
		printf("%s:\n", component_section_names[kind]);
		for (const struct component_factory *const *f = components; *f; f++)
			if ((*f)->kind == kind)
				printf("    - name: %s\n      stability:\n        "
				       "profiles: Alpha\n",
				       (*f)->type);
	}
	puts("providers:");
	const char *scheme;
	for (size_t i = 0; (scheme = source_scheme_name(i)); i++)
		printf("    - scheme: %s\n", scheme);
	puts("converters: []");
	return true;
}

bool command_feature_gate(const struct options *options, struct error *err)
{
	if (options->arguments && strcmp(options->arguments[0], options_gate) != 0)
		return error_set(err, ERROR_CONFIG, "feature \"%s\" not found",
				 options->arguments[0]);
	printf("ID\tEnabled\tStage\tDescription\n%s\ttrue\tStable\tProfiles support; always "
	       "enabled in this gateway.\n",
	       options_gate);
	return true;
}

bool command_unknown(const char *name, struct error *err)
{
	char meant[SUGGEST_TEXT];
	struct suggest suggest = { .name = name };
	for (const struct command *c = commands; c->name; c++)
		suggest_try(&suggest, c->name);
	return error_set(err, ERROR_CONFIG, "unknown command \"%s\" for \"portcullis\"%s", name,
			 suggest_text(&suggest, meant));
}

bool command_help(const struct options *options, struct error *err)
{
	const char *name = options->arguments ? options->arguments[0] : NULL;
	const struct command *command = name ? command_find(name) : NULL;
	if (name && !command)
		return command_unknown(name, err);
	usage_write(command);
	return true;
}

bool command_man(const struct options *options, struct error *err)
{
	struct bytes out;
	(void)options, (void)err;
	bytes_init(&out, SIZE_MAX / 2);
	usage_man(&out);
	command_print(&out);
	return true;
}
