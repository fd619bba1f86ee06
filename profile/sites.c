/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/sites.h"

#include <assert.h>
#include <string.h>

const char *const site_role_names[ROLE_COUNT] = {
	[ROLE_KEY] = "key",           [ROLE_VALUE] = "value",   [ROLE_UNIT] = "unit",
	[ROLE_SCOPE] = "scope",       [ROLE_SCHEMA] = "schema", [ROLE_ENTITY] = "entity",
	[ROLE_FUNCTION] = "function", [ROLE_FILE] = "file",     [ROLE_MAPPING] = "mapping",
	[ROLE_TYPE] = "type",
};

const struct site_info sites[SITE_COUNT] = {
	[SITE_NONE] = { "none", ROLE_COUNT, false, "", "no site" },
	[SITE_RESOURCE] = { "resource", ROLE_KEY, true, "Resource.attributes",
			    "attributes of the resource" },
	[SITE_SCOPE] = { "scope", ROLE_KEY, true, "InstrumentationScope.attributes",
			 "attributes of the scope" },
	[SITE_PROFILE] = { "profile", ROLE_KEY, true,
			   "Profile.attribute_indices Profile.profile_id",
			   "attributes of a Profile; its ID, as the key profile_id; pprof "
			   "comments, drop and keep frames, doc_url" },
	[SITE_SAMPLE] = { "sample", ROLE_KEY, true, "Sample.attribute_indices",
			  "attributes of a sample; pprof labels" },
	[SITE_LOCATION] = { "location", ROLE_KEY, true, "Location.attribute_indices",
			    "attributes of a location" },
	[SITE_MAPPING] = { "mapping", ROLE_KEY, true, "Mapping.attribute_indices",
			   "attributes of a mapping" },
	[SITE_LINK] = { "link", ROLE_KEY, true, "Link.trace_id Link.span_id",
			"trace and span of a sample, as the keys trace_id and span_id" },
	[SITE_ENTITY] = { "entity", ROLE_KEY, true, "EntityRef.id_keys EntityRef.description_keys",
			  "keys that an entity reference of the resource names" },
	[SITE_SCOPE_NAME] = { "scope.name", ROLE_SCOPE, false, "InstrumentationScope.name",
			      "name of the scope" },
	[SITE_SCOPE_VERSION] = { "scope.version", ROLE_SCOPE, false, "InstrumentationScope.version",
				 "version of the scope" },
	[SITE_RESOURCE_SCHEMA_URL] = { "resource.schema_url", ROLE_SCHEMA, false,
				       "ResourceProfiles.schema_url",
				       "schema URL of the resource" },
	[SITE_SCOPE_SCHEMA_URL] = { "scope.schema_url", ROLE_SCHEMA, false,
				    "ScopeProfiles.schema_url", "schema URL of the scope" },
	[SITE_ENTITY_SCHEMA_URL] = { "entity.schema_url", ROLE_SCHEMA, false,
				     "EntityRef.schema_url", "schema URL of an entity reference" },
	[SITE_ENTITY_TYPE] = { "entity.type", ROLE_ENTITY, false, "EntityRef.type",
			       "type of an entity reference" },
	[SITE_FUNCTION_NAME] = { "function.name", ROLE_FUNCTION, false, "Function.name_strindex",
				 "name of a function" },
	[SITE_FUNCTION_SYSTEM_NAME] = { "function.system_name", ROLE_FUNCTION, false,
					"Function.system_name_strindex",
					"linker name of a function" },
	[SITE_FUNCTION_FILENAME] = { "function.filename", ROLE_FILE, false,
				     "Function.filename_strindex", "source file of a function" },
	[SITE_MAPPING_FILENAME] = { "mapping.filename", ROLE_MAPPING, false,
				    "Mapping.filename_strindex", "file of a mapping" },
	[SITE_SAMPLE_TYPE] = { "sample_type.type", ROLE_TYPE, false,
			       "Profile.sample_type.type_strindex", "type of a Profile's values" },
	[SITE_SAMPLE_UNIT] = { "sample_type.unit", ROLE_TYPE, false,
			       "Profile.sample_type.unit_strindex", "unit of a Profile's values" },
	[SITE_PERIOD_TYPE] = { "period_type.type", ROLE_TYPE, false,
			       "Profile.period_type.type_strindex", "type of a Profile's period" },
	[SITE_PERIOD_UNIT] = { "period_type.unit", ROLE_TYPE, false,
			       "Profile.period_type.unit_strindex", "unit of a Profile's period" },
};

const char sites_attribute_fields[] =
	"KeyValue.key KeyValue.key_strindex KeyValueAndUnit.key_strindex "
	"KeyValueAndUnit.unit_strindex AnyValue.string_value AnyValue.bytes_value "
	"AnyValue.string_value_strindex";

const char *const sites_open_fields[] = {
	"Profile.time_unix_nano",
	"Profile.duration_nano",
	"Profile.period",
	"Sample.values",
	"Sample.timestamps_unix_nano",
	"Mapping.memory_start",
	"Mapping.memory_limit",
	"Mapping.file_offset",
	"Location.address",
	"Line.line",
	"Line.column",
	"Function.start_line",
	"Resource.dropped_attributes_count",
	"InstrumentationScope.dropped_attributes_count",
	"Profile.dropped_attributes_count",
	NULL,
};

