/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/memory.h"
#include "profile/collect/split.h"

struct grouped {
	uint32_t group, index;
	struct resource resource;
};

static int by_group(const void *left, const void *right)
{
	const struct grouped *a = left, *b = right;
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	return a->index < b->index ? -1 : 1;
}

uint32_t split_groups(struct profiles *p, uint32_t *groups)
{
	struct grouped *at = memory_array(p->resources.count, sizeof *at);
	uint32_t count = 0, different = 0;
	for (uint32_t i = 0; i < p->resources.count; i++)
		if (groups[i])
			at[count++] = (struct grouped){ groups[i], i, p->resources.at[i] };
	if (count)
		qsort(at, count, sizeof *at, by_group);
	for (uint32_t i = 0; i < count; i++) {
		p->resources.at[i] = at[i].resource;
		groups[i] = at[i].group;
		different += !i || groups[i] != groups[i - 1];
	}
	p->resources.count = count;
	memory_free(at);
	return different;
}
