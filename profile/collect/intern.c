/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/collect/intern.h"
#include "base/hash.h"
#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>

#define SLOTS_MIN 16
#define SPARSE_MAX 1000 /* resets after which far too many slots are halved */

static void use_slots(struct intern *t, uint32_t slots)
{
	t->slots = memory_array(slots, sizeof *t->slots);
	t->mask = slots - 1;
	t->limit = slots / 4 * 3;
	t->entries = memory_resize(t->entries, ((size_t)t->limit + 1) * sizeof *t->entries);
	t->base = 0;
}

/* Stamps continue from the highest in use. Far too many slots only cost cache misses; growing again
 * costs more. */
static void forget(struct intern *t)
{
	uint32_t slots = t->mask + 1;
	bool wraps = t->base > UINT32_MAX - t->count - slots;
	bool sparse = slots > SLOTS_MIN && t->count < slots / 32;
	t->base += t->count;
	t->sparse = sparse ? t->sparse + 1 : 0;
	if (wraps || t->sparse > SPARSE_MAX) {
		memory_free(t->slots);
		use_slots(t, sparse ? slots / 2 : slots);
		t->sparse = 0;
	}
}

void intern_reset(struct intern *t)
{
	forget(t);
	t->full = false;
	t->wire.len = 0;
	t->count = 1;
	if (!bytes_reserve(&t->wire, PUT_HEADER))
		abort();
	put_header(t->wire.at, t->tag, 0);
	t->wire.len = PUT_HEADER;
	intern_mark(t);
}

void intern_init(struct intern *t, uint8_t tag, size_t max)
{
	assert(max <= INT32_MAX);
	*t = (struct intern){ .tag = tag };
	bytes_init(&t->wire, max);
	use_slots(t, SLOTS_MIN);
	intern_reset(t);
}

void intern_fini(struct intern *t)
{
	bytes_fini(&t->wire);
	memory_free(t->slots);
	memory_free(t->entries);
	*t = (struct intern){ 0 };
}

void intern_mark(struct intern *t)
{
	t->mark = t->count;
	t->mark_len = t->wire.len;
}

/* No entry from before the mark was placed behind one from after it (grow maintains this). The new
 * entries can therefore be removed without ending a probe too early. */
void intern_rollback(struct intern *t)
{
	for (uint32_t i = 0; i <= t->mask; i++)
		if (t->slots[i].stamp >= t->base + t->mark)
			t->slots[i].stamp = 0;
	t->count = t->mark;
	t->wire.len = t->mark_len;
	t->full = false;
}

/* Moves the slots with indices in [from, to) to their new places; stamps start again from 0. */
static void move_slots(struct intern *t, const struct intern_slot *old, uint32_t slots,
		       uint32_t base, uint32_t from, uint32_t to)
{
	for (const struct intern_slot *slot = old; slot < old + slots; slot++) {
		if (slot->stamp <= base || slot->stamp - base < from || slot->stamp - base >= to)
			continue;
		uint32_t i = slot->hash & t->mask;
		while (t->slots[i].stamp)
			i = (i + 1) & t->mask;
		t->slots[i] = *slot;
		t->slots[i].stamp -= base;
	}
}

static void grow(struct intern *t)
{
	struct intern_slot *old = t->slots;
	uint32_t slots = t->mask + 1, base = t->base;
	use_slots(t, slots * 2);
	move_slots(t, old, slots, base, 1, t->mark);
	move_slots(t, old, slots, base, t->mark, t->count);
	memory_free(old);
}

static uint32_t append(struct intern *t, struct intern_slot *slot, uint32_t hash,
		       const uint8_t *from, size_t len)
{
	if (!bytes_reserve(&t->wire, len + PUT_MAX)) {
		t->full = true;
		return 0;
	}
	uint8_t *start = t->wire.at + t->wire.len;
	uint8_t *content = start + 1 + wire_varint_len(len);
	if (len)
		put_copy(content, from, len);
	put_header(start, t->tag, len);
	uint32_t index = t->count++;
	*slot = (struct intern_slot){ hash, t->base + index };
	t->entries[index] =
		(struct intern_entry){ (uint32_t)(content - t->wire.at), (uint32_t)len };
	t->wire.len = (size_t)(content - t->wire.at) + len;
	if (t->count > t->limit)
		grow(t);
	return index;
}

static inline bool same_bytes(const uint8_t *a, const uint8_t *b, size_t len)
{
	for (; len > 8; a += 8, b += 8, len -= 8)
		if (wire_load(a) != wire_load(b))
			return false;
	return len == 0 || (wire_load(a) ^ wire_load(b)) << (64 - 8 * len) == 0;
}

static inline uint32_t put(struct intern *t, uint32_t hash, const uint8_t *at, size_t len)
{
	uint32_t i = hash & t->mask;
	for (; t->slots[i].stamp > t->base; i = (i + 1) & t->mask) {
		if (t->slots[i].hash != hash)
			continue;
		uint32_t index = t->slots[i].stamp - t->base;
		struct intern_entry entry = t->entries[index];
		if (entry.len == len && same_bytes(t->wire.at + entry.at, at, len))
			return index;
	}
	return append(t, &t->slots[i], hash, at, len);
}

uint32_t intern_put(struct intern *t, const uint8_t *at, size_t len)
{
	return put(t, (uint32_t)hash_bytes(at, len), at, len);
}

uint32_t intern_put_hashed(struct intern *t, uint32_t hash, const uint8_t *at, size_t len)
{
	return put(t, hash, at, len);
}

void intern_warm(const struct intern *t, uint32_t expected)
{
	/* a cache miss takes as long as reading about sixteen lines in order */
	enum { LINE = 64, FAR = 16 };
	size_t slots = (size_t)t->mask + 1, per_line = LINE / sizeof *t->slots;
	if (expected < slots / per_line / FAR)
		return;
#pragma GCC unroll 8
	for (const struct intern_slot *slot = t->slots, *end = slot + slots; slot < end;
	     slot += per_line)
		__builtin_prefetch(slot, 0, 2);
}

size_t intern_footprint(const struct intern *t)
{
	return t->wire.room + ((size_t)t->mask + 1) * sizeof *t->slots +
	       ((size_t)t->limit + 1) * sizeof *t->entries;
}
