/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/value.h"
#include "base/memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The fewest digits that read back as the same double; plain between 1e-6 and 1e21, as in JSON. */
static int number_text(double number, char room[VALUE_TEXT_ROOM])
{
	if (!isfinite(number))
		return snprintf(room, VALUE_TEXT_ROOM, "%s",
				isnan(number) ? "NaN"
				: number > 0  ? "+Inf"
					      : "-Inf");
	int digits = 0;
	do
		snprintf(room, VALUE_TEXT_ROOM, "%.*e", digits, number);
	while (strtod(room, NULL) != number && ++digits < 17);
	char *mark = strchr(room, 'e');
	int exponent = (int)strtol(mark + 1, NULL, 10);
	double size = fabs(number);
	if (size == 0 || (size >= 1e-6 && size < 1e21))
		return snprintf(room, VALUE_TEXT_ROOM, "%.*f",
				digits > exponent ? digits - exponent : 0, number);
	size_t front = (size_t)(mark - room);
	return (int)front + snprintf(mark, VALUE_TEXT_ROOM - front, "e%+d", exponent);
}

bool value_text(const struct profiles *p, const struct attribute *a, char room[VALUE_TEXT_ROOM],
		struct view *out)
{
	int len;
	switch (a->type) {
	case VALUE_STRING:
		*out = string_view(p, a->string);
		return true;
	case VALUE_BOOL:
		*out = view_of(a->boolean ? "true" : "false");
		return true;
	case VALUE_INT:
		len = snprintf(room, VALUE_TEXT_ROOM, "%" PRId64, attribute_integer(a));
		break;
	case VALUE_DOUBLE:
		len = number_text(attribute_number(a), room);
		break;
	default:
		return false;
	}
	*out = (struct view){ (const uint8_t *)room, (size_t)len };
	return true;
}

/* Begins a new list of children with those before the first change. */
static bool begin_copy(struct profiles *p, struct list old, uint32_t before, struct list *fresh)
{
	if (!profiles_room(p, &p->attributes, old.count))
		return false;
	*fresh = (struct list){ p->attributes.count, before };
	memcpy(p->attributes.at + fresh->first, p->attributes.at + old.first,
	       before * sizeof *p->attributes.at);
	p->attributes.count += old.count;
	return true;
}

static enum value_change visit_child(struct profiles *p, bool keyed, struct attribute *child,
				     value_visit *visit, void *context)
{
	enum value_change change = visit(context, keyed, child);
	if (change == VALUE_REMOVED || !value_is_nested(child))
		return change;
	struct list inner = value_rewrite(p, child, visit, context);
	if (inner.first == child->children.first && inner.count == child->children.count)
		return change;
	child->children = inner;
	return VALUE_CHANGED;
}

struct list value_rewrite(struct profiles *p, const struct attribute *parent, value_visit *visit,
			  void *context)
{
	struct list old = parent->children, fresh = old;
	bool keyed = parent->type == VALUE_KVLIST, copying = false;
	for (uint32_t i = 0; i < old.count; i++) {
		struct attribute child = p->attributes.at[old.first + i];
		enum value_change change = visit_child(p, keyed, &child, visit, context);
		if (change != VALUE_SAME && !copying) {
			if (!begin_copy(p, old, i, &fresh))
				return (struct list){ 0 };
			copying = true;
		}
		if (copying && change != VALUE_REMOVED)
			p->attributes.at[fresh.first + fresh.count++] = child;
	}
	return fresh;
}

#define MEMO_KEEP 65536

void value_memo_clear(struct value_memo *memo, uint32_t count)
{
	if (count > memo->room) {
		value_memo_fini(memo);
		memo->at = memory_array(count, sizeof *memo->at);
		memo->room = count;
	} else if (count) {
		memset(memo->at, 0, count * sizeof *memo->at);
	}
	memo->count = count;
}

void value_memo_trim(struct value_memo *memo)
{
	if (memo->room > MEMO_KEEP)
		value_memo_fini(memo);
}

void value_memo_fini(struct value_memo *memo)
{
	memory_free(memo->at);
	*memo = (struct value_memo){ 0 };
}
