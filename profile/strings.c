/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/strings.h"
#include "profile/request.h"
#include "profile/wire.h"

#include <assert.h>

bool strings_add(struct profiles *p, struct view text, struct span span, uint32_t *string)
{
	if (!profiles_room(p, &p->strings, 1))
		return false;
	*string = p->strings.count++;
	p->strings.at[*string] = (struct string){ .text = span };
	if (wire_utf8_ok(text))
		return true;
	uint32_t at = (uint32_t)p->added.len;
	p->strings.at[*string].repaired = 1;
	p->repaired_strings++;
	p->over_cap |= !wire_utf8_repair(&p->added, text);
	p->strings.at[*string].text = (struct span){ at | SPAN_ADDED, (uint32_t)p->added.len - at };
	return !p->over_cap;
}

bool strings_copy(struct profiles *p, struct view text, uint32_t *string)
{
	*string = 0;
	if (!text.len)
		return true;
	struct span span = profiles_bytes_new(p, text.at, text.len);
	if (!span.len)
		return false;
	if (wire_utf8_ok(span_view(p, span)))
		return strings_add(p, span_view(p, span), span, string);
	/* A repaired copy has at most three bytes for each; it must not move its source. */
	if (!bytes_reserve(&p->added, 3 * text.len)) {
		p->over_cap = true;
		return false;
	}
	return strings_add(p, span_view(p, span), span, string);
}

bool strings_list_add(struct profiles *p, struct list *list, uint32_t index)
{
	if (!profiles_room(p, &p->indices, 1))
		return false;
	if (!list->count)
		list->first = p->indices.count;
	assert(list->first + list->count == p->indices.count);
	p->indices.at[p->indices.count++] = index;
	list->count++;
	return true;
}

static bool has_key(const struct profiles *p, struct list list, struct view key)
{
	for (uint32_t i = 0; i < list.count; i++) {
		uint32_t index = p->indices.at[list.first + i];
		if (view_equal(string_view(p, p->attributes.at[index].key), key))
			return true;
	}
	return false;
}

bool strings_attributes(struct profiles *p, const struct metadatum *attributes, struct list *list)
{
	for (; attributes && attributes->name; attributes++) {
		struct attribute attribute = { .type = VALUE_STRING };
		if (!strings_copy(p, view_of(attributes->name), &attribute.key) ||
		    !strings_copy(p, view_of(attributes->value), &attribute.string))
			return false;
		attribute.bad_key = (uint8_t)p->strings.at[attribute.key].repaired;
		if (!has_key(p, *list, string_view(p, attribute.key)) &&
		    !strings_list_add(p, list, profiles_attribute_new(p, attribute)))
			return false;
	}
	return !p->over_cap;
}
