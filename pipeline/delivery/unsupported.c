/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/unsupported.h"

#include "profile/pprof/encode_pprof.h"
#include "profile/pprof/pprof.h"

static const char *const words[UNSUPPORTED_KINDS] = {
	[UNSUPPORTED_TIMESTAMP] = "timestamp",
	[UNSUPPORTED_NEGATIVE] = "negative",
	[UNSUPPORTED_ZERO] = "zero",
	[UNSUPPORTED_EMPTY_STACK] = "empty_stack",
	[UNSUPPORTED_ADDRESS] = "address",
	[UNSUPPORTED_COLUMN] = "column",
	[UNSUPPORTED_DOC_URL] = "doc_url",
	[UNSUPPORTED_PERIOD] = "period",
	[UNSUPPORTED_PROFILE_ID] = "profile_id",
	[UNSUPPORTED_SCOPE] = "scope",
	[UNSUPPORTED_RESOURCE_ATTRIBUTE] = "resource_attribute",
	[UNSUPPORTED_SCOPE_ATTRIBUTE] = "scope_attribute",
	[UNSUPPORTED_PROFILE_ATTRIBUTE] = "profile_attribute",
	[UNSUPPORTED_MAPPING_ATTRIBUTE] = "mapping_attribute",
	[UNSUPPORTED_LOCATION_ATTRIBUTE] = "location_attribute",
};

const struct metric unsupported_metric = {
	"otelcol_exporter_unsupported_items", METRIC_COUNTER, "{items}",
	"Items of profiles that are unsupported by the destination, by kind."
};

void unsupported_init(struct unsupported *n, uint32_t kinds, struct metrics *metrics,
		      const char *exporter)
{
	for (unsigned i = 0; i < UNSUPPORTED_KINDS; i++)
		if (kinds >> i & 1)
			n->series[i] = metrics_series(metrics, &unsupported_metric,
						      (const struct metric_label[]){
							      { "exporter", exporter },
							      { "kind", words[i] },
							      { 0 } });
}

/* Which attributes the encoder has a field for (profile/pprof/encode_pprof.c), by the type of their
 * values. */
struct fields {
	uint32_t bools, strings, arrays; /* bits by enum pprof_key */
};

#define KEY(name) (1u << PPROF_KEY_##name)

static const struct fields no_fields;
static const struct fields mapping_fields = {
	.bools = KEY(HAS_FUNCTIONS) | KEY(HAS_FILENAMES) | KEY(HAS_LINE_NUMBERS) |
		 KEY(HAS_INLINE_FRAMES) | KEY(IS_MAIN),
	.strings = KEY(BUILD_ID_GNU) | KEY(BUILD_ID_HTLHASH) | KEY(BUILD_ID_GO),
};
static const struct fields location_fields = { .bools = KEY(IS_FOLDED) };
static const struct fields profile_fields = { .strings = KEY(COMMENT) | KEY(DROP_FRAMES) |
							 KEY(KEEP_FRAMES) | KEY(DOC_URL),
					      .arrays = KEY(COMMENT) };
static const struct fields scope_fields = { .strings = KEY(DEFAULT_SAMPLE_TYPE),
					    .arrays = KEY(SAMPLE_TYPE_ORDER) };

static uint32_t keys_of_type(const struct fields *fields, enum value_type type)
{
	return type == VALUE_BOOL     ? fields->bools
	       : type == VALUE_STRING ? fields->strings
	       : type == VALUE_ARRAY  ? fields->arrays
				      : 0;
}

static uint32_t key_bit(const struct profiles *p, const struct attribute *a)
{
	return 1u << pprof_key_of(string_view(p, a->key));
}

