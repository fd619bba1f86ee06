/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/sources.h"

#include "base/memory.h"

#include <string.h>

void sources_add(struct sources *s, const char *name, struct view content)
{
	s->at = memory_resize(s->at, (s->count + 1) * sizeof *s->at);
	s->at[s->count++] =
		(struct source){ memory_text(name), hash_bytes_128(content.at, content.len) };
}

void sources_fini(struct sources *s)
{
	for (size_t i = 0; i < s->count; i++)
		memory_free(s->at[i].name);
	memory_free(s->at);
	*s = (struct sources){ 0 };
}

bool sources_have(const struct sources *s, const struct source *source)
{
	for (size_t i = 0; i < s->count; i++)
		if (!strcmp(s->at[i].name, source->name) &&
		    s->at[i].content.low == source->content.low &&
		    s->at[i].content.high == source->content.high)
			return true;
	return false;
}
