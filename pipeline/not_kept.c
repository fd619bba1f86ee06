/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/not_kept.h"

#include "profile/encode_pprof.h"
#include "profile/pprof.h"

static const char *const words[NOT_KEPT_KINDS] = {
	[NOT_KEPT_TIMESTAMP] = "timestamp",
	[NOT_KEPT_NEGATIVE] = "negative",
	[NOT_KEPT_ZERO] = "zero",
	[NOT_KEPT_ADDRESS] = "address",
	[NOT_KEPT_COLUMN] = "column",
	[NOT_KEPT_DOC_URL] = "doc_url",
	[NOT_KEPT_PERIOD] = "period",
	[NOT_KEPT_PROFILE_ID] = "profile_id",
	[NOT_KEPT_SCOPE] = "scope",
	[NOT_KEPT_RESOURCE_ATTRIBUTE] = "resource_attribute",
	[NOT_KEPT_SCOPE_ATTRIBUTE] = "scope_attribute",
	[NOT_KEPT_PROFILE_ATTRIBUTE] = "profile_attribute",
	[NOT_KEPT_MAPPING_ATTRIBUTE] = "mapping_attribute",
	[NOT_KEPT_LOCATION_ATTRIBUTE] = "location_attribute",
};

const struct metric not_kept_metric = {
	"otelcol_exporter_not_kept", METRIC_COUNTER, "{items}",
	"What profiles had and the destination has no place for, by what it is."
};

void not_kept_init(struct not_kept *n, uint32_t kinds, struct metrics *metrics, const char *exporter)
{
	for (unsigned i = 0; i < NOT_KEPT_KINDS; i++)
		if (kinds >> i & 1)
			n->series[i] = metrics_series(metrics, &not_kept_metric, (const struct metric_label[]){
				{ "exporter", exporter }, { "what", words[i] }, { 0 } });
}

/* PPROF_KEY_COUNT: those that pprof has no field for. */
static uint64_t count_key(const struct profiles *p, struct list attributes, enum pprof_key key)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < attributes.count; i++)
		count += pprof_key_of(string_view(p, p->attributes.at[p->indices.at[attributes.first + i]].key)) == key;
	return count;
}

static uint64_t others(const struct profiles *p, struct list attributes)
{
	return count_key(p, attributes, PPROF_KEY_COUNT);
}

static void look_at_samples(const struct profiles *p, uint64_t counts[])
{
	for (uint32_t i = 0; i < p->samples.count; i++) {
		const struct sample *sample = &p->samples.at[i];
		int64_t value = (int64_t)encode_pprof_value(p, sample);
		counts[NOT_KEPT_TIMESTAMP] += sample->timestamps.len / 8;
		counts[NOT_KEPT_NEGATIVE] += value < 0;
		counts[NOT_KEPT_ZERO] += value == 0;
	}
}

static void look_at_frames(const struct profiles *p, uint64_t counts[])
{
	for (uint32_t i = 0; i < p->lines.count; i++)
		counts[NOT_KEPT_COLUMN] += p->lines.at[i].column != 0;
	for (uint32_t i = 1; i < p->locations.count; i++) {
		counts[NOT_KEPT_ADDRESS] += p->locations.at[i].address && p->locations.at[i].lines.count;
		counts[NOT_KEPT_LOCATION_ATTRIBUTE] += others(p, p->locations.at[i].attributes);
	}
	for (uint32_t i = 1; i < p->mappings.count; i++)
		counts[NOT_KEPT_MAPPING_ATTRIBUTE] += others(p, p->mappings.at[i].attributes);
}

static void look_at_owners(const struct profiles *p, uint64_t counts[])
{
	for (uint32_t i = 0; i < p->profiles.count; i++) {
		const struct profile *profile = &p->profiles.at[i];
		counts[NOT_KEPT_DOC_URL] += count_key(p, profile->attributes, PPROF_KEY_DOC_URL);
		counts[NOT_KEPT_PERIOD] += profile->period != 0;
		counts[NOT_KEPT_PROFILE_ID] += profile->profile_id.len != 0;
		counts[NOT_KEPT_PROFILE_ATTRIBUTE] += others(p, profile->attributes);
	}
	for (uint32_t i = 0; i < p->scopes.count; i++) {
		counts[NOT_KEPT_SCOPE] += p->scopes.at[i].name || p->scopes.at[i].version;
		counts[NOT_KEPT_SCOPE_ATTRIBUTE] += others(p, p->scopes.at[i].attributes);
	}
	for (uint32_t i = 0; i < p->resources.count; i++)
		counts[NOT_KEPT_RESOURCE_ATTRIBUTE] += others(p, p->resources.at[i].attributes);
}

void not_kept_count(const struct not_kept *n, const struct profiles *p)
{
	uint64_t counts[NOT_KEPT_KINDS] = { 0 };
	look_at_samples(p, counts);
	look_at_frames(p, counts);
	look_at_owners(p, counts);
	for (unsigned i = 0; i < NOT_KEPT_KINDS; i++)
		if (n->series[i] && counts[i])
			series_add(n->series[i], (int64_t)counts[i]);
}
