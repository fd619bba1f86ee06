/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/request_limits.h"

static const struct metric exceeded_metric = {
	"otelcol_receiver_exceeded_limits", METRIC_COUNTER, "{documents}",
	"Documents that were rejected because they exceed a limit of service::limits, by limit."
};

const struct metric *const request_limits_metrics[] = { &exceeded_metric, NULL };

static const struct {
	const char *key, *what;
} names[LIMIT_KINDS] = {
	[LIMIT_DOCUMENTS] = { "max_documents", "documents in the request" },
	[LIMIT_RATIO] = { "max_decompression_ratio", "times its compressed size" },
	[LIMIT_PROFILES] = { "max_profiles", "Profiles" },
	[LIMIT_SAMPLES] = { "max_samples", "samples" },
	[LIMIT_STACK_DEPTH] = { "max_stack_depth", "locations in a stack" },
	[LIMIT_STRING_LENGTH] = { "max_string_length", "bytes in a string" },
	[LIMIT_TABLE_ENTRIES] = { "max_table_entries", "entries in a table" },
};

void request_limits_init(struct request_limiter *l, const struct request_limits *limits,
			 struct metrics *metrics, const char *receiver)
{
	l->limits = *limits;
	for (int i = 0; i < LIMIT_KINDS; i++) {
		const struct metric_label labels[] = { { "receiver", receiver },
						       { "limit", names[i].key },
						       { 0 } };
		l->exceeded[i] = metrics_series(metrics, &exceeded_metric, labels);
	}
}

static uint64_t limit_of(const struct request_limiter *l, enum limit_kind kind)
{
	const struct request_limits *r = &l->limits;
	const int64_t all[LIMIT_KINDS] = {
		[LIMIT_DOCUMENTS] = r->max_documents,
		[LIMIT_RATIO] = r->max_decompression_ratio,
		[LIMIT_PROFILES] = r->max_profiles,
		[LIMIT_SAMPLES] = r->max_samples,
		[LIMIT_STACK_DEPTH] = r->max_stack_depth,
		[LIMIT_STRING_LENGTH] = r->max_string_length,
		[LIMIT_TABLE_ENTRIES] = r->max_table_entries,
	};
	return all[kind] > 0 ? (uint64_t)all[kind] : UINT64_MAX;
}

bool request_limits_allows(const struct request_limiter *l, enum limit_kind kind, uint64_t observed,
			   struct error *err)
{
	uint64_t limit = limit_of(l, kind);
	if (observed <= limit)
		return true;
	if (l->exceeded[kind])
		metric_add(l->exceeded[kind], 1);
	return error_set(err, ERROR_TOO_LARGE, "%lu %s; service::limits::%s is %lu", observed,
			 names[kind].what, names[kind].key, limit);
}

static uint32_t longest_string(const struct profiles *p)
{
	uint32_t longest = 0;
	for (uint32_t i = 0; i < p->strings.count; i++)
		if (p->strings.at[i].text.len > longest)
			longest = p->strings.at[i].text.len;
	return longest;
}

static uint32_t deepest_stack(const struct profiles *p)
{
	uint32_t deepest = 0;
	for (uint32_t i = 0; i < p->stacks.count; i++)
		if (p->stacks.at[i].locations.count > deepest)
			deepest = p->stacks.at[i].locations.count;
	return deepest;
}

static uint32_t largest_table(const struct profiles *p)
{
	const uint32_t counts[] = { p->strings.count,  p->attributes.count, p->functions.count,
				    p->mappings.count, p->locations.count,  p->stacks.count,
				    p->links.count };
	uint32_t largest = 0;
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		if (counts[i] > largest)
			largest = counts[i];
	return largest;
}

bool request_limits_allows_tables(const struct request_limiter *l, const struct profiles *p,
				  struct error *err)
{
	return request_limits_allows(l, LIMIT_PROFILES, p->profiles.count, err) &&
	       request_limits_allows(l, LIMIT_SAMPLES, p->samples.count, err) &&
	       request_limits_allows(l, LIMIT_TABLE_ENTRIES, largest_table(p), err) &&
	       request_limits_allows(l, LIMIT_STRING_LENGTH, longest_string(p), err) &&
	       request_limits_allows(l, LIMIT_STACK_DEPTH, deepest_stack(p), err);
}

#define LIMIT_ROW(member, default_value, text) \
	CONFIG_ROW(struct request_limits, member, .key = #member, .def = default_value, \
		   .limited = true, .min = 0, .max = UINT32_MAX, .help = text)

static const struct config_row rows[] = {
	LIMIT_ROW(
		max_documents, "10000",
		"Documents in a request: profiles in a push or WriteRaw request. Further ones are "
		"rejected. 0, here and below: no limit."),
	LIMIT_ROW(max_decompression_ratio, "1000",
		  "A body or document that decompresses to more than 1 MiB may not be this many "
		  "times larger than it was sent."),
	LIMIT_ROW(max_profiles, "100000", "Profiles in a document."),
	LIMIT_ROW(max_samples, "10000000", "Samples in a document."),
	LIMIT_ROW(max_table_entries, "10000000",
		  "Entries in one table of a document: strings, attributes, functions, mappings, "
		  "locations, stacks, links."),
	LIMIT_ROW(max_string_length, "1048576", "Bytes in a string."),
	LIMIT_ROW(max_stack_depth, "65536", "Locations in a stack."),
	{ 0 }
};

const struct config_table request_limits_table = { sizeof(struct request_limits), rows };
