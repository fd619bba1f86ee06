/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/stores/series.h"
#include "base/memory.h"
#include "profile/stores/kinds.h"
#include "profile/value_text.h"

#include <assert.h>
#include <stdlib.h>

const char *const series_losses[SERIES_LOSSES] = {
	[SERIES_COLLISION] = "collision", [SERIES_TOO_MANY] = "too_many",
	[SERIES_LONG_NAME] = "long_name", [SERIES_RESERVED] = "reserved",
	[SERIES_NUMBER] = "number",       [SERIES_CUT] = "cut",
};

enum known_state { UNSEEN, LABEL, NOTHING, OWN, RESERVED, TOO_LONG };

void series_init(struct series_labels *s, const struct series_rules *rules)
{
	*s = (struct series_labels){ .rules = rules };
	bytes_init(&s->text, PROFILES_INPUT_MAX);
}

void series_fini(struct series_labels *s)
{
	memo_fini(&s->texts);
	memory_free(s->known);
	memory_free(s->stamps);
	bytes_fini(&s->text);
}

void series_open(struct series_labels *s, struct profiles *p)
{
	size_t max = 64 * (size_t)p->input.len;
	s->p = p;
	memo_fini(&s->texts);
	s->texts =
		(struct memo){ .max_bytes = (1 << 20) +
					    (max < PROFILES_INPUT_MAX ? max : PROFILES_INPUT_MAX) };
	memory_free(s->known);
	s->known_room = p->attributes.count;
	s->known = memory_array(s->known_room, sizeof *s->known);
	memory_free(s->stamps);
	s->stamps = NULL;
	s->stamp_room = s->stamp = s->set = s->count = s->fixed = 0;
}

/* Returns the one string with these contents. `own` is a string that already has them; 0: none
 * does. */
static uint32_t intern(struct series_labels *s, struct view text, uint32_t own)
{
	struct memo_entry *entry = text.len ? memo_enter(&s->texts, 0, text.at, text.len) : NULL;
	if (!entry) {
		s->p->over_cap |= text.len != 0;
		return 0;
	}
	if (!entry->first)
		entry->first = own ? own : profiles_text_new(s->p, text.at, text.len);
	return entry->first;
}

uint32_t series_text(struct series_labels *s, struct view text)
{
	return intern(s, text, 0);
}

/* The stamp of the last set or sample in which the string is a name. The array grows, because
 * strings are created in the meantime. */
static uint32_t *stamp_of(struct series_labels *s, uint32_t string)
{
	if (string >= s->stamp_room) {
		uint32_t room = s->p->strings.count + s->p->strings.count / 2 + 16;
		s->stamps = memory_resize(s->stamps, room * sizeof *s->stamps);
		memset(s->stamps + s->stamp_room, 0, (room - s->stamp_room) * sizeof *s->stamps);
		s->stamp_room = room;
	}
	return &s->stamps[string];
}

/* Names and values. */

