/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "pipeline/component.h"
#include "processors/keyed_fields.h"
#include "processors/redaction_config.h"
#include "processors/redaction_summary.h"
#include "processors/structural.h"
#include "processors/value.h"
#include "profile/sites.h"
#include "profile/value_text.h"

#include <stddef.h>
#include <stdio.h>

/*
 * The Collector's `redaction` processor, on every site. Keys decide first: ignored, permitted,
 * blocked. Then patterns search the values of permitted attributes, and all other strings.
 *
 * What becomes of an attribute is decided once per (attribute of the tables, site) and request, so
 * the cost follows the dictionary and not the samples.
 */
enum reason { REASON_KEY, REASON_VALUE, REASON_LIMIT, REASONS };
static const char *const reason_names[REASONS] = { "key", "value", "limit" };

struct redaction {
	struct redaction_rules rules;
	const struct host *host;
	struct metric_series *removed[SITE_ENTITY + 1];
	/* Made at the first hit; the registry returns the same series to every thread. */
	_Atomic(struct metric_series *) masked[SITE_COUNT][REASONS];
};

struct scratch {
	struct value_memo memo;  /* what stands for an entry, + 1 */
	struct value_memo kinds; /* enum redaction_kind of an attribute */
	struct key_rules_cache allowed, ignored, blocked;
	struct redaction_scratch values;
};

static const struct metric removed_metric = {
	"otelcol_processor_redaction_removed_attributes", METRIC_COUNTER, "{attributes}",
	"Attributes, IDs and entity references removed, by site. An attribute counts once for "
	"each record that used it."
};
static const struct metric masked_metric = {
	"otelcol_processor_redaction_masked_strings", METRIC_COUNTER, "{strings}",
	"Values and other strings masked, by site and reason: `key` (blocked_key_patterns), "
	"`value` (blocked_values), `limit` (the whole string, because it was too long or its "
	"search reached a limit). A string counts once per request; in attributes, once per "
	"site."
};
static const struct metric *const metrics[] = { &removed_metric, &masked_metric, NULL };

/* One walk over one site. */
struct pass {
	struct redaction *self;
	struct scratch *scratch;
	struct profiles *p;
	enum site site;
	int64_t removed;
	bool masked; /* something of the attribute at hand */
	struct redaction_summary summary;
};

static void note(struct pass *pass, const char *what, struct view key, const char *row)
{
	struct audit *audit = pass->p->audit;
	if (audit)
		audit->note(audit, pass->site, what, key, (struct audit_rule){ .row = row });
}

static void note_permitted(struct pass *pass, struct view key, struct audit_rule rule)
{
	struct audit *audit = pass->p->audit;
	if (audit)
		audit->permit(audit, pass->site, key, rule);
}

static void count_masked(struct pass *pass, enum reason reason, struct view key)
{
	static const char *const what[REASONS] = { "masked: key", "masked: value",
						   "masked: limit" };
	static const char *const rows[REASONS] = { "blocked_key_patterns", "blocked_values",
						   "blocked_values" };
	struct redaction *self = pass->self;
	struct metric_series *series = atomic_load(&self->masked[pass->site][reason]);
	if (!series) {
		const struct metric_label labels[] = { { "processor", self->host->id },
						       { "site", sites[pass->site].name },
						       { "reason", reason_names[reason] },
						       { 0 } };
		series = metrics_series(self->host->metrics, &masked_metric, labels);
		atomic_store(&self->masked[pass->site][reason], series);
	}
	metric_add(series, 1);
	note(pass, what[reason], key, rows[reason]);
	pass->masked = true;
}

/* ---- strings */

/* A summary counts allowed values even if nothing could mask them. */
static bool searches(const struct pass *pass, enum site_role role)
{
	const struct redaction_rules *rules = &pass->self->rules;
	bool counts = rules->summary && rules->values.allowed.count;
	return (rules->values.blocked.count || counts) && rules->roles >> role & 1;
}

/* The string that stands for this one. */
static uint32_t search_string(struct pass *pass, uint32_t string, struct view key)
{
	const struct redaction_values *values = &pass->self->rules.values;
	struct redaction_verdict v = redaction_values_search(values, &pass->scratch->values,
							     string_view(pass->p, string));
	if (v.outcome < REDACTION_MASKED)
		return string;
	count_masked(pass, v.outcome == REDACTION_WHOLE ? REASON_LIMIT : REASON_VALUE, key);
	return profiles_text_new(pass->p, v.text.at, v.text.len);
}

