/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/value.h"
#include "base/memory.h"

#include <string.h>

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
	if (change == VALUE_FINAL)
		return VALUE_SAME;
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
