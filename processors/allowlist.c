/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "pipeline/component.h"
#include "processors/key_rules.h"
#include "processors/keyed_fields.h"
#include "processors/structural.h"
#include "processors/value.h"
#include "profile/sites.h"
#include "profile/value_text.h"

#include <stddef.h>

/*
 * Deny by default: an attribute stays only if its key is permitted at its site, and inside maps
 * each nested key likewise.
 *
 * A verdict is made once per (attribute of the tables, site) and request, so the cost follows the
 * dictionary and not the samples.
 */
struct allowlist_config {
	struct key_rules_config keys;
	char *overflow_value;
	struct choice structural;
};

enum { STRUCTURAL_ALLOW, STRUCTURAL_DENY };

struct allowlist {
	struct key_rules keys;
	const char *overflow_value;
	bool structural;
	struct metric_series *denied[SITE_ENTITY + 1], *overflowed[SITE_ENTITY + 1];
};

struct allowlist_scratch {
	struct key_rules_cache cache;
	struct value_memo memo;
};

static const struct metric denied_metric = {
	"otelcol_processor_allowlist_denied_attributes", METRIC_COUNTER, "{attributes}",
	"Attributes removed, by site. An attribute counts once for each record that used it."
};
static const struct metric overflowed_metric = {
	"otelcol_processor_allowlist_overflowed_values", METRIC_COUNTER, "{values}",
	"Values replaced by overflow_value, by site. A value counts once for each entry of the "
	"request's tables."
};
static const struct metric *const metrics[] = { &denied_metric, &overflowed_metric, NULL };

/* One walk over one site. */
struct pass {
	const struct allowlist *self;
	struct allowlist_scratch *scratch;
	struct profiles *p;
	enum site site;
	uint32_t overflow; /* the string, once it is made */
	int64_t denied, overflowed;
};

static void note(struct pass *pass, const char *what, struct view key, struct audit_rule rule)
{
	struct audit *audit = pass->p->audit;
	if (audit)
		audit->note(audit, pass->site, what, key, rule);
}

/* Nothing permits it. */
static void note_denied(struct pass *pass, struct view key)
{
	note(pass, "denied", key, (struct audit_rule){ 0 });
}

static void note_permitted(struct pass *pass, struct view key)
{
	struct audit *audit = pass->p->audit;
	if (audit)
		audit->permit(audit, pass->site, key,
			      key_rules_rule(&pass->self->keys, &pass->scratch->cache, pass->site,
					     key));
}

static void note_structural(struct pass *pass, struct view key)
{
	struct audit *audit = pass->p->audit;
	if (audit)
		audit->permit(audit, pass->site, key, (struct audit_rule){ .row = "structural" });
}

/* Is the key permitted at the site; which values may it have? */
static bool key_passes(struct pass *pass, const struct attribute *a, uint16_t *values)
{
	struct view key = string_view(pass->p, a->key);
	struct key_rules_verdict v =
		key_rules_verdict(&pass->self->keys, &pass->scratch->cache, key);
	*values = v.values;
	if (a->bad_key || !(v.sites >> pass->site & 1))
		return false;
	note_permitted(pass, key);
	return true;
}

/* The unit too: it could hold anything. */
static bool value_passes(const struct pass *pass, const struct attribute *a, uint16_t values)
{
	char room[VALUE_TEXT_ROOM];
	struct view text, unit = string_view(pass->p, a->unit);
	if (!values)
		return true;
	if (unit.len && !key_rules_value_listed(&pass->self->keys, values, unit))
		return false;
	if (value_text_scalar(pass->p, a, room, &text))
		return key_rules_value_listed(&pass->self->keys, values, text);
	if (a->type != VALUE_ARRAY)
		return false;
	for (uint32_t i = 0; i < a->children.count; i++)
		if (!value_passes(pass, &pass->p->attributes.at[a->children.first + i], values))
			return false;
	return true;
}

