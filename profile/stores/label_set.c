/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/stores/label_set.h"
#include "profile/wire.h"

#include <assert.h>

struct label_text *label_set_find(struct label_set *set, struct view name)
{
	for (uint32_t i = 0; i < set->count; i++)
		if (view_equal(set->at[i].name, name))
			return &set->at[i];
	return NULL;
}

static bool check_text(struct view text, int64_t max, const char *what, const char *setting,
		       uint32_t label, struct error *err)
{
	if (text.len > (size_t)max)
		return error_set(
			err, ERROR_INVALID,
			"label %u: its %s has %zu bytes, more than series_limits.%s (%lld)", label,
			what, text.len, setting, (long long)max);
	return !text.len || wire_utf8_slow(text.at, text.len) ||
	       error_set(err, ERROR_INVALID, "label %u: its %s is not valid UTF-8", label, what);
}

bool label_set_fits(const struct label_limits *limits, struct label_text label, uint32_t number,
		    struct error *err)
{
	if (!label.name.len)
		return error_set(err, ERROR_INVALID, "label %u: its name is empty", number);
	return check_text(label.name, limits->max_name_length, "name", "max_name_length", number,
			  err) &&
	       check_text(label.value, limits->max_value_length, "value", "max_value_length",
			  number, err);
}

bool label_set_add(struct label_set *set, const struct label_limits *limits,
		   struct label_text label, struct error *err)
{
	if (!label_set_fits(limits, label, ++set->seen, err))
		return false;
	if (set->count < LABEL_SET_MAX && set->count < limits->max_labels)
		set->at[set->count++] = label;
	return true;
}

bool label_set_check(const struct label_set *set, const struct label_limits *limits,
		     struct error *err)
{
	return set->seen == set->count ||
	       error_set(err, ERROR_INVALID,
			 "the series has %u labels, more than series_limits.max_labels (%lld)",
			 set->seen, (long long)limits->max_labels);
}

static uint32_t new_text(struct profiles *p, struct view text)
{
	return profiles_text_new(p, text.at, text.len);
}

static void remove_label(struct label_set *set, uint32_t i)
{
	set->count--;
	memmove(&set->at[i], &set->at[i + 1], (set->count - i) * sizeof *set->at);
}

void label_set_put(struct label_set *set, struct label_text label)
{
	struct label_text *earlier = label_set_find(set, label.name);
	assert(earlier || set->count < LABEL_SET_MAX);
	*(earlier ? earlier : &set->at[set->count++]) = label;
}

uint32_t label_set_drop_reserved(struct label_set *set)
{
	uint32_t before = set->count;
	for (uint32_t i = set->count; i-- > 0;) {
		struct view name = set->at[i].name;
		if (name.len >= 2 && !memcmp(name.at, "__", 2) && !view_is(name, "__session_id__"))
			remove_label(set, i);
	}
	return before - set->count;
}

uint32_t label_set_name_service(struct label_set *set)
{
	struct label_text *label = label_set_find(set, view_of("service_name"));
	if (!label || !label->value.len)
		return 0;
	bool displaces = label_set_find(set, view_of("service.name"));
	struct view value = label->value;
	remove_label(set, (uint32_t)(label - set->at));
	label_set_put(set, (struct label_text){ view_of("service.name"), value });
	return displaces;
}

static bool has_key(const struct profiles *p, struct list list, struct view key)
{
	for (uint32_t i = 0; i < list.count; i++) {
		const struct attribute *a = &p->attributes.at[p->indices.at[list.first + i]];
		if (view_equal(string_view(p, a->key), key))
			return true;
	}
	return false;
}

static void attach(struct profiles *p, struct list *list, struct label_text label)
{
	struct attribute a = { .type = VALUE_STRING };
	a.key = new_text(p, label.name);
	a.string = new_text(p, label.value);
	uint32_t index = profiles_attribute_new(p, a);
	if (index)
		p->indices.at[list->first + list->count++] = index;
}

bool label_set_attach(const struct label_set *set, struct profiles *p, struct resource *resource,
		      struct error *err)
{
	struct list list = profiles_list_copy(p, resource->attributes, set->count);
	if (p->over_cap)
		return profiles_over_cap(p, err);
	for (uint32_t i = 0; i < set->count; i++)
		if (set->at[i].value.len && !has_key(p, resource->attributes, set->at[i].name))
			attach(p, &list, set->at[i]);
	resource->attributes = list;
	return profiles_within_cap(p) || profiles_over_cap(p, err);
}
