/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/commands.h"

#include "base/clock.h"
#include "base/memory.h"
#include "gateway/files.h"
#include "gateway/service.h"
#include "net/compress.h"
#include "profile/collect/collect.h"
#include "profile/otlp/decode_otlp.h"
#include "profile/pprof/decode_pprof.h"
#include "profile/sites.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * `portcullis explain`: what the policy of the first pipeline would do to one profile. It runs on
 * the operator's own terminal, so it may name keys; values are never printed. Further arguments
 * NAME=VALUE are resource attributes, as the pprof receiver takes them from the query.
 */
#define FILE_MAX_BYTES ((size_t)256 << 20)
#define TABLE_FACTOR 64

struct verdict {
	char *line; /* "site  what  key" */
	uint64_t count;
};

struct report {
	struct audit audit;
	struct verdict *at;
	size_t count;
};

static void note(struct audit *audit, enum site site, const char *what, struct view key)
{
	struct report *report = (struct report *)audit;
	char *line = memory_format("%-24s %-24s %.*s", sites[site].name, what, (int)key.len,
				   (const char *)key.at);
	for (size_t i = 0; i < report->count; i++) {
		if (strcmp(report->at[i].line, line) != 0)
			continue;
		report->at[i].count++;
		memory_free(line);
		return;
	}
	report->at = memory_resize(report->at, (report->count + 1) * sizeof *report->at);
	report->at[report->count++] = (struct verdict){ line, 1 };
}

static int by_line(const void *a, const void *b)
{
	return strcmp(((const struct verdict *)a)->line, ((const struct verdict *)b)->line);
}

static void print_report(struct report *report)
{
	if (!report->count) {
		puts("policy: nothing denied, nothing masked");
		return;
	}
	qsort(report->at, report->count, sizeof *report->at, by_line);
	printf("policy:\n  %8s  %-24s %-24s %s\n", "count", "site", "what", "key");
	for (size_t i = 0; i < report->count; i++) {
		printf("  %8lu  %s\n", report->at[i].count, report->at[i].line);
		memory_free(report->at[i].line);
	}
	memory_free(report->at);
}

/* An older generation is translated first, as the otlp receiver does it. */
static bool decode_otlp_body(struct profiles *p, struct request *request, struct view body,
			     struct bytes *translated, struct error *err)
{
	struct otlp_layout layout = { .known = OTLP_UNKNOWN };
	if (!profiles_reset(p, request, body, body.len * TABLE_FACTOR + 65536))
		return profiles_over_cap(p, err);
	if (decode_otlp_any(p, &layout, err) || err->kind)
		return !err->kind;
	if (layout.candidates & (layout.candidates - 1))
		return decode_otlp_refuse(layout.candidates, err);
	bytes_init(translated, PROFILES_INPUT_MAX);
	if (!bridge_otlp((enum otlp_generation)__builtin_ctz(layout.candidates), body, translated,
			 err))
		return err->kind ? false : error_set(err, ERROR_TOO_LARGE, "the file is too large");
	layout.known = OTLP_CURRENT;
	body = bytes_view(translated);
	return profiles_reset(p, request, body, body.len * TABLE_FACTOR + 65536) &&
	       decode_otlp_any(p, &layout, err);
}

/* Neither format names itself; a pprof is tried first because its first field cannot be OTLP's. */
static bool decode_any(struct profiles *p, struct request *request, struct view body,
		       const struct metadatum *attributes, struct bytes *translated,
		       struct error *err)
{
	size_t cap = body.len * TABLE_FACTOR + 65536;
	if (profiles_reset(p, request, body, cap) && decode_pprof(p, body, attributes, err)) {
		printf("in:  pprof, %zu bytes", body.len);
		return true;
	}
	error_clear(err);
	if (!decode_otlp_body(p, request, body, translated, err))
		return error_prefix(err, "the file is neither pprof nor OTLP");
	printf("in:  OTLP, %zu bytes", body.len);
	return true;
}

