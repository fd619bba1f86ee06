/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/sample_types.h"

#include <string.h>

void sample_types_check(const struct strings *names, const char *key, struct faults *faults)
{
	for (size_t i = 0; i < names->count; i++) {
		const char *colon = strchr(names->at[i], ':');
		if (!*names->at[i] || colon == names->at[i] || (colon && strchr(colon + 1, ':')))
			faults_add(faults,
				   "%s[%zu]: must be a type, or a type and a unit as "
				   "`type:unit`",
				   key, i);
	}
}

static void check(const void *config, struct faults *faults)
{
	const struct sample_types_config *c = config;
	sample_types_check(&c->include, "include", faults);
	sample_types_check(&c->exclude, "exclude", faults);
}

static const struct config_row rows[] = {
	CONFIG_ROW(struct sample_types_config, include, .key = "include",
		   .help = "Sample types to keep, as `type` or `type:unit`. Empty: all."),
	CONFIG_ROW(struct sample_types_config, exclude, .key = "exclude",
		   .help = "Sample types to drop; overrides `include`."),
	{ 0 }
};

static const struct config_hint hints[] = { { "keep", .use = "include" },
					    { "drop", .use = "exclude" },
					    { 0 } };

const struct config_table sample_types_table = {
	.size = sizeof(struct sample_types_config), .hints = hints, .rows = rows, .check = check
};

static bool is_text(struct view v, const char *text, size_t len)
{
	return v.len == len && !memcmp(v.at, text, len);
}

bool sample_types_named(const struct strings *names, const struct profiles *p,
			const struct profile *profile)
{
	struct view type = string_view(p, profile->sample_type.type);
	struct view unit = string_view(p, profile->sample_type.unit);
	for (size_t i = 0; i < names->count; i++) {
		const char *name = names->at[i];
		size_t len = strcspn(name, ":");
		if (is_text(type, name, len) && (!name[len] || view_is(unit, name + len + 1)))
			return true;
	}
	return false;
}

const struct sample_types_config *sample_types_selects(const struct sample_types_config *c)
{
	return c->include.count || c->exclude.count ? c : NULL;
}

bool sample_types_pass(const struct sample_types_config *c, const struct profiles *p,
		       const struct profile *profile)
{
	return (!c->include.count || sample_types_named(&c->include, p, profile)) &&
	       !sample_types_named(&c->exclude, p, profile);
}