static bool is_plain(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static bool begins(struct view text, const char *prefix)
{
	size_t len = strlen(prefix);
	return text.len >= len && memcmp(text.at, prefix, len) == 0;
}

/* Each invalid character, regardless of its length in bytes, becomes one "_". The result is never
 * one of the store's own names. */
static void add_plain_name(struct bytes *out, struct view key)
{
	bool digit = key.len && key.at[0] >= '0' && key.at[0] <= '9', own = begins(key, "__");
	bool ok = !digit || bytes_add_byte(out, '_');
	for (size_t i = 0; i < key.len && ok; i++) {
		uint8_t c = is_plain(key.at[i]) ? key.at[i] : '_';
		bool second = c == '_' && out->len == 1 && out->at[0] == '_';
		if ((key.at[i] & 0xc0) != 0x80 && (own || !second))
			ok = bytes_add_byte(out, c);
	}
}

static uint32_t name_in_text(struct series_labels *s)
{
	bool fits = !s->rules->name_max || s->text.len <= s->rules->name_max;
	return fits ? series_text(s, bytes_view(&s->text)) : 0;
}

uint32_t series_plain_name(struct series_labels *s, struct view key)
{
	s->text.len = 0;
	add_plain_name(&s->text, key);
	return name_in_text(s);
}

static uint32_t name_of(struct series_labels *s, struct view key)
{
	if (!s->rules->utf8 || (s->rules->service_name && view_is(key, "service.name")))
		return series_plain_name(s, key);
	s->text.len = 0;
	bytes_add(&s->text, key.at, key.len);
	return name_in_text(s);
}

/* The cut is never inside a character. */
static size_t cut_length(struct view text, size_t max)
{
	while (max && (text.at[max] & 0xc0) == 0x80)
		max--;
	return max;
}

static uint32_t value_of(struct series_labels *s, const struct attribute *a, bool *cut)
{
	size_t max = s->rules->value_max;
	if (a->type == VALUE_ARRAY && a->children.count == 1)
		a = &s->p->attributes.at[a->children.first];
	*cut = false;
	if (a->type == VALUE_STRING && (!max || string_view(s->p, a->string).len <= max))
		return intern(s, string_view(s->p, a->string), a->string);
	s->text.len = 0;
	if (!value_text_add(s->p, a, &s->text))
		s->p->over_cap = true;
	*cut = max && s->text.len > max;
	if (*cut)
		s->text.len = cut_length(bytes_view(&s->text), max);
	return series_text(s, bytes_view(&s->text));
}

/* The form that the attribute gets, which is computed once per packet. */
static struct series_known *known_of(struct series_labels *s, uint32_t index)
{
	struct series_known *known = &s->known[index];
	assert(index < s->known_room);
	const struct attribute a = s->p->attributes.at[index];
	struct view key = string_view(s->p, a.key);
	if (known->state != UNSEEN)
		return known;
	known->label.value = value_of(s, &a, &known->cut);
	known->state = LABEL;
	if (view_is(key, "__name__") || view_is(key, "__delta__"))
		known->state = OWN;
	else if (begins(key, "__") && !view_is(key, "__session_id__"))
		known->state = RESERVED;
	else if (!key.len || !known->label.value || begins(key, "pprof."))
		known->state = NOTHING;
	else if (!(known->label.name = name_of(s, key)))
		known->state = TOO_LONG;
	return known;
}

struct view series_text_in(const struct profiles *p, struct list attributes, const char *key)
{
	for (uint32_t i = 0; i < attributes.count && i < SERIES_LABELS_MAX; i++) {
		const struct attribute *a = &p->attributes.at[p->indices.at[attributes.first + i]];
		if (a->type == VALUE_STRING && string_is(p, a->key, key))
			return string_view(p, a->string);
	}
	return (struct view){ 0 };
}

struct view series_sent_name(const struct profiles *p, struct list resource, bool utf8)
{
	struct view name = series_text_in(p, resource, "__name__");
	bool ok = name.len <= KINDS_LONGEST && (!name.len || name.at[0] < '0' || name.at[0] > '9');
	for (size_t i = 0; i < name.len && ok; i++)
		ok = utf8 ? name.at[i] != ':' : is_plain(name.at[i]);
	return ok ? name : (struct view){ 0 };
}

/* Sets of labels. */

void series_begin(struct series_labels *s)
{
	s->set = ++s->stamp;
	s->count = s->fixed = 0;
}

static uint32_t names_max(const struct series_labels *s)
{
	uint32_t max = s->rules->names_max;
	return max && max < SERIES_LABELS_MAX ? max : SERIES_LABELS_MAX;
}

void series_put(struct series_labels *s, const char *name, struct view value)
{
	size_t max = s->rules->value_max;
	bool cut = max && value.len > max;
	s->text.len = 0;
	/* Growing the tables may move the bytes to which it points. */
	bytes_add(&s->text, value.at, cut ? cut_length(value, max) : value.len);
	struct label label = { series_text(s, view_of(name)),
			       series_text(s, bytes_view(&s->text)) };
	if (!label.value || *stamp_of(s, label.name) == s->set || s->count == names_max(s))
		return;
	*stamp_of(s, label.name) = s->set;
	s->lost[SERIES_CUT] += cut;
	s->labels[s->count++] = label;
	s->fixed = s->count;
}

/* Another attribute has the same name. That is a loss unless the values are equal. */
static bool says_same(const struct series_labels *s, struct label label)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->labels[i].name == label.name)
			return s->labels[i].value == label.value;
	return false;
}

static void take(struct series_labels *s, uint32_t attribute)
{
	const struct series_known *known = known_of(s, attribute);
	if (known->state == RESERVED || known->state == TOO_LONG)
		s->lost[known->state == RESERVED ? SERIES_RESERVED : SERIES_LONG_NAME]++;
	if (known->state != LABEL)
		return;
	uint32_t *stamp = stamp_of(s, known->label.name);
	if (*stamp == s->set) {
		s->lost[SERIES_COLLISION] += !says_same(s, known->label);
	} else if (s->count == names_max(s)) {
		s->lost[SERIES_TOO_MANY]++;
	} else {
		*stamp = s->set;
		s->lost[SERIES_CUT] += known->cut;
		s->labels[s->count++] = known->label;
	}
}

/* Reads at most as many attributes as a set can hold: one resource may have as many attributes as
 * it has Profiles. */
void series_take(struct series_labels *s, struct list attributes)
{
	uint32_t count =
		attributes.count < SERIES_LABELS_MAX ? attributes.count : SERIES_LABELS_MAX;
	for (uint32_t i = 0; i < count; i++)
		take(s, s->p->indices.at[attributes.first + i]);
	s->lost[SERIES_TOO_MANY] += attributes.count - count;
}