static void redact_text(struct profiles *p, uint32_t *string, uint8_t *changed, void *context)
{
	struct pass *pass = context;
	uint32_t fresh = 0, *memo = value_memo_at(&pass->scratch->memo, *string, &fresh);
	(void)p;
	if (!*memo)
		*memo = search_string(pass, *string, view_of("")) + 1;
	if (*memo - 1 != *string)
		*changed = 1;
	*string = *memo - 1;
}

/* The verdict on a string is the same at every site; it is counted at the first. */
static void redact_texts(struct pass *pass)
{
	struct value_memo *memo = &pass->scratch->memo;
	value_memo_clear(memo, pass->p->strings.count);
	const struct sites_settled settled = { memo->at, memo->count };
	for (pass->site = SITE_SCOPE_NAME; pass->site < SITE_COUNT; pass->site++)
		if (searches(pass, sites[pass->site].role))
			sites_each_text(pass->p, pass->site, settled, redact_text, pass);
}

/* ---- attributes */

static bool is_in(const struct key_rules *keys, struct key_rules_cache *cache, enum site site,
		  struct view key)
{
	return key_rules_verdict(keys, cache, key).sites >> site & 1;
}

/* The same for a set whose keys may leave. */
static bool permits(struct pass *pass, const struct key_rules *keys, struct key_rules_cache *cache,
		    struct view key)
{
	if (!is_in(keys, cache, pass->site, key))
		return false;
	if (pass->p->audit)
		note_permitted(pass, key, key_rules_rule(keys, cache, pass->site, key));
	return true;
}

static bool is_ignored_key(struct pass *pass, struct view key)
{
	return permits(pass, &pass->self->rules.ignored, &pass->scratch->ignored, key);
}

static bool is_allowed_key(struct pass *pass, struct view key)
{
	const struct redaction_rules *rules = &pass->self->rules;
	if (!rules->allow_all_keys)
		return permits(pass, &rules->allowed, &pass->scratch->allowed, key);
	note_permitted(pass, key, (struct audit_rule){ .row = "allow_all_keys" });
	return true;
}

static bool is_ignored(struct pass *pass, const struct attribute *a)
{
	return !a->bad_key && is_ignored_key(pass, string_view(pass->p, a->key));
}

static bool is_allowed(struct pass *pass, const struct attribute *a)
{
	return (!a->bad_key || pass->self->rules.allow_all_keys) &&
	       is_allowed_key(pass, string_view(pass->p, a->key));
}

static bool is_blocked(struct pass *pass, const struct attribute *a)
{
	return is_in(&pass->self->rules.blocked, &pass->scratch->blocked, pass->site,
		     string_view(pass->p, a->key));
}

/* What is searched of a value; `all` holds it if it is neither a string nor a scalar. False: it has
 * no room for it. */
static bool searched_text(const struct pass *pass, const struct attribute *a,
			  char room[VALUE_TEXT_ROOM], struct bytes *all, struct view *text)
{
	*text = view_of("");
	if (a->type != VALUE_STRING && !pass->self->rules.redact_all_types)
		return true;
	if (value_text_scalar(pass->p, a, room, text))
		return true;
	if (!value_text_add(pass->p, a, all))
		return false;
	*text = bytes_view(all);
	return true;
}

static void replace_value(struct pass *pass, struct attribute *a, struct view text)
{
	a->type = VALUE_STRING;
	a->string = profiles_text_new(pass->p, text.at, text.len);
	a->changed = 1;
}

/* What is to be done with the value of a permitted attribute. */
struct task {
	struct view key;
	bool blocked; /* by its key */
	bool is_id;   /* not searched */
	bool allowed; /* out: an allowed pattern matched */
};

static bool is_allowed_value(struct pass *pass, struct view text)
{
	const struct redaction_rules *rules = &pass->self->rules;
	return rules->roles >> ROLE_VALUE & 1 &&
	       redaction_values_allow(&rules->values, &pass->scratch->values, text);
}

static struct redaction_verdict judge(struct pass *pass, const struct task *task, struct view text)
{
	const struct redaction_values *values = &pass->self->rules.values;
	struct redaction_scratch *scratch = &pass->scratch->values;
	if (!task->blocked)
		return redaction_values_search(values, scratch, text);
	if (is_allowed_value(pass, text))
		return (struct redaction_verdict){ .outcome = REDACTION_ALLOWED };
	return redaction_values_mask(values, scratch, text);
}

