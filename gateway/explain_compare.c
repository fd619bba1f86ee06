/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/explain_print.h"

#include "base/memory.h"

enum difference {
	SAME,
	NEWLY_PASSES,
	NEWLY_REMOVED,
	NEWLY_CHANGED,
	OTHERWISE_CHANGED,
	LESS_CHANGED
};

static const char *const difference_names[] = {
	[NEWLY_PASSES] = "newly passes",      [NEWLY_REMOVED] = "newly removed",
	[NEWLY_CHANGED] = "newly changed",    [OTHERWISE_CHANGED] = "changed otherwise",
	[LESS_CHANGED] = "no longer changed",
};

/* All that one configuration decided about one site and key: the last verdict of each kind. */
struct fate {
	const struct explain_verdict *passes, *removal, *change;
	uint32_t changes; /* the number of verdicts that change it */
};

static bool removes(const struct explain_verdict *v)
{
	return !strcmp(v->what, "denied") || !strcmp(v->what, "deleted") ||
	       !strcmp(v->what, "dropped");
}

static struct fate fate_of(const struct explain_way *way, const struct explain_verdict *of)
{
	struct fate fate = { 0 };
	const struct explain_verdict *v = explain_verdicts_find(&way->verdicts, of->site, of->key);
	for (; v; v = explain_verdicts_earlier(&way->verdicts, v)) {
		const struct explain_verdict **last = !strcmp(v->what, "passes") ? &fate.passes
						      : removes(v)               ? &fate.removal
										 : &fate.change;
		*last = *last ? *last : v;
		fate.changes += last == &fate.change;
	}
	return fate;
}

/* Do both make the same changes, in whatever order and by whatever entry? */
static bool same_changes(const struct explain_way *a, const struct explain_way *b,
			 const struct explain_verdict *of)
{
	const struct explain_verdict *v = explain_verdicts_find(&a->verdicts, of->site, of->key);
	for (; v; v = explain_verdicts_earlier(&a->verdicts, v)) {
		const struct explain_verdict *found =
			explain_verdicts_find(&b->verdicts, of->site, of->key);
		while (found && strcmp(found->what, v->what) != 0)
			found = explain_verdicts_earlier(&b->verdicts, found);
		if (!found)
			return false;
	}
	return true;
}

static enum difference judge(const struct explain_way *first, const struct explain_way *second,
			     const struct explain_verdict *of, const struct explain_verdict **rule)
{
	struct fate a = fate_of(first, of), b = fate_of(second, of);
	*rule = b.passes;
	if (!a.passes != !b.passes) {
		*rule = b.passes ? b.passes : b.removal ? b.removal : of;
		return b.passes ? NEWLY_PASSES : NEWLY_REMOVED;
	}
	if (!a.passes || (same_changes(first, second, of) && same_changes(second, first, of)))
		return SAME;
	*rule = b.change ? b.change : b.passes;
	return !a.changes ? NEWLY_CHANGED : !b.changes ? LESS_CHANGED : OTHERWISE_CHANGED;
}

/* Calls `print` for each place where the two ways differ; returns the number. */
static size_t each_difference(const struct explain_way *first, const struct explain_way *second,
			      void (*print)(struct bytes *out, size_t number, enum difference what,
					    const struct explain_verdict *place,
					    const struct explain_verdict *rule),
			      struct bytes *out)
{
	struct explain_verdicts both = { 0 };
	both.count = first->verdicts.count + second->verdicts.count;
	both.at = memory_array(both.count, sizeof *both.at);
	for (size_t i = 0; i < both.count; i++)
		both.at[i] = i < first->verdicts.count
				     ? first->verdicts.at[i]
				     : second->verdicts.at[i - first->verdicts.count];
	const struct explain_verdict **list = explain_sorted(&both), *rule;
	size_t number = 0;
	for (size_t i = 0; list[i]; i++) {
		if (i && list[i]->site == list[i - 1]->site &&
		    !strcmp(list[i]->key, list[i - 1]->key))
			continue;
		enum difference what = judge(first, second, list[i], &rule);
		if (what != SAME)
			print(out, number++, what, list[i], rule);
	}
	memory_free(list);
	memory_free(both.at);
	return number;
}

static void text_difference(struct bytes *out, size_t number, enum difference what,
			    const struct explain_verdict *place, const struct explain_verdict *rule)
{
	(void)number;
	bytes_add_text(out, "  ");
	explain_text_column(out, difference_names[what], 20);
	explain_text_column(out, sites[place->site].name, 22);
	explain_text_column(out, place->key, 32);
	explain_text_rule(out, rule);
	bytes_add_byte(out, '\n');
}

static void json_difference(struct bytes *out, size_t number, enum difference what,
			    const struct explain_verdict *place, const struct explain_verdict *rule)
{
	bytes_add_text(out, number ? ",{" : "{");
	explain_json_text(out, "difference", difference_names[what]);
	bytes_add_byte(out, ',');
	(void)place;
	explain_json_place(out, rule);
	bytes_add_byte(out, '}');
}

static const struct explain_way *find_way(const struct explain_report *r, const char *name)
{
	for (size_t i = 0; i < r->count; i++)
		if (!strcmp(r->ways[i].name, name))
			return &r->ways[i];
	return NULL;
}

static void compare_ways(struct bytes *out, bool json, const struct explain_way *first,
			 const struct explain_way *second)
{
	static const struct explain_way none;
	const char *name = first ? first->name : second->name;
	const char *only = !second ? "first" : !first ? "second" : NULL;
	if (json) {
		bytes_add_byte(out, '{');
		explain_json_text(out, "pipeline", name);
		if (only)
			bytes_format(out, ",\"only_in\":\"%s\"", only);
		bytes_add_text(out, ",\"differences\":[");
	} else {
		bytes_format(out, "pipeline %s\n", name);
		if (only)
			bytes_format(out, "  only the %s configuration has it\n", only);
	}
	size_t count = each_difference(first ? first : &none, second ? second : &none,
				       json ? json_difference : text_difference, out);
	if (json)
		bytes_add_text(out, "]}");
	else if (!count && !only)
		bytes_add_text(out, "  no difference\n");
}

void explain_report_compare(const struct explain_report *first, const struct explain_report *second,
			    bool json, struct bytes *out)
{
	size_t printed = 0;
	(json ? explain_json_input : explain_text_input)(out, first);
	for (size_t i = 0; i < first->count; i++) {
		if (json && printed++)
			bytes_add_byte(out, ',');
		compare_ways(out, json, &first->ways[i], find_way(second, first->ways[i].name));
	}
	for (size_t i = 0; i < second->count; i++) {
		if (find_way(first, second->ways[i].name))
			continue;
		if (json && printed++)
			bytes_add_byte(out, ',');
		compare_ways(out, json, NULL, &second->ways[i]);
	}
	(json ? explain_json_end : explain_text_end)(out, first->more || second->more);
}