static int by_name(const void *left, const void *right, void *context)
{
	const struct series_labels *s = context;
	struct view a = string_view(s->p, ((const struct label *)left)->name);
	struct view b = string_view(s->p, ((const struct label *)right)->name);
	int order = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);
	return order ? order : (a.len > b.len) - (a.len < b.len);
}

void series_end(struct series_labels *s)
{
	qsort_r(s->labels, s->count, sizeof *s->labels, by_name, s);
}

struct list series_attributes(struct series_labels *s)
{
	struct profiles *p = s->p;
	struct list list = { p->indices.count, 0 };
	if (!profiles_room(p, &p->indices, s->count))
		return (struct list){ 0 };
	for (uint32_t i = 0; i < s->count; i++) {
		struct attribute a = { .key = s->labels[i].name,
				       .type = VALUE_STRING,
				       .string = s->labels[i].value };
		p->indices.at[list.first + list.count++] = profiles_attribute_new(p, a);
	}
	p->indices.count += list.count;
	return list;
}

/* Labels of samples. */

static bool is_number(const struct profiles *p, const struct attribute *a)
{
	while (a->type == VALUE_ARRAY && a->children.count)
		a = &p->attributes.at[a->children.first];
	return a->type == VALUE_INT;
}

/* The attribute as a string with a valid name. Returns the attribute itself if it already has this
 * form. */
static uint32_t clean_of(struct series_labels *s, uint32_t index, struct series_known *known)
{
	struct profiles *p = s->p;
	const struct attribute *a = &p->attributes.at[index];
	if (known->clean)
		return known->clean;
	known->clean = index;
	if (a->type != VALUE_STRING || a->unit || known->cut ||
	    !view_equal(string_view(p, a->key), string_view(p, known->label.name))) {
		struct attribute clean = { .key = known->label.name,
					   .type = VALUE_STRING,
					   .string = known->label.value,
					   .changed = 1 };
		known->clean = profiles_attribute_new(p, clean);
	}
	return known->clean;
}

/* The index of the attribute that the sample gets instead. 0: none. */
static uint32_t sample_label(struct series_labels *s, uint32_t index, uint32_t room)
{
	struct series_known *known = known_of(s, index);
	enum series_loss loss = SERIES_LOSSES;
	uint32_t *stamp = stamp_of(s, known->label.name);
	if (known->state == RESERVED || known->state == OWN)
		loss = SERIES_RESERVED;
	else if (known->state == TOO_LONG)
		loss = SERIES_LONG_NAME;
	else if (known->state != LABEL)
		return 0;
	else if (!s->rules->numbers && is_number(s->p, &s->p->attributes.at[index]))
		loss = SERIES_NUMBER;
	else if (*stamp == s->set || *stamp == s->stamp)
		loss = *stamp == s->set && says_same(s, known->label) ? SERIES_LOSSES
								      : SERIES_COLLISION;
	else if (!room)
		loss = SERIES_TOO_MANY;
	else {
		*stamp = s->stamp;
		s->lost[SERIES_CUT] += known->cut;
		return clean_of(s, index, known);
	}
	if (loss != SERIES_LOSSES)
		s->lost[loss]++;
	return 0;
}

/* The IDs of a link also become labels, so their names are reserved here. Returns the number of
 * names that they need; 0 if there is no room for them. */
static uint32_t settle_link(struct series_labels *s, struct sample *sample)
{
	static const char *const names[] = { "trace_id", "span_id" };
	if (!sample->link)
		return 0;
	bool fits = names_max(s) - s->count >= 2;
	for (int i = 0; i < 2; i++) {
		uint32_t *stamp = stamp_of(s, series_text(s, view_of(names[i])));
		fits = fits && *stamp != s->set;
		*stamp = *stamp == s->set ? *stamp : s->stamp;
	}
	if (fits)
		return 2;
	sample->link = 0;
	s->lost[SERIES_TOO_MANY] += 2;
	return 0;
}

bool series_clean_sample(struct series_labels *s, struct sample *sample)
{
	struct profiles *p = s->p;
	uint32_t link = sample->link;
	struct list old = sample->attributes;
	s->stamp++;
	uint32_t room = names_max(s) - s->count - settle_link(s, sample);
	bool same = true;
	struct list clean = { p->indices.count, 0 };
	if (!profiles_room(p, &p->indices, old.count))
		return false;
	for (uint32_t i = 0; i < old.count; i++) {
		uint32_t index = p->indices.at[old.first + i];
		uint32_t label = sample_label(s, index, room - clean.count);
		same = same && label == index;
		if (label)
			p->indices.at[clean.first + clean.count++] = label;
	}
	if (!same) {
		p->indices.count += clean.count;
		sample->attributes = clean;
	}
	return !same || sample->link != link;
}