static void overflow(struct pass *pass, struct attribute *a, uint16_t values)
{
	note(pass, "overflowed", string_view(pass->p, a->key),
	     (struct audit_rule){ .row = "values",
				  .name = key_rules_values_key(&pass->self->keys, values) });
	pass->overflowed++;
	const char *text = pass->self->overflow_value;
	if (!pass->overflow)
		pass->overflow = profiles_text_new(pass->p, text, strlen(text));
	*a = (struct attribute){
		.key = a->key, .type = VALUE_STRING, .changed = 1, .string = pass->overflow
	};
}

static enum value_change filter_nested(void *context, bool keyed, struct attribute *child)
{
	struct pass *pass = context;
	uint16_t values;
	if (!keyed)
		return VALUE_SAME;
	if (!key_passes(pass, child, &values)) {
		note_denied(pass, string_view(pass->p, child->key));
		pass->denied++;
		return VALUE_REMOVED;
	}
	if (value_passes(pass, child, values))
		return VALUE_SAME;
	overflow(pass, child, values);
	return VALUE_CHANGED;
}

/* The attribute that may stay in place of this one; 0: none. */
static uint32_t filter(struct pass *pass, uint32_t index, const struct scope *scope)
{
	struct profiles *p = pass->p;
	struct attribute a = p->attributes.at[index];
	uint16_t values;
	if (!key_passes(pass, &a, &values)) {
		if (pass->self->structural && structural_passes(p, pass->site, &a, scope) &&
		    value_passes(pass, &a, values)) {
			note_structural(pass, string_view(p, a.key));
			return index;
		}
		note_denied(pass, string_view(p, a.key));
		return 0;
	}
	if (!value_passes(pass, &a, values)) {
		overflow(pass, &a, values);
		return profiles_attribute_new(p, a);
	}
	if (!value_is_nested(&a))
		return index;
	struct list inner = value_rewrite(p, &a, filter_nested, pass);
	if (inner.first == a.children.first && inner.count == a.children.count)
		return index;
	a.children = inner;
	a.changed = 1;
	return profiles_attribute_new(p, a);
}

/* A scope's structural attributes depend on the scope, so nothing is remembered there. */
static uint32_t filter_once(struct pass *pass, uint32_t index, const struct list *list)
{
	if (pass->site == SITE_SCOPE) {
		const char *at = (const char *)list - offsetof(struct scope, attributes);
		return filter(pass, index, (const struct scope *)at);
	}
	uint32_t fresh = 0, *memo = value_memo_at(&pass->scratch->memo, index, &fresh);
	if (!*memo)
		*memo = filter(pass, index, NULL) + 1;
	return *memo - 1;
}

static void filter_list(struct profiles *p, struct list *list, uint8_t *changed, void *context)
{
	struct pass *pass = context;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < list->count; i++) {
		uint32_t index = p->indices.at[list->first + i];
		uint32_t stays = index ? filter_once(pass, index, list) : 0;
		if (stays != index)
			*changed = 1;
		if (stays)
			p->indices.at[list->first + kept++] = stays;
		else if (index)
			pass->denied++;
	}
	list->count = kept;
}

static void finish(struct pass *pass)
{
	if (pass->denied)
		metric_add(pass->self->denied[pass->site], pass->denied);
	if (pass->overflowed)
		metric_add(pass->self->overflowed[pass->site], pass->overflowed);
	pass->denied = pass->overflowed = 0;
}

static void filter_attributes(struct pass *pass, enum site site)
{
	value_memo_clear(&pass->scratch->memo, pass->p->attributes.count);
	pass->site = site;
	sites_each_list(pass->p, site, filter_list, pass);
	finish(pass);
}

/* A list of values, which are strings, lists no field of bytes. */
static bool field_passes(void *context, enum site site, struct view key)
{
	struct pass *pass = context;
	struct key_rules_verdict v =
		key_rules_verdict(&pass->self->keys, &pass->scratch->cache, key);
	if (!(v.sites >> site & 1) || (site != SITE_ENTITY && v.values))
		return false;
	note_permitted(pass, key);
	return true;
}

static void filter_fields(struct pass *pass, enum site site)
{
	pass->site = site;
	pass->denied +=
		keyed_fields_filter(&(struct keyed_fields){ pass->p, field_passes, pass, "denied" },
				    site);
	finish(pass);
}