/* What is nested is visited by itself. */
static enum value_change redact_value(struct pass *pass, struct attribute *a, struct task *task)
{
	bool search = searches(pass, ROLE_VALUE) && !value_is_nested(a) && !task->is_id;
	char room[VALUE_TEXT_ROOM];
	struct bytes all;
	if (!task->blocked && !search)
		return VALUE_SAME;
	bytes_init(&all, pass->p->table_bytes_max);
	struct view text;
	struct redaction_verdict v = { REDACTION_WHOLE, view_of(REDACTION_MASK) };
	if (searched_text(pass, a, room, &all, &text))
		v = judge(pass, task, text);
	task->allowed = v.outcome == REDACTION_ALLOWED;
	if (v.outcome >= REDACTION_MASKED) {
		enum reason reason = task->blocked ? REASON_KEY : REASON_VALUE;
		count_masked(pass, v.outcome == REDACTION_WHOLE ? REASON_LIMIT : reason, task->key);
		replace_value(pass, a, v.text);
	}
	bytes_fini(&all);
	return v.outcome >= REDACTION_MASKED ? VALUE_CHANGED : VALUE_SAME;
}

static enum value_change redact_nested(void *context, bool keyed, struct attribute *child)
{
	struct pass *pass = context;
	struct task task = { .key = keyed ? string_view(pass->p, child->key) : view_of("") };
	if (keyed && is_ignored(pass, child))
		return VALUE_FINAL;
	if (keyed && !is_allowed(pass, child)) {
		note(pass, "denied", task.key, NULL);
		pass->removed++;
		pass->masked = true;
		return VALUE_REMOVED;
	}
	task.blocked = keyed && is_blocked(pass, child);
	return redact_value(pass, child, &task);
}

/* The unit could say what the value of a blocked key was. */
static bool redact_unit(struct pass *pass, struct attribute *a, bool blocked)
{
	uint32_t unit = a->unit;
	if (unit && blocked && !is_allowed_value(pass, string_view(pass->p, unit)))
		a->unit = 0;
	else if (unit && searches(pass, ROLE_UNIT))
		a->unit = search_string(pass, unit, string_view(pass->p, a->key));
	return a->unit != unit;
}

static bool redact_children(struct pass *pass, struct attribute *a)
{
	if (!value_is_nested(a))
		return false;
	struct list old = a->children;
	a->children = value_rewrite(pass->p, a, redact_nested, pass);
	return a->children.first != old.first || a->children.count != old.count;
}

/* The attribute that stands for this one, which is permitted. */
static uint32_t redact_permitted(struct pass *pass, uint32_t index, bool structural,
				 enum redaction_kind *kind)
{
	struct profiles *p = pass->p;
	struct attribute a = p->attributes.at[index];
	struct task task = { .key = string_view(p, a.key),
			     .blocked = is_blocked(pass, &a),
			     .is_id = structural || structural_is_id(p, pass->site, &a) };
	pass->masked = false;
	bool changed = redact_value(pass, &a, &task) == VALUE_CHANGED;
	changed |= redact_unit(pass, &a, task.blocked);
	changed |= redact_children(pass, &a);
	*kind = pass->masked   ? REDACTION_KIND_MASKED
		: task.allowed ? REDACTION_KIND_ALLOWED
			       : REDACTION_KIND_NONE;
	if (!changed)
		return index;
	a.changed = 1;
	return profiles_attribute_new(p, a);
}

/* The attribute that may stay in place of this one; 0: none. */
static uint32_t redact_attribute(struct pass *pass, uint32_t index, const struct scope *scope,
				 enum redaction_kind *kind)
{
	const struct redaction_rules *rules = &pass->self->rules;
	struct profiles *p = pass->p;
	const struct attribute *a = &p->attributes.at[index];
	*kind = REDACTION_KIND_NONE;
	if (is_ignored(pass, a)) {
		*kind = REDACTION_KIND_IGNORED;
		return index;
	}
	if (rules->summary && redaction_summary_owns(p, pass->site, a))
		return index;
	if (is_allowed(pass, a))
		return redact_permitted(pass, index, false, kind);
	if (rules->structural && structural_passes(p, pass->site, a, scope)) {
		note_permitted(pass, string_view(p, a->key),
			       (struct audit_rule){ .row = "structural" });
		return redact_permitted(pass, index, true, kind);
	}
	note(pass, "denied", string_view(p, a->key), NULL);
	*kind = REDACTION_KIND_REMOVED;
	return 0;
}

