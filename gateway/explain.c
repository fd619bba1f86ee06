/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/commands.h"

#include "base/clock.h"
#include "base/memory.h"
#include "gateway/explain_input.h"
#include "gateway/explain_report.h"
#include "gateway/service.h"
#include "pipeline/graph/ways.h"
#include "profile/collect/collect.h"
#include "profile/otlp/decode_otlp.h"

#include <string.h>

/*
 * `portcullis explain`: what the policy of each pipeline does to the profiles in a file. It runs on
 * the operator's own terminal, so it may name keys; values are never printed. Further arguments
 * NAME=VALUE are resource attributes, as the pprof receiver takes them from the query.
 */
#define PACKET_MAX ((size_t)1 << 30)

/* One way, for all documents. */
struct passage {
	const struct ways *ways;
	uint32_t way;
	const struct explain_input *input;
	const struct metadatum *attributes;
	struct explain_report *report;
	struct collect *collect;
};

static bool pass_document(struct passage *x, const struct explain_document *document,
			  struct profiles *p, struct error *err)
{
	struct request request = { .receiver = "explain",
				   .transport = TRANSPORT_FILE,
				   .arrival = clock_now() };
	struct explain_report *r = x->report;
	struct collect_added added = { 0 };
	if (!explain_input_decode(document, p, &request, x->attributes, err))
		return false;
	if (!x->way) {
		r->profiles += p->profiles.count;
		r->samples += p->samples.count;
	}
	p->audit = &r->audit;
	if (!ways_run(x->ways, x->way, p, err) ||
	    collect_add(x->collect, p, false, &added, err) == COLLECT_FAILED)
		return false;
	r->ways[r->count - 1].samples_merged += added.samples_merged;
	return true;
}

static bool seal(struct passage *x, struct profiles *p, struct error *err)
{
	struct explain_way *way = &x->report->ways[x->report->count - 1];
	if (collect_empty(x->collect))
		return true;
	struct packet *packet = collect_seal(x->collect);
	way->bytes_out = packet->otlp.len;
	way->profiles_out = packet->profiles;
	way->samples_out = packet->samples;
	bool ok = profiles_reset(p, NULL, bytes_view(&packet->otlp), PACKET_MAX)
			  ? decode_otlp(p, err)
			  : profiles_over_cap(p, err);
	if (ok)
		explain_report_leaves(x->report, p);
	packet_unref(&packet);
	return ok;
}

static bool pass(struct passage *x, struct error *err)
{
	const struct collect_limits limits = { .max_bytes = PACKET_MAX, .hard_bytes = PACKET_MAX };
	struct profiles p = { 0 };
	struct bytes name;
	bool ok = true;
	bytes_init(&name, SIZE_MAX / 2);
	ways_name(x->ways, x->way, &name);
	explain_report_begin(x->report, memory_text_of(name.at, name.len));
	bytes_fini(&name);
	x->collect = collect_new(&limits);
	for (size_t i = 0; i < x->input->count && ok; i++)
		ok = pass_document(x, &x->input->at[i], &p, err);
	ok = ok && seal(x, &p, err);
	collect_unref(&x->collect);
	profiles_fini(&p);
	return ok;
}

/* All ways of one configuration. */
static bool explain(const struct options *options, const struct explain_input *input,
		    const struct metadatum *attributes, struct explain_report *report,
		    struct error *err)
{
	struct service service;
	explain_report_init(report);
	report->format = input->format;
	report->documents = input->count;
	report->bytes = input->bytes;
	bool ok = service_open(&service, options, err);
	if (ok) {
		struct ways ways;
		ways_init(&ways, service.reload.running->graph);
		report->more = ways.more;
		report->processors = node_get(service.root, "processors");
		for (uint32_t i = 0; i < ways.count && ok; i++)
			ok = pass(&(struct passage){ .ways = &ways,
						     .way = i,
						     .input = input,
						     .attributes = attributes,
						     .report = report },
				  err);
		report->processors = NULL;
		ways_fini(&ways);
	}
	service_close(&service);
	return ok;
}

static bool explain_one(const struct options *options, const struct explain_input *input,
			const struct metadatum *attributes, bool json, struct error *err)
{
	struct explain_report report;
	struct bytes out;
	bytes_init(&out, SIZE_MAX / 2);
	bool ok = explain(options, input, attributes, &report, err);
	if (ok)
		explain_report_print(&report, json, &out);
	command_print(&out);
	explain_report_fini(&report);
	return ok;
}

static bool explain_both(const struct options *options, const struct explain_input *input,
			 const struct metadatum *attributes, bool json, struct error *err)
{
	struct explain_report first, second;
	struct options other = *options;
	struct bytes out;
	bytes_init(&out, SIZE_MAX / 2);
	other.configs = options->compares;
	explain_report_init(&second);
	bool ok = explain(options, input, attributes, &first, err) &&
		  explain(&other, input, attributes, &second, err);
	if (ok)
		explain_report_compare(&first, &second, json, &out);
	command_print(&out);
	explain_report_fini(&first);
	explain_report_fini(&second);
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
	struct explain_input input = { 0 };
	bool json = options->format && !strcmp(options->format, "json");
	if (!options->arguments)
		return error_set(err, ERROR_CONFIG, "explain requires the path of a profile");
	if (!check_attributes(options->arguments + 1, err))
		return false;
	struct metadatum *attributes = read_attributes(options->arguments + 1);
	bool ok = explain_input_read(&input, options->arguments[0], err) &&
		  (options->compares ? explain_both : explain_one)(options, &input, attributes,
								   json, err);
	explain_input_fini(&input);
	for (struct metadatum *a = attributes; a->name; a++)
		memory_free((char *)a->name);
	memory_free(attributes);
	return ok;
}
