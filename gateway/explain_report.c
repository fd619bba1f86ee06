/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/explain_report.h"

#include "base/memory.h"

#include <stdlib.h>

/* ---- collecting */

static struct explain_way *current(struct explain_report *r)
{
	return &r->ways[r->count - 1];
}

/* The node of a rule in the configuration; NULL: it is a default. */
static const struct node *entry_of(const struct node *processor, const struct audit_rule *rule)
{
	const struct node *row = rule->row ? node_get(processor, rule->row) : processor;
	const struct node *entry = row;
	if (rule->name)
		entry = node_get(row, rule->name);
	else if (rule->number && row && row->kind == NODE_LIST && rule->number <= row->count)
		entry = row->children[rule->number - 1];
	return entry ? entry : row ? row : processor;
}

static char *entry_text(const struct audit_rule *rule)
{
	if (!rule->row)
		return memory_text("");
	if (rule->name)
		return memory_format("%s.%s", rule->row, rule->name);
	if (rule->number)
		return memory_format("%s[%zu]", rule->row, rule->number - 1);
	return memory_text(rule->row);
}

/* The last one of this kind; NULL: there is none. */
static struct explain_verdict *find(const struct explain_verdicts *v, enum site site,
				    const char *key, const char *what)
{
	struct explain_verdict *found = explain_verdicts_find(v, site, key);
	while (found && strcmp(found->what, what) != 0)
		found = explain_verdicts_earlier(v, found);
	return found;
}

static bool is_by(const struct explain_verdict *v, const char *what, const char *processor,
		  const char *entry)
{
	return !strcmp(v->what, what) && !strcmp(v->processor, processor) &&
	       !strcmp(v->entry, entry);
}

static void record(struct explain_report *r, struct explain_verdicts *v, enum site site,
		   const char *what, struct view key, const struct audit_rule *rule)
{
	const struct node *processor = node_get(r->processors, r->audit.processor);
	const struct node *node = processor ? entry_of(processor, rule) : NULL;
	char *text = memory_text_of(key.at, key.len), *entry = entry_text(rule);
	struct explain_verdict *found = explain_verdicts_find(v, site, text);
	while (found && !is_by(found, what, r->audit.processor, entry))
		found = explain_verdicts_earlier(v, found);
	if (!found) {
		found = explain_verdicts_add(v, site, text, what);
		found->processor = memory_text(r->audit.processor);
		found->entry = memory_text(entry);
		found->source = node ? memory_text(node->source) : NULL;
		found->line = node ? node->line : 0;
	}
	found->count++;
	memory_free(text);
	memory_free(entry);
}

static void note(struct audit *audit, enum site site, const char *what, struct view key,
		 struct audit_rule rule)
{
	struct explain_report *r = (struct explain_report *)audit;
	record(r, &current(r)->verdicts, site, what, key, &rule);
}

static void permit(struct audit *audit, enum site site, struct view key, struct audit_rule rule)
{
	struct explain_report *r = (struct explain_report *)audit;
	record(r, &current(r)->permits, site, "passes", key, &rule);
}

/* ---- what leaves */

/* One walk over one site of the packet. */
struct leaving {
	struct explain_way *way;
	enum site site;
	uint8_t *seen; /* entries of a table */
};

/* The last allow-list that permitted the key is the rule. */
static void leaves(struct leaving *l, struct view key)
{
	char *text = memory_text_of(key.at, key.len);
	struct explain_verdict *v = find(&l->way->verdicts, l->site, text, "passes");
	if (!v) {
		const struct explain_verdict *rule =
			explain_verdicts_find(&l->way->permits, l->site, text);
		v = explain_verdicts_add(&l->way->verdicts, l->site, text, "passes");
		v->processor = memory_text(rule ? rule->processor : "");
		v->entry = memory_text(rule ? rule->entry : "");
		v->source = rule && rule->source ? memory_text(rule->source) : NULL;
		v->line = rule ? rule->line : 0;
	}
	v->count++;
	memory_free(text);
}

static void attribute_leaves(struct leaving *l, const struct profiles *p, uint32_t index)
{
	const struct attribute *a = &p->attributes.at[index];
	if (l->seen[index])
		return;
	l->seen[index] = 1;
	if (a->key)
		leaves(l, string_view(p, a->key));
	if (a->type == VALUE_ARRAY || a->type == VALUE_KVLIST)
		for (uint32_t i = 0; i < a->children.count; i++)
			attribute_leaves(l, p, a->children.first + i);
}

static void list_leaves(struct profiles *p, struct list *list, uint8_t *changed, void *context)
{
	(void)changed;
	for (uint32_t i = 0; i < list->count; i++)
		if (p->indices.at[list->first + i])
			attribute_leaves(context, p, p->indices.at[list->first + i]);
}

static void text_leaves(struct profiles *p, uint32_t *string, uint8_t *changed, void *context)
{
	struct leaving *l = context;
	(void)p, (void)changed;
	if (!l->seen[*string])
		leaves(l, view_of(""));
	l->seen[*string] = 1;
}

static void keys_leave(struct leaving *l, const struct profiles *p, struct list keys)
{
	for (uint32_t i = 0; i < keys.count; i++)
		leaves(l, string_view(p, p->indices.at[keys.first + i]));
}

static void ids_leave(struct leaving *l, const struct profiles *p)
{
	l->site = SITE_PROFILE;
	for (uint32_t i = 0; i < p->profiles.count; i++)
		if (p->profiles.at[i].profile_id.len)
			leaves(l, view_of("profile_id"));
	l->site = SITE_LINK;
	for (uint32_t i = 1; i < p->links.count; i++) {
		leaves(l, view_of("trace_id"));
		leaves(l, view_of("span_id"));
	}
	l->site = SITE_ENTITY;
	for (uint32_t i = 0; i < p->entities.count; i++) {
		keys_leave(l, p, p->entities.at[i].id_keys);
		keys_leave(l, p, p->entities.at[i].description_keys);
	}
}

void explain_report_leaves(struct explain_report *r, struct profiles *p)
{
	struct leaving l = { .way = current(r) };
	for (l.site = SITE_RESOURCE; l.site <= SITE_MAPPING; l.site++) {
		l.seen = memory_array(p->attributes.count + 1, 1);
		sites_each_list(p, l.site, list_leaves, &l);
		memory_free(l.seen);
	}
	for (l.site = SITE_SCOPE_NAME; l.site < SITE_COUNT; l.site++) {
		l.seen = memory_array(p->strings.count + 1, 1);
		sites_each_text(p, l.site, (struct sites_settled){ 0 }, text_leaves, &l);
		memory_free(l.seen);
	}
	ids_leave(&l, p);
}

/* ---- life */

void explain_report_init(struct explain_report *r)
{
	*r = (struct explain_report){ .audit = { .note = note, .permit = permit } };
}

struct explain_way *explain_report_begin(struct explain_report *r, char *name)
{
	r->ways = memory_resize(r->ways, (r->count + 1) * sizeof *r->ways);
	r->ways[r->count] = (struct explain_way){ .name = name };
	return &r->ways[r->count++];
}

void explain_report_fini(struct explain_report *r)
{
	for (size_t i = 0; i < r->count; i++) {
		memory_free(r->ways[i].name);
		explain_verdicts_fini(&r->ways[i].verdicts);
		explain_verdicts_fini(&r->ways[i].permits);
	}
	memory_free(r->ways);
}