static bool allowlist_process(void *self, void *scratch, struct profiles *p, struct error *err)
{
	struct allowlist_scratch *own = scratch;
	struct pass pass = { .self = self, .scratch = own, .p = p };
	for (enum site site = SITE_RESOURCE; site <= SITE_MAPPING; site++)
		filter_attributes(&pass, site);
	filter_fields(&pass, SITE_PROFILE);
	filter_fields(&pass, SITE_LINK);
	filter_fields(&pass, SITE_ENTITY);
	value_memo_trim(&own->memo);
	return !p->over_cap || profiles_over_cap(p, err);
}

static void allowlist_scratch_fini(void *self, void *scratch)
{
	(void)self;
	struct allowlist_scratch *own = scratch;
	key_rules_cache_fini(&own->cache);
	value_memo_fini(&own->memo);
}

static bool allowlist_create(void *instance, const void *settings, const struct host *host,
			     struct error *err)
{
	struct allowlist *self = instance;
	const struct allowlist_config *config = settings;
	self->overflow_value = config->overflow_value ? config->overflow_value : "";
	self->structural = config->structural.index == STRUCTURAL_ALLOW;
	for (enum site site = SITE_RESOURCE; site <= SITE_ENTITY; site++) {
		const struct metric_label labels[] = { { "processor", host->id },
						       { "site", sites[site].name },
						       { 0 } };
		self->denied[site] = metrics_series(host->metrics, &denied_metric, labels);
		self->overflowed[site] = metrics_series(host->metrics, &overflowed_metric, labels);
	}
	return key_rules_init(&self->keys, &config->keys, err);
}

static void allowlist_destroy(void *instance)
{
	key_rules_fini(&((struct allowlist *)instance)->keys);
}

static void allowlist_check(const void *settings, struct faults *faults)
{
	const struct allowlist_config *config = settings;
	key_rules_check(&config->keys, faults);
}

#define SITE_ROW(site, name) \
	CONFIG_ROW(struct allowlist_config, keys.sites[site], .key = name, \
		   .help = "Keys permitted at this site, in addition to `keys`.")

static const char *const structural_choices[] = { "allow", "deny", NULL };

static const struct config_row rows[] = {
	CONFIG_ROW(struct allowlist_config, keys.everywhere, .key = "keys",
		   .help = "Keys permitted at every site. An empty list permits none."),
	CONFIG_ROW(struct allowlist_config, keys.patterns, .key = "key_patterns",
		   .help = "Regular expressions (PCRE2). A key of at most 1024 bytes that one "
			   "of them matches completely is permitted at every site. An "
			   "expression that a hostile key could make expensive is an error."),
	SITE_ROW(SITE_RESOURCE, "resource"),
	SITE_ROW(SITE_SCOPE, "scope"),
	CONFIG_ROW(struct allowlist_config, keys.sites[SITE_PROFILE], .key = "profile",
		   .help = "Keys permitted at this site, in addition to `keys`. The field "
			   "`profile_id` passes if the key `profile_id` is permitted."),
	SITE_ROW(SITE_SAMPLE, "sample"),
	SITE_ROW(SITE_LOCATION, "location"),
	SITE_ROW(SITE_MAPPING, "mapping"),
	CONFIG_ROW(struct allowlist_config, keys.sites[SITE_LINK], .key = "link",
		   .help = "Keys permitted at this site, in addition to `keys`. A link passes "
			   "only if both `trace_id` and `span_id` are permitted."),
	CONFIG_ROW(struct allowlist_config, keys.sites[SITE_ENTITY], .key = "entity",
		   .help = "Keys that entity references may name, in addition to `keys`. An "
			   "entity reference is removed if it names any other key, or a key "
			   "that the outgoing resource does not have."),
	CONFIG_ROW(struct allowlist_config, keys.values, .key = "values",
		   .help = "Maps a key to the list of its permitted values and units (as "
			   "strings). An attribute with any other value or unit becomes "
			   "`overflow_value` without a unit. This list does not permit the key "
			   "itself. It applies to structural attributes too: if none of the "
			   "lists above permits the key, an attribute with any other value is "
			   "removed. A link or profile ID with a value that is not listed is "
			   "removed."),
	CONFIG_ROW(struct allowlist_config, overflow_value, .key = "overflow_value", .def = "other",
		   .help = "Replacement for values that `values` does not list."),
	CONFIG_ROW(struct allowlist_config, structural, .key = "structural", .def = "allow",
		   .choices = structural_choices,
		   .help = "`deny` also removes the structural attributes that are listed "
			   "below."),
	{ 0 }
};

