/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/explain_print.h"

#include "base/memory.h"
#include "base/quote.h"

#include <stdlib.h>

static int compare_verdicts(const void *one, const void *other)
{
	const struct explain_verdict *a = *(const struct explain_verdict *const *)one;
	const struct explain_verdict *b = *(const struct explain_verdict *const *)other;
	if (a->site != b->site)
		return (int)a->site - (int)b->site;
	int order = strcmp(a->key, b->key);
	if (!order)
		order = strcmp(a->what, b->what);
	return order ? order : strcmp(a->entry, b->entry);
}

const struct explain_verdict **explain_sorted(const struct explain_verdicts *v)
{
	const struct explain_verdict **list = memory_array(v->count + 1, sizeof *list);
	for (size_t i = 0; i < v->count; i++)
		list[i] = &v->at[i];
	if (v->count)
		qsort(list, v->count, sizeof *list, compare_verdicts);
	return list;
}

/* ---- text */

static void pad(struct bytes *out, size_t begun, size_t width)
{
	do
		bytes_add_byte(out, ' ');
	while (out->len < begun + width);
}

void explain_text_column(struct bytes *out, const char *text, size_t width)
{
	size_t begun = out->len;
	quote_plain(out, text, strlen(text));
	pad(out, begun, width);
}

void explain_text_rule(struct bytes *out, const struct explain_verdict *v)
{
	if (!*v->processor) {
		bytes_add_text(out, sites[v->site].has_keys ? "no processor removes it"
							    : "no key: always passes");
		return;
	}
	bytes_format(out, "%s%s%s", v->processor, *v->entry ? " " : "", v->entry);
	if (v->source)
		bytes_format(out, ", %s:%d", v->source, v->line);
	else
		bytes_add_text(out, ", default");
}

static void text_verdict(struct bytes *out, const struct explain_verdict *v)
{
	bytes_format(out, "  %8lu  ", v->count);
	explain_text_column(out, sites[v->site].name, 22);
	explain_text_column(out, v->what, 20);
	explain_text_column(out, v->key, 32);
	explain_text_rule(out, v);
	bytes_add_byte(out, '\n');
}

void explain_text_input(struct bytes *out, const struct explain_report *r)
{
	bytes_format(out, "in:  %s, ", r->format);
	if (r->documents > 1)
		bytes_format(out, "%zu requests, ", r->documents);
	bytes_format(out, "%zu bytes, %lu profiles, %lu samples\n", r->bytes, r->profiles,
		     r->samples);
}

static void text_output(struct bytes *out, const struct explain_way *way)
{
	if (way->profiles_out)
		bytes_format(out, "out: OTLP, %zu bytes, %lu profiles, %lu samples (%lu merged)\n",
			     way->bytes_out, way->profiles_out, way->samples_out,
			     way->samples_merged);
	else
		bytes_add_text(out, "out: nothing\n");
}

static void text_way(struct bytes *out, const struct explain_way *way)
{
	const struct explain_verdict **list = explain_sorted(&way->verdicts);
	bytes_format(out, "pipeline %s\n", way->name);
	if (*list)
		bytes_format(out, "  %8s  %-21s %-19s %-31s %s\n", "count", "site", "what", "key",
			     "rule");
	for (size_t i = 0; list[i]; i++)
		text_verdict(out, list[i]);
	text_output(out, way);
	memory_free(list);
}

/* ---- JSON */

void explain_json_text(struct bytes *out, const char *name, const char *text)
{
	bytes_format(out, "\"%s\":", name);
	quote_json(out, text, strlen(text));
}

void explain_json_place(struct bytes *out, const struct explain_verdict *v)
{
	explain_json_text(out, "site", sites[v->site].name);
	bytes_add_byte(out, ',');
	explain_json_text(out, "key", v->key);
	bytes_add_byte(out, ',');
	explain_json_text(out, "processor", v->processor);
	bytes_add_byte(out, ',');
	explain_json_text(out, "entry", v->entry);
	if (!v->source)
		return;
	bytes_add_byte(out, ',');
	explain_json_text(out, "source", v->source);
	bytes_format(out, ",\"line\":%d", v->line);
}

static void json_way(struct bytes *out, const struct explain_way *way)
{
	const struct explain_verdict **list = explain_sorted(&way->verdicts);
	bytes_add_byte(out, '{');
	explain_json_text(out, "pipeline", way->name);
	bytes_add_text(out, ",\"verdicts\":[");
	for (size_t i = 0; list[i]; i++) {
		bytes_add_text(out, i ? ",{" : "{");
		explain_json_text(out, "what", list[i]->what);
		bytes_add_byte(out, ',');
		explain_json_place(out, list[i]);
		bytes_format(out, ",\"count\":%lu}", list[i]->count);
	}
	bytes_format(
		out,
		"],\"output\":{\"bytes\":%zu,\"profiles\":%lu,\"samples\":%lu,\"merged\":%lu}}",
		way->bytes_out, way->profiles_out, way->samples_out, way->samples_merged);
	memory_free(list);
}

void explain_json_input(struct bytes *out, const struct explain_report *r)
{
	bytes_add_text(out, "{\"input\":{");
	explain_json_text(out, "format", r->format);
	bytes_format(
		out,
		",\"requests\":%zu,\"bytes\":%zu,\"profiles\":%lu,\"samples\":%lu},\"pipelines\":[",
		r->documents, r->bytes, r->profiles, r->samples);
}

void explain_text_end(struct bytes *out, bool more)
{
	if (more)
		bytes_add_text(out, "There are further ways through the pipelines, which are left "
				    "out.\n");
}

void explain_json_end(struct bytes *out, bool more)
{
	bytes_format(out, "],\"complete\":%s}\n", more ? "false" : "true");
}

void explain_report_print(const struct explain_report *r, bool json, struct bytes *out)
{
	(json ? explain_json_input : explain_text_input)(out, r);
	for (size_t i = 0; i < r->count; i++) {
		if (json && i)
			bytes_add_byte(out, ',');
		(json ? json_way : text_way)(out, &r->ways[i]);
	}
	(json ? explain_json_end : explain_text_end)(out, r->more);
}
