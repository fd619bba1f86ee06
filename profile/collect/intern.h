/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_COLLECT_INTERN_H
#define PROFILE_COLLECT_INTERN_H

#include "profile/collect/put.h"

/*
 * A table that holds each entry once: an append-only buffer already in wire format (tag, length,
 * bytes; as the repeated field of a protobuf message) and a hash index on the bytes. Entry 0 is the
 * zero value, is always there and is never found: interning an empty entry gives an index of its
 * own.
 *
 * intern_mark and intern_rollback undo everything that was interned since the mark.
 */
struct intern_slot { /* small, for most lookups wait for one */
	uint32_t hash;
	/* base + index; up to base: free, for what was there before a reset has
	 * lower stamps */
	uint32_t stamp;
};

struct intern_entry {
	uint32_t at, len; /* of the bytes, in wire */
};

struct intern {
	struct bytes wire;
	struct intern_slot *slots;    /* open addressing, linear probing, at most 3/4 full */
	struct intern_entry *entries; /* by index; room for limit + 1 */
	uint32_t mask;                /* the slots are mask + 1 */
	uint32_t base;                /* see intern_slot */
	uint32_t sparse;              /* resets in a row with hardly any slot in use */
	uint32_t count,
		limit; /* entries, the zero entry included; with more than limit the slots grow */
	uint32_t mark;
	size_t mark_len;
	uint8_t tag;
	bool full; /* an entry did not fit any more: intern_put returned 0 */
};

/* max bounds the wire bytes; at most 2 GiB. */
void intern_init(struct intern *t, uint8_t tag, size_t max);
void intern_fini(struct intern *t);

/* Forgets all entries; costs nothing, and keeps the capacity unless hardly any of it was used for
 * long. */
void intern_reset(struct intern *t);

void intern_mark(struct intern *t);
void intern_rollback(struct intern *t);

/*
 * The index of the entry with these bytes (BYTES_SLACK readable behind them), which is made if
 * there is none; 0 when it does not fit. A new entry is the last in wire.
 */
uint32_t intern_put(struct intern *t, const uint8_t *at, size_t len);

/* The same for who knows the hash of the bytes; in one table all of one kind. */
uint32_t intern_put_hashed(struct intern *t, uint32_t hash, const uint8_t *at, size_t len);

/* Where an entry of at most `most` bytes may be built for intern_put, which then need not copy it;
 * NULL when full. */
static inline uint8_t *intern_room(struct intern *t, size_t max)
{
	if (!bytes_reserve(&t->wire, max + PUT_MAX)) {
		t->full = true;
		return NULL;
	}
	return t->wire.at + t->wire.len + PUT_HEADER;
}

/*
 * To be called before about `expected` entries are put: reads the slots in their order into the
 * cache. Each lookup would else wait for a slot of its own, for since the last request much else
 * has passed through the cache. With fewer lookups than lines to read it does nothing.
 */
void intern_warm(const struct intern *t, uint32_t expected);

size_t intern_footprint(const struct intern *t);

#endif