static void print_out(struct collect *collect, const struct collect_added *added)
{
	if (collect_empty(collect)) {
		puts("out: nothing");
		return;
	}
	struct packet *packet = collect_seal(collect);
	printf("out: OTLP, %zu bytes, %u profiles, %lu samples (%lu merged)\n", packet->otlp.len,
	       packet->profiles, packet->samples, added->samples_merged);
	packet_unref(&packet);
}

static bool explain_body(struct service *service, struct view body,
			 const struct metadatum *attributes, struct error *err)
{
	struct request request = { .receiver = "explain",
				   .transport = TRANSPORT_FILE,
				   .arrival = clock_now() };
	struct profiles p = { 0 };
	struct report report = { .audit = { note } };
	struct collect_added added = { 0 };
	struct bytes translated = { 0 };
	bool ok = decode_any(&p, &request, body, attributes, &translated, err);
	if (ok) {
		printf(", %u profiles, %u samples\n", p.profiles.count, p.samples.count);
		p.audit = &report.audit;
		ok = graph_process_once(service->reload.running->graph, &p, err);
	}
	if (ok) {
		struct collect *collect = collect_new(&(struct collect_limits){
			.max_bytes = FILE_MAX_BYTES * 2, .hard_bytes = FILE_MAX_BYTES * 2 });
		print_report(&report);
		ok = collect_add(collect, &p, false, &added, err) != COLLECT_FAILED;
		if (ok)
			print_out(collect, &added);
		collect_unref(&collect);
	}
	profiles_fini(&p);
	bytes_fini(&translated);
	return ok;
}

/* NAME=VALUE arguments; the caller frees the array and the names in it. */
static struct metadatum *read_attributes(const char *const *arguments)
{
	size_t count = 0;
	while (arguments[count])
		count++;
	struct metadatum *attributes = memory_array(count + 1, sizeof *attributes);
	for (size_t i = 0; i < count; i++) {
		const char *equals = strchrnul(arguments[i], '=');
		attributes[i].name = memory_text_of(arguments[i], (size_t)(equals - arguments[i]));
		attributes[i].value = *equals ? equals + 1 : equals;
	}
	return attributes;
}

static bool explain_file(struct service *service, const char *const *arguments, struct error *err)
{
	struct bytes raw, inflated;
	bytes_init(&raw, FILE_MAX_BYTES);
	bytes_init(&inflated, FILE_MAX_BYTES);
	struct metadatum *attributes = read_attributes(arguments + 1);
	bool ok = files_read(arguments[0], &raw, err);
	if (ok) {
		enum coding coding = compress_sniff(bytes_view(&raw));
		ok = coding == CODING_IDENTITY ||
		     compress_inflate(coding, bytes_view(&raw), &inflated, err);
		ok = ok && bytes_reserve(&inflated, 1) &&
		     explain_body(service, bytes_view(coding == CODING_IDENTITY ? &raw : &inflated),
				  attributes, err);
		ok = ok || error_prefix(err, "%s", arguments[0]);
	}
	for (struct metadatum *a = attributes; a->name; a++)
		memory_free((char *)a->name);
	memory_free(attributes);
	bytes_fini(&raw);
	bytes_fini(&inflated);
	return ok;
}

static bool check_attributes(const char *const *arguments, struct error *err)
{
	for (; *arguments; arguments++)
		if (**arguments == '=' || !strchr(*arguments, '='))
			return error_set(err, ERROR_CONFIG, "\"%s\" is not of the form NAME=VALUE",
					 *arguments);
	return true;
}

bool command_explain(const struct options *options, struct error *err)
{
	struct service service;
	if (!options->arguments)
		return error_set(err, ERROR_CONFIG, "explain requires the path of a profile");
	if (!check_attributes(options->arguments + 1, err))
		return false;
	bool ok = service_open(&service, options, err) &&
		  explain_file(&service, options->arguments, err);
	service_close(&service);
	return ok;
}
