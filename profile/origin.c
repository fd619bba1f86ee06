/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/origin.h"

#include "base/memory.h"

#include <string.h>

static size_t room_for(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

static const char *put(char **at, const char *text)
{
	if (!text)
		return NULL;
	char *copy = memcpy(*at, text, strlen(text) + 1);
	*at += strlen(text) + 1;
	return copy;
}

struct origin *origin_new(const char *key, const char *tenant, const struct metadatum *metadata)
{
	size_t count = 0, text = room_for(key) + room_for(tenant);
	for (; metadata && metadata[count].name; count++)
		text += room_for(metadata[count].name) + room_for(metadata[count].value);
	size_t list = (count + 1) * sizeof *metadata;
	struct origin *o = memory_new(sizeof *o + list + text);
	struct metadatum *copy = (struct metadatum *)(o + 1);
	char *at = (char *)(copy + count + 1);
	o->refs = 1;
	o->metadata = copy;
	o->key = put(&at, key);
	o->tenant = put(&at, tenant);
	for (size_t i = 0; i < count; i++)
		copy[i] = (struct metadatum){ put(&at, metadata[i].name),
					      put(&at, metadata[i].value) };
	return o;
}

struct origin *origin_ref(struct origin *origin)
{
	if (origin)
		atomic_fetch_add(&origin->refs, 1);
	return origin;
}

void origin_unref(struct origin **slot)
{
	struct origin *origin = *slot;
	*slot = NULL;
	if (origin && atomic_fetch_sub(&origin->refs, 1) == 1)
		memory_free(origin);
}