enum site site_find(const char *name)
{
	for (enum site site = SITE_NONE + 1; site < SITE_COUNT; site++)
		if (strcmp(sites[site].name, name) == 0)
			return site;
	return SITE_NONE;
}

static bool leaves(const struct profile *profile)
{
	return !profile->dropped && !profile->fault;
}

typedef void visit_list(struct profiles *p, struct list *list, uint8_t *changed, void *context);
typedef void visit_text(struct profiles *p, uint32_t *string, uint8_t *changed, void *context);

static void each_sample_list(struct profiles *p, visit_list *visit, void *context)
{
	for (uint32_t i = 0; i < p->profiles.count; i++) {
		const struct profile *profile = &p->profiles.at[i];
		if (!leaves(profile))
			continue;
		struct sample *sample = p->samples.at + profile->samples.first;
		for (uint32_t n = profile->samples.count; n; n--, sample++)
			if (sample->attributes.count)
				visit(p, &sample->attributes, &sample->changed, context);
	}
}

/* The lists (or texts) of all entries of a table, from `from` on. The table itself stays where it
 * is. */
#define EACH(table, from) \
	for (__typeof__(p->table.at) entry = p->table.at + (from), \
				     end = p->table.at + p->table.count; \
	     entry < end; entry++)
#define EACH_LIST(table, from, condition) \
	EACH(table, from) \
	if (entry->attributes.count && (condition)) \
	visit(p, &entry->attributes, &entry->changed, context)
#define EACH_TEXT(table, from, member) \
	EACH(table, from) \
	if (is_open(settled, entry->member)) \
	visit(p, &entry->member, &entry->changed, context)

static inline bool is_open(struct sites_settled settled, uint32_t text)
{
	return text && !(text < settled.count && settled.at[text] == text + 1);
}

void sites_each_list(struct profiles *p, enum site site, visit_list *visit, void *context)
{
	switch (site) {
	case SITE_RESOURCE:
		EACH_LIST(resources, 0, true);
		break;
	case SITE_SCOPE:
		EACH_LIST(scopes, 0, true);
		break;
	case SITE_PROFILE:
		EACH_LIST(profiles, 0, leaves(entry));
		break;
	case SITE_SAMPLE:
		each_sample_list(p, visit, context);
		break;
	case SITE_LOCATION:
		EACH_LIST(locations, 1, true);
		break;
	case SITE_MAPPING:
		EACH_LIST(mappings, 1, true);
		break;
	default:
		assert(!"a site with lists");
	}
}

static void each_entity_text(struct profiles *p, enum site site, struct sites_settled settled,
			     visit_text *visit, void *context)
{
	for (uint32_t r = 0; r < p->resources.count; r++) {
		struct resource *resource = &p->resources.at[r];
		struct entity *entity = p->entities.at + resource->entities.first;
		for (uint32_t n = resource->entities.count; n; n--, entity++) {
			uint32_t *text =
				site == SITE_ENTITY_TYPE ? &entity->type : &entity->schema_url;
			if (is_open(settled, *text))
				visit(p, text, &resource->changed, context);
		}
	}
}

static void each_profile_text(struct profiles *p, enum site site, struct sites_settled settled,
			      visit_text *visit, void *context)
{
	for (uint32_t i = 0; i < p->profiles.count; i++) {
		struct profile *profile = &p->profiles.at[i];
		if (!leaves(profile))
			continue;
		struct value_kind *kind = site == SITE_SAMPLE_TYPE || site == SITE_SAMPLE_UNIT
						  ? &profile->sample_type
						  : &profile->period_type;
		uint32_t *text = site == SITE_SAMPLE_TYPE || site == SITE_PERIOD_TYPE ? &kind->type
										      : &kind->unit;
		if (is_open(settled, *text))
			visit(p, text, &profile->changed, context);
	}
}

void sites_each_text(struct profiles *p, enum site site, struct sites_settled settled,
		     visit_text *visit, void *context)
{
	switch (site) {
	case SITE_SCOPE_NAME:
		EACH_TEXT(scopes, 0, name);
		break;
	case SITE_SCOPE_VERSION:
		EACH_TEXT(scopes, 0, version);
		break;
	case SITE_RESOURCE_SCHEMA_URL:
		EACH_TEXT(resources, 0, schema_url);
		break;
	case SITE_SCOPE_SCHEMA_URL:
		EACH_TEXT(scopes, 0, schema_url);
		break;
	case SITE_FUNCTION_NAME:
		EACH_TEXT(functions, 1, name);
		break;
	case SITE_FUNCTION_SYSTEM_NAME:
		EACH_TEXT(functions, 1, system_name);
		break;
	case SITE_FUNCTION_FILENAME:
		EACH_TEXT(functions, 1, filename);
		break;
	case SITE_MAPPING_FILENAME:
		EACH_TEXT(mappings, 1, filename);
		break;
	case SITE_ENTITY_SCHEMA_URL:
	case SITE_ENTITY_TYPE:
		each_entity_text(p, site, settled, visit, context);
		break;
	case SITE_SAMPLE_TYPE:
	case SITE_SAMPLE_UNIT:
	case SITE_PERIOD_TYPE:
	case SITE_PERIOD_UNIT:
		each_profile_text(p, site, settled, visit, context);
		break;
	default:
		assert(!"a site with strings");
	}
}