static const struct config_table table = { sizeof(struct allowlist_config), rows, allowlist_check,
					   false };

static const char *what_passes(enum site site)
{
	if (!sites[site].has_keys)
		return "always (see `pii`)";
	if (site == SITE_LINK)
		return "if both keys are permitted";
	if (site == SITE_ENTITY)
		return "if all its keys are permitted and the resource has them";
	if (site == SITE_PROFILE)
		return "permitted keys; the ID if the key `profile_id` is permitted";
	for (const struct structural *s = structurals; s->key; s++)
		if (s->site == site)
			return "permitted keys, structural attributes";
	return "permitted keys";
}

static void allowlist_describe(struct bytes *out)
{
	bytes_add_text(out, "| site | content | what passes |\n|---|---|---|\n");
	for (enum site site = SITE_NONE + 1; site < SITE_COUNT; site++)
		bytes_format(out, "| `%s` | %s | %s |\n", sites[site].name, sites[site].help,
			     what_passes(site));
	bytes_add_text(out, "\nStructural attributes pass at their own site only, with at most "
			    "128 bytes and without a unit:\n\n| site | key | value "
			    "|\n|---|---|---|\n");
	for (const struct structural *s = structurals; s->key; s++)
		bytes_format(out, "| `%s` | `%s` | %s |\n", sites[s->site].name, s->key, s->help);
	bytes_add_text(out, "\nNumbers without a key, the shape of stacks and the number of "
			    "samples always pass:");
	for (const char *const *field = sites_open_fields; *field; field++)
		bytes_format(out, "%s `%s`", field == sites_open_fields ? "" : ",", *field);
	bytes_add_text(out, ". The allow-list therefore stops the data that an application "
			    "attaches to its profiles. It does not stop a sender that "
			    "deliberately hides data in timestamps, values, addresses or the "
			    "hex digits of a build ID. The original payload, unknown fields, "
			    "and dictionary entries that no permitted record references never "
			    "pass.\n");
}

static bool allowlist_keeps(const void *settings, const char *key)
{
	const struct allowlist_config *config = settings;
	struct key_rules_cache *cache = memory_new(sizeof *cache);
	struct key_rules keys = { 0 };
	bool kept = key && key_rules_init(&keys, &config->keys, NULL) &&
		    key_rules_verdict(&keys, cache, view_of(key)).sites >> SITE_RESOURCE & 1;
	key_rules_fini(&keys);
	key_rules_cache_fini(cache);
	memory_free(cache);
	return kept;
}

static const struct processor_ops allowlist_ops = {
	.scratch_size = sizeof(struct allowlist_scratch),
	.process = allowlist_process,
	.scratch_fini = allowlist_scratch_fini,
	.keeps = allowlist_keeps,
};

#define INSTEAD \
	"use `allowlist` for keys, `pii` for values, `resource` to set attributes of resources"
static const struct config_hint allowlist_hints[] = { { "attributes", .text = INSTEAD },
						      { "transform", .text = INSTEAD },
						      { 0 } };

const struct component_factory allowlist_processor = {
	.type = "allowlist",
	.hints = allowlist_hints,
	.help = "Removes every attribute whose key is not permitted at its site.",
	.manual = "Deny by default: an empty list permits nothing. Keys nested in maps need the "
		  "same permission. A key that was not valid UTF-8 is denied. Keys are compared "
		  "byte by byte, so look-alike characters make a different key.",
	.kind = COMPONENT_PROCESSOR,
	.processor = &allowlist_ops,
	.size = sizeof(struct allowlist),
	.config = &table,
	.metrics = metrics,
	.create = allowlist_create,
	.destroy = allowlist_destroy,
	.describe = allowlist_describe,
};
