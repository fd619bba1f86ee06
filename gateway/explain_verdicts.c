/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/explain_verdicts.h"

#include "base/hash.h"
#include "base/memory.h"

#include <string.h>

enum { ROOM_MIN = 64 };

/* The room is a power of two. */
static uint32_t *bucket_of(const struct explain_verdicts *v, enum site site, const char *key)
{
	uint64_t hash = hash_bytes(key, strlen(key)) + site;
	return &v->buckets[hash & (v->room - 1)];
}

static void link_verdict(struct explain_verdicts *v, uint32_t index)
{
	struct explain_verdict *verdict = &v->at[index];
	uint32_t *bucket = bucket_of(v, verdict->site, verdict->key);
	verdict->earlier = *bucket;
	*bucket = index + 1;
}

static void grow(struct explain_verdicts *v)
{
	v->room = v->room ? 2 * v->room : ROOM_MIN;
	v->at = memory_resize(v->at, v->room * sizeof *v->at);
	memory_free(v->buckets);
	v->buckets = memory_array(v->room, sizeof *v->buckets);
	for (uint32_t i = 0; i < v->count; i++)
		link_verdict(v, i);
}

void explain_verdicts_fini(struct explain_verdicts *v)
{
	for (uint32_t i = 0; i < v->count; i++) {
		memory_free(v->at[i].key);
		memory_free(v->at[i].what);
		memory_free(v->at[i].processor);
		memory_free(v->at[i].entry);
		memory_free(v->at[i].source);
	}
	memory_free(v->at);
	memory_free(v->buckets);
}

struct explain_verdict *explain_verdicts_add(struct explain_verdicts *v, enum site site,
					     const char *key, const char *what)
{
	if (v->count == v->room)
		grow(v);
	v->at[v->count] = (struct explain_verdict){ .site = site,
						    .key = memory_text(key),
						    .what = memory_text(what) };
	link_verdict(v, v->count);
	return &v->at[v->count++];
}

/* From this place in its bucket on. */
static struct explain_verdict *look(const struct explain_verdicts *v, uint32_t place,
				    enum site site, const char *key)
{
	for (; place; place = v->at[place - 1].earlier)
		if (v->at[place - 1].site == site && !strcmp(v->at[place - 1].key, key))
			return &v->at[place - 1];
	return NULL;
}

struct explain_verdict *explain_verdicts_find(const struct explain_verdicts *v, enum site site,
					      const char *key)
{
	return v->room ? look(v, *bucket_of(v, site, key), site, key) : NULL;
}

struct explain_verdict *explain_verdicts_earlier(const struct explain_verdicts *v,
						 const struct explain_verdict *verdict)
{
	return look(v, verdict->earlier, verdict->site, verdict->key);
}