/* A scope's structural attributes depend on the scope, so nothing is remembered there. */
static uint32_t redact_once(struct pass *pass, uint32_t index, const struct list *list,
			    enum redaction_kind *kind)
{
	uint32_t fresh = 0, fresh_kind = 0;
	if (pass->site == SITE_SCOPE) {
		const char *at = (const char *)list - offsetof(struct scope, attributes);
		return redact_attribute(pass, index, (const struct scope *)at, kind);
	}
	uint32_t *memo = value_memo_at(&pass->scratch->memo, index, &fresh);
	uint32_t *known = value_memo_at(&pass->scratch->kinds, index, &fresh_kind);
	if (!*memo) {
		*memo = redact_attribute(pass, index, NULL, kind) + 1;
		*known = *kind;
	}
	*kind = *known;
	return *memo - 1;
}

static void redact_list(struct profiles *p, struct list *list, uint8_t *changed, void *context)
{
	struct pass *pass = context;
	uint32_t kept = 0;
	if (pass->self->rules.summary)
		redaction_summary_enter(&pass->summary, pass->site, list);
	for (uint32_t i = 0; i < list->count; i++) {
		uint32_t index = p->indices.at[list->first + i];
		enum redaction_kind kind = REDACTION_KIND_NONE;
		uint32_t stays = index ? redact_once(pass, index, list, &kind) : 0;
		if (stays != index)
			*changed = 1;
		if (stays)
			p->indices.at[list->first + kept++] = stays;
		else if (index)
			pass->removed++;
		redaction_summary_count(&pass->summary, kind);
	}
	list->count = kept;
	if (pass->self->rules.summary)
		redaction_summary_leave(&pass->summary, pass->site, list, changed);
}

static void finish(struct pass *pass)
{
	if (pass->removed)
		metric_add(pass->self->removed[pass->site], pass->removed);
	pass->removed = 0;
}

static void redact_attributes(struct pass *pass, enum site site)
{
	value_memo_clear(&pass->scratch->memo, pass->p->attributes.count);
	value_memo_clear(&pass->scratch->kinds, pass->p->attributes.count);
	pass->site = site;
	sites_each_list(pass->p, site, redact_list, pass);
	if (pass->self->rules.summary)
		redaction_summary_close(&pass->summary, site);
	finish(pass);
}

/* ---- IDs and entity references: they cannot be masked, so a blocked key removes them */

static bool field_passes(void *context, enum site site, struct view key)
{
	struct pass *pass = context;
	const struct redaction_rules *rules = &pass->self->rules;
	if (is_ignored_key(pass, key))
		return true;
	if (!is_allowed_key(pass, key))
		return false;
	/* An entity reference holds keys only, which policy lets pass here. */
	return site == SITE_ENTITY || !is_in(&rules->blocked, &pass->scratch->blocked, site, key);
}

static void redact_fields(struct pass *pass, enum site site)
{
	pass->site = site;
	pass->removed +=
		keyed_fields_filter(&(struct keyed_fields){ pass->p, field_passes, pass, "denied" },
				    site);
	finish(pass);
}

static bool redaction_process(void *instance, void *worker, struct profiles *p, struct error *err)
{
	struct scratch *scratch = worker;
	struct pass pass = { .self = instance, .scratch = scratch, .p = p };
	redaction_summary_init(&pass.summary, p);
	redact_texts(&pass);
	for (enum site site = SITE_RESOURCE; site <= SITE_MAPPING; site++)
		redact_attributes(&pass, site);
	redact_fields(&pass, SITE_PROFILE);
	redact_fields(&pass, SITE_LINK);
	redact_fields(&pass, SITE_ENTITY);
	value_memo_trim(&scratch->memo);
	value_memo_trim(&scratch->kinds);
	return !p->over_cap || profiles_over_cap(p, err);
}

static void redaction_scratch_destroy(void *instance, void *worker)
{
	(void)instance;
	struct scratch *scratch = worker;
	value_memo_fini(&scratch->memo);
	value_memo_fini(&scratch->kinds);
	key_rules_cache_fini(&scratch->allowed);
	key_rules_cache_fini(&scratch->ignored);
	key_rules_cache_fini(&scratch->blocked);
	redaction_scratch_fini(&scratch->values);
}

