/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/redaction_summary.h"

#include <stddef.h>
#include <string.h>

static const char *const keys[REDACTION_KINDS] = {
	"redaction.redacted.count",
	"redaction.masked.count",
	"redaction.allowed.count",
	"redaction.ignored.count",
};

void redaction_summary_init(struct redaction_summary *summary, struct profiles *p)
{
	*summary = (struct redaction_summary){ .p = p };
}

/* REDACTION_KIND_NONE: it is not a count. */
static enum redaction_kind kind_of(const struct profiles *p, const struct attribute *a)
{
	enum redaction_kind kind = 0;
	while (kind < REDACTION_KINDS && !string_is(p, a->key, keys[kind]))
		kind++;
	return a->type == VALUE_INT && !a->unit ? kind : REDACTION_KIND_NONE;
}

bool redaction_summary_owns(const struct profiles *p, enum site site, const struct attribute *a)
{
	return site <= SITE_PROFILE && kind_of(p, a) != REDACTION_KIND_NONE;
}

static uint32_t key_of(struct redaction_summary *s, enum redaction_kind kind)
{
	if (!s->keys[kind])
		s->keys[kind] = profiles_text_new(s->p, keys[kind], strlen(keys[kind]));
	return s->keys[kind];
}

static uint32_t count_new(struct redaction_summary *s, enum redaction_kind kind)
{
	struct attribute a = { .key = key_of(s, kind), .type = VALUE_INT, .changed = 1 };
	attribute_set_integer(&a, s->counts[kind]);
	return profiles_attribute_new(s->p, a);
}

/* Adds what the list already says, and removes it there. */
static void take_earlier(struct redaction_summary *s, struct list *list)
{
	struct profiles *p = s->p;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < list->count; i++) {
		uint32_t index = p->indices.at[list->first + i];
		const struct attribute *a = &p->attributes.at[index];
		enum redaction_kind kind = kind_of(p, a);
		if (kind == REDACTION_KIND_NONE || !s->counts[kind])
			p->indices.at[list->first + kept++] = index;
		else if (__builtin_add_overflow(s->counts[kind], attribute_integer(a),
						&s->counts[kind]))
			s->counts[kind] = INT64_MAX;
	}
	list->count = kept;
}

static void write_counts(struct redaction_summary *s, struct list *list, uint8_t *changed)
{
	uint32_t more = 0;
	for (enum redaction_kind kind = 0; kind < REDACTION_KINDS; kind++)
		more += s->counts[kind] != 0;
	if (!more)
		return;
	take_earlier(s, list);
	struct list grown = profiles_list_copy(s->p, *list, more);
	if (s->p->over_cap)
		return;
	for (enum redaction_kind kind = 0; kind < REDACTION_KINDS; kind++)
		if (s->counts[kind])
			s->p->indices.at[grown.first + grown.count++] = count_new(s, kind);
	*list = grown;
	*changed = 1;
}

static void flush(struct redaction_summary *s, struct list *list, uint8_t *changed)
{
	write_counts(s, list, changed);
	memset(s->counts, 0, sizeof s->counts);
}

/* Samples come in the order of their Profiles. */
static bool has_sample(const struct profile *profile, uint32_t sample)
{
	return sample - profile->samples.first < profile->samples.count;
}

static void flush_samples(struct redaction_summary *s)
{
	struct profile *profile = &s->p->profiles.at[s->profile];
	flush(s, &profile->attributes, &profile->changed);
}

void redaction_summary_enter(struct redaction_summary *s, enum site site, const struct list *list)
{
	if (site != SITE_SAMPLE)
		return;
	const char *at = (const char *)list - offsetof(struct sample, attributes);
	uint32_t sample = (uint32_t)((const struct sample *)at - s->p->samples.at);
	if (has_sample(&s->p->profiles.at[s->profile], sample))
		return;
	flush_samples(s);
	while (!has_sample(&s->p->profiles.at[s->profile], sample))
		s->profile++;
}

void redaction_summary_leave(struct redaction_summary *s, enum site site, struct list *list,
			     uint8_t *changed)
{
	if (site <= SITE_PROFILE)
		flush(s, list, changed);
}

void redaction_summary_close(struct redaction_summary *s, enum site site)
{
	if (site == SITE_SAMPLE && s->profile < s->p->profiles.count)
		flush_samples(s);
	memset(s->counts, 0, sizeof s->counts);
}