/* The bits of the keys that have a field; *others: how many attributes have none. */
static uint32_t look_at_attributes(const struct profiles *p, struct list attributes,
				   const struct fields *fields, uint64_t *others)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < attributes.count; i++) {
		const struct attribute *a = &p->attributes.at[p->indices.at[attributes.first + i]];
		uint32_t bit = keys_of_type(fields, a->type) & key_bit(p, a);
		kept |= bit;
		*others += !bit;
	}
	return kept;
}

static void look_at_samples(const struct profiles *p, uint64_t counts[])
{
	for (uint32_t i = 0; i < p->samples.count; i++) {
		const struct sample *sample = &p->samples.at[i];
		int64_t value = (int64_t)encode_pprof_value(p, sample);
		counts[UNSUPPORTED_TIMESTAMP] += sample->timestamps.len / 8;
		counts[UNSUPPORTED_NEGATIVE] += value < 0;
		counts[UNSUPPORTED_ZERO] += value == 0;
		counts[UNSUPPORTED_EMPTY_STACK] += !p->stacks.at[sample->stack].locations.count;
	}
}

static void look_at_frames(const struct profiles *p, uint64_t counts[])
{
	for (uint32_t i = 0; i < p->lines.count; i++)
		counts[UNSUPPORTED_COLUMN] += p->lines.at[i].column != 0;
	for (uint32_t i = 1; i < p->locations.count; i++) {
		counts[UNSUPPORTED_ADDRESS] +=
			p->locations.at[i].address && p->locations.at[i].lines.count;
		look_at_attributes(p, p->locations.at[i].attributes, &location_fields,
				   &counts[UNSUPPORTED_LOCATION_ATTRIBUTE]);
	}
	for (uint32_t i = 1; i < p->mappings.count; i++) {
		uint64_t *others = &counts[UNSUPPORTED_MAPPING_ATTRIBUTE];
		uint32_t kept = look_at_attributes(p, p->mappings.at[i].attributes, &mapping_fields,
						   others);
		int build_ids = __builtin_popcount(kept & mapping_fields.strings);
		/* there is one field for them */
		*others += build_ids > 1 ? (uint64_t)build_ids - 1 : 0;
	}
}

static void look_at_profile(const struct profiles *p, const struct profile *profile,
			    uint64_t counts[])
{
	uint32_t kept = look_at_attributes(p, profile->attributes, &profile_fields,
					   &counts[UNSUPPORTED_PROFILE_ATTRIBUTE]);
	counts[UNSUPPORTED_DOC_URL] += (kept & KEY(DOC_URL)) != 0;
	counts[UNSUPPORTED_PERIOD] += profile->period != 0;
	counts[UNSUPPORTED_PROFILE_ID] += profile->profile_id.len != 0;
}

static void look_at_owners(const struct profiles *p, uint64_t counts[])
{
	for (uint32_t i = 0; i < p->profiles.count; i++)
		look_at_profile(p, &p->profiles.at[i], counts);
	for (uint32_t i = 0; i < p->scopes.count; i++) {
		counts[UNSUPPORTED_SCOPE] += p->scopes.at[i].name || p->scopes.at[i].version;
		look_at_attributes(p, p->scopes.at[i].attributes, &scope_fields,
				   &counts[UNSUPPORTED_SCOPE_ATTRIBUTE]);
	}
	for (uint32_t i = 0; i < p->resources.count; i++)
		look_at_attributes(p, p->resources.at[i].attributes, &no_fields,
				   &counts[UNSUPPORTED_RESOURCE_ATTRIBUTE]);
}

void unsupported_look(const struct profiles *p, struct unsupported_counts *counts)
{
	*counts = (struct unsupported_counts){ 0 };
	look_at_samples(p, counts->at);
	look_at_frames(p, counts->at);
	look_at_owners(p, counts->at);
}

void unsupported_count(const struct unsupported *n, const struct unsupported_counts *counts)
{
	for (unsigned i = 0; i < UNSUPPORTED_KINDS; i++)
		if (n->series[i] && counts->at[i])
			metric_add(n->series[i], (int64_t)counts->at[i]);
}