static bool redaction_create(void *instance, const void *settings, const struct host *host,
			     struct error *err)
{
	struct redaction *self = instance;
	self->host = host;
	for (enum site site = SITE_RESOURCE; site <= SITE_ENTITY; site++) {
		const struct metric_label labels[] = { { "processor", host->id },
						       { "site", sites[site].name },
						       { 0 } };
		self->removed[site] = metrics_series(host->metrics, &removed_metric, labels);
	}
	return redaction_rules_init(&self->rules, settings, err);
}

static void redaction_destroy(void *instance)
{
	redaction_rules_fini(&((struct redaction *)instance)->rules);
}

static bool redaction_keeps(const void *settings, const char *key)
{
	const struct redaction_config *config = settings;
	struct redaction_rules rules;
	struct scratch *scratch = memory_new(sizeof *scratch);
	bool kept =
		redaction_rules_init(&rules, config, NULL) &&
		(rules.allow_all_keys ||
		 (key && (is_in(&rules.allowed, &scratch->allowed, SITE_RESOURCE, view_of(key)) ||
			  is_in(&rules.ignored, &scratch->ignored, SITE_RESOURCE, view_of(key)))));
	redaction_rules_fini(&rules);
	redaction_scratch_destroy(NULL, scratch);
	memory_free(scratch);
	return kept;
}

static const struct processor_ops redaction_ops = {
	.scratch_size = sizeof(struct scratch),
	.process = redaction_process,
	.scratch_fini = redaction_scratch_destroy,
	.keeps = redaction_keeps,
};

const struct component_factory redaction_processor = {
	.type = "redaction",
	.help = "Removes attributes whose keys are not allowed, and masks values, as the "
		"Collector's processor does for other signals.",
	.manual =
		"A `redaction` block of a Collector configuration works as it stands, except that "
		"`url_sanitizer` and `db_sanitizer` cannot be enabled.\n\n"
		"For each attribute of a resource, scope, Profile, sample, location or mapping, in "
		"this order: if its key is ignored, it passes as it is. If its key is not allowed, "
		"it is removed. If `allowed_values` matches its value, the value stays. If "
		"`blocked_key_patterns` matches its key, the value is masked as a whole, and its "
		"unit is removed unless `allowed_values` matches it. Else what `blocked_values` "
		"match is masked, one pattern after the other.\n\n"
		"| keys | apply to |\n|---|---|\n"
		"| `allow_all_keys`, `allowed_keys`, `ignored_keys`, `ignored_key_patterns`, "
		"`blocked_key_patterns` | attributes, nested ones included; `profile_id`, the "
		"links of samples (`trace_id` and `span_id`), entity references |\n"
		"| `redact_all_types`, `summary` | attributes |\n"
		"| `blocked_values`, `allowed_values`, `hash_function` | values and units of "
		"attributes, and all other strings: names and files of functions, files of "
		"mappings, types of samples, scopes, schema URLs; `roles` selects |\n\n"
		"Keys in maps need the same permission as others, and each value in a map or array "
		"is treated by itself; the Collector does so in bodies of logs, and not in "
		"attributes. IDs cannot be masked: a blocked key removes them. Structural "
		"attributes and IDs are not searched for `blocked_values` (see `allowlist` and "
		"`pii`).\n\n"
		"Regular expressions have Go's syntax and match what they match in the Collector, "
		"anywhere in the key or string. One that Go does not accept is an error, and so is "
		"one that a hostile string could make expensive. A string that is longer than "
		"8 KiB, has more than 512 matches, or whose search reaches a limit is masked as a "
		"whole.\n\n"
		"`summary: info` adds `redaction.redacted.count`, `redaction.masked.count`, "
		"`redaction.allowed.count` and `redaction.ignored.count`, where they are not 0, to "
		"the attributes of resources, scopes and Profiles; attributes of samples count at "
		"their Profile. Integers that are already there under these keys are added. "
		"Locations, mappings and other strings are only counted in the metrics. Names of "
		"keys are not written, because a name that policy denied must not leave: `debug` "
		"means `info`, and `portcullis explain` shows the names.",
	.kind = COMPONENT_PROCESSOR,
	.processor = &redaction_ops,
	.size = sizeof(struct redaction),
	.config = &redaction_config_table,
	.metrics = metrics,
	.create = redaction_create,
	.destroy = redaction_destroy,
};
