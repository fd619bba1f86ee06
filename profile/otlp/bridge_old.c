/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/otlp/bridge_old.h"

enum { PASSED_FREE = 1 << 20, PASSED_FACTOR = 256 };

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
	static const uint8_t small[] = { OLD_PARTS, OLD_LIST, OLD_ENTRY };
	for (size_t i = 0; i < sizeof small; i++)
		if (!bytes_reserve(&o->buffer[small[i]], 1024))
			return false;
	if (!bytes_reserve(&o->b->table[BRIDGE_STACK], request.len / 8) ||
	    !bytes_reserve(o->b->out, request.len / 2))
		return false;
	while (slots < 65536 && slots * 128 < request.len)
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
	old.passed_max = PASSED_FREE + PASSED_FACTOR * (uint64_t)request.len;
	b->old = &old;
	for (int i = 0; i < OLD_BUFFERS; i++)
		bridge_buffer(b, &old.buffer[i]);
	bool ok = run(&old, request);
	for (int i = 0; i < OLD_BUFFERS; i++)
		bytes_fini(&old.buffer[i]);
	b->old = NULL;
	return ok;
}
