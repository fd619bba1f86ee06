/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_VALUE_H
#define PROCESSORS_VALUE_H

#include "profile/profiles.h"

static inline bool value_is_nested(const struct attribute *a)
{
	return a->type == VALUE_ARRAY || a->type == VALUE_KVLIST;
}

/*
 * Rewrites nested values of arrays and maps, innermost last. visit gets a copy of each child and
 * may change its value (keyed: the child is in a map). Returns the resulting children: the same
 * list if nothing changed, else a new one, because records are shared. Empty when over the cap.
 */
enum value_change {
	VALUE_SAME,
	VALUE_CHANGED,
	VALUE_REMOVED,
	VALUE_FINAL /* the same, and what is nested in it is not visited */
};
typedef enum value_change value_visit(void *context, bool keyed, struct attribute *child);

struct list value_rewrite(struct profiles *p, const struct attribute *parent, value_visit *visit,
			  void *context);

/* The decision for each entry of a table during one pass; zero: none yet. */
struct value_memo {
	uint32_t *at;
	uint32_t count, room;
};

/* The slot of an entry. An entry that was added later has the slot `fresh`, which is valid only
 * within the caller. */
static inline uint32_t *value_memo_at(struct value_memo *memo, uint32_t index, uint32_t *fresh)
{
	return index < memo->count ? &memo->at[index] : fresh;
}

void value_memo_clear(struct value_memo *memo, uint32_t count);
/* Releases memory that only a large request needed. */
void value_memo_trim(struct value_memo *memo);
void value_memo_fini(struct value_memo *memo);

#endif
