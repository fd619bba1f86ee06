/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/keyed_fields.h"

#include <assert.h>

static bool passes(const struct keyed_fields *f, enum site site, const char *key)
{
	return f->passes(f->context, site, view_of(key));
}

static void note(const struct keyed_fields *f, enum site site, struct view key)
{
	struct audit *audit = f->p->audit;
	if (audit)
		audit->note(audit, site, f->what, key, (struct audit_rule){ 0 });
}

static int64_t filter_profile_ids(const struct keyed_fields *f)
{
	struct profiles *p = f->p;
	int64_t removed = 0;
	if (passes(f, SITE_PROFILE, "profile_id"))
		return 0;
	for (uint32_t i = 0; i < p->profiles.count; i++) {
		struct profile *profile = &p->profiles.at[i];
		if (!profile->profile_id.len)
			continue;
		profile->profile_id = (struct span){ 0 };
		profile->changed = 1;
		removed++;
	}
	if (removed)
		note(f, SITE_PROFILE, view_of("profile_id"));
	return removed;
}

static int64_t filter_links(const struct keyed_fields *f)
{
	struct profiles *p = f->p;
	int64_t removed = 0;
	if (passes(f, SITE_LINK, "trace_id") && passes(f, SITE_LINK, "span_id"))
		return 0;
	for (uint32_t i = 0; i < p->samples.count; i++) {
		struct sample *sample = &p->samples.at[i];
		if (!sample->link)
			continue;
		sample->link = 0;
		sample->changed = 1;
		removed++;
	}
	if (removed) {
		note(f, SITE_LINK, view_of("trace_id"));
		note(f, SITE_LINK, view_of("span_id"));
	}
	return removed;
}

static bool entity_keys_pass(const struct keyed_fields *f, struct list keys)
{
	const struct profiles *p = f->p;
	for (uint32_t i = 0; i < keys.count; i++) {
		struct view key = string_view(p, p->indices.at[keys.first + i]);
		if (!f->passes(f->context, SITE_ENTITY, key)) {
			note(f, SITE_ENTITY, key);
			return false;
		}
	}
	return true;
}

static int64_t filter_entities(const struct keyed_fields *f)
{
	struct profiles *p = f->p;
	int64_t removed = 0;
	for (uint32_t i = 0; i < p->resources.count; i++) {
		struct resource *resource = &p->resources.at[i];
		struct list old = resource->entities;
		uint32_t kept = 0;
		for (uint32_t n = 0; n < old.count; n++) {
			struct entity entity = p->entities.at[old.first + n];
			if (entity.id_keys.count && entity_keys_pass(f, entity.id_keys) &&
			    entity_keys_pass(f, entity.description_keys))
				p->entities.at[old.first + kept++] = entity;
		}
		resource->entities.count = kept;
		resource->changed |= kept != old.count;
		removed += old.count - kept;
	}
	return removed;
}

int64_t keyed_fields_filter(const struct keyed_fields *fields, enum site site)
{
	switch (site) {
	case SITE_PROFILE:
		return filter_profile_ids(fields);
	case SITE_LINK:
		return filter_links(fields);
	case SITE_ENTITY:
		return filter_entities(fields);
	default:
		assert(!"a site with fields");
		return 0;
	}
}
