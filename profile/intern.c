/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/intern.h"
#include "base/hash.h"
#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>

#define SLOTS_MIN 16

void intern_init(struct intern *t, uint8_t tag, size_t max)
{
	assert(max <= INT32_MAX);
	*t = (struct intern){ .tag = tag };
	bytes_init(&t->wire, max);
	intern_reset(t);
}

void intern_fini(struct intern *t)
{
	bytes_fini(&t->wire);
	memory_free(t->slots);
	*t = (struct intern){ 0 };
}

/* Enough for the entries of last time, but at least half of what there was. */
static uint32_t slots_wanted(const struct intern *t)
{
	uint32_t least = t->mask / 2 + 1, want = SLOTS_MIN;
	while (want < least || (uint64_t)want * 3 < (uint64_t)t->count * 4)
		want *= 2;
	return want < t->room || !t->room ? want : t->room;
}

static void use_slots(struct intern *t, uint32_t slots)
{
	if (slots > t->room) {
		t->slots = memory_resize(t->slots, slots * sizeof *t->slots);
		t->room = slots;
	}
	memset(t->slots, 0, slots * sizeof *t->slots);
	t->mask = slots - 1;
}

void intern_reset(struct intern *t)
{
	use_slots(t, slots_wanted(t));
	t->full = false;
	t->wire.len = 0;
	t->count = 1;
	if (!bytes_reserve(&t->wire, PUT_HEADER))
		abort();
	put_header(t->wire.at, t->tag, 0);
	t->wire.len = PUT_HEADER;
	intern_mark(t);
}

void intern_mark(struct intern *t)
{
	t->mark = t->count;
	t->mark_len = t->wire.len;
}

/* No entry from before the mark was placed behind one from after it (grow keeps to that), so these may
 * simply go: no probe ends too early. */
void intern_rollback(struct intern *t)
{
	for (uint32_t i = 0; i <= t->mask; i++)
		if (t->slots[i].index >= t->mark)
			t->slots[i].index = 0;
	t->count = t->mark;
	t->wire.len = t->mark_len;
	t->full = false;
}

static void place(struct intern *t, struct intern_slot slot)
{
	uint32_t i = slot.hash & t->mask;
	while (t->slots[i].index)
		i = (i + 1) & t->mask;
	t->slots[i] = slot;
}

static void grow(struct intern *t)
{
	struct intern_slot *old = t->slots;
	uint32_t count = t->mask + 1;
	t->slots = NULL;
	t->room = 0;
	use_slots(t, count * 2);
	for (uint32_t i = 0; i < count; i++)
		if (old[i].index && old[i].index < t->mark)
			place(t, old[i]);
	for (uint32_t i = 0; i < count; i++)
		if (old[i].index >= t->mark)
			place(t, old[i]);
	memory_free(old);
}

static uint32_t append(struct intern *t, struct intern_slot *slot, uint32_t hash,
		       const uint8_t *from, size_t len)
{
	if (!bytes_reserve(&t->wire, len + PUT_MOST)) {
		t->full = true;
		return 0;
	}
	uint8_t *start = t->wire.at + t->wire.len;
	uint8_t *content = start + 1 + wire_varint_len(len);
	if (len > 32)
		memmove(content, from, len);
	else if (len)
		put_copy(content, from, len);
	put_header(start, t->tag, len);
	*slot = (struct intern_slot){ hash, t->count, (uint32_t)(content - t->wire.at), (uint32_t)len };
	t->wire.len = (size_t)(content - t->wire.at) + len;
	uint32_t index = t->count++;
	if ((uint64_t)t->count * 4 > ((uint64_t)t->mask + 1) * 3)
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

uint32_t intern_put(struct intern *t, const uint8_t *at, size_t len)
{
	uint32_t hash = (uint32_t)hash_bytes(at, len);
	uint32_t i = hash & t->mask;
	for (; t->slots[i].index; i = (i + 1) & t->mask) {
		const struct intern_slot *slot = &t->slots[i];
		if (slot->hash == hash && slot->len == len &&
		    same_bytes(t->wire.at + slot->at, at, len))
			return slot->index;
	}
	return append(t, &t->slots[i], hash, at, len);
}

size_t intern_footprint(const struct intern *t)
{
	return t->wire.room + t->room * sizeof *t->slots;
}
