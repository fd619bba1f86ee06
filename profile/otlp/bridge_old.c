/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/otlp/bridge_old.h"

static bool profile(struct bridge *b, struct view message)
{
	return old_profile(b->old, message);
}

/* Entry 0 of each table, and the slots of the cache: enough for most requests, and not more than
 * their size. */
static bool prepare(struct old *o, struct view request)
{
	struct bytes *cache = &o->buffer[OLD_CACHE];
	size_t slots = 64;
	for (int i = 1; i < BRIDGE_TABLES; i++) {
		struct view none = { NULL, 0 };
		o->b->count[i] = 1;
		if (!wire_add_len(&o->b->table[i], (uint32_t)i, none))
			return false;
	}
	/* What most requests need, so that these do not grow in small steps. */
	static const uint8_t large[] = { OLD_PARTS, OLD_RECORDS, OLD_INDICES };
	for (size_t i = 0; i < sizeof large; i++)
		if (!bytes_reserve(&o->buffer[large[i]], 64 + request.len / 8))
			return false;
	if (!bytes_reserve(&o->b->table[BRIDGE_STACK], request.len / 8) ||
	    !bytes_reserve(o->b->out, request.len / 2) ||
	    !bytes_reserve(&o->buffer[OLD_LIST], 1024) ||
	    !bytes_reserve(&o->buffer[OLD_ENTRY], 1024))
		return false;
	while (slots < 65536 && slots * 64 < request.len)
		slots *= 2;
	if (!bytes_reserve(cache, slots * sizeof(struct old_slot)))
		return false;
	cache->len = slots * sizeof(struct old_slot);
	memset(cache->at, 0, cache->len);
	return true;
}

static bool run(struct old *o, struct view request)
{
	return prepare(o, request) && (o->layout->per_profile || old_tables(o, request)) &&
	       bridge_resources(o->b, request, profile);
}

bool bridge_old(struct bridge *b, enum otlp_generation generation, struct view request)
{
	static const struct old_layout *const layouts[] = {
		[OTLP_1_3] = &old_layout_1_3,
		[OTLP_1_4] = &old_layout_1_4,
		[OTLP_1_6] = &old_layout_1_6,
		[OTLP_1_7] = &old_layout_1_7,
	};
	struct old old = { .b = b, .layout = layouts[generation] };
	b->old = &old;
	for (int i = 0; i < OLD_BUFFERS; i++)
		bridge_buffer(b, &old.buffer[i]);
	bool ok = run(&old, request);
	for (int i = 0; i < OLD_BUFFERS; i++)
		bytes_fini(&old.buffer[i]);
	b->old = NULL;
	return ok;
}
