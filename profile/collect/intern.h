/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_COLLECT_INTERN_H
#define PROFILE_COLLECT_INTERN_H

#include "profile/collect/put.h"

/*
 * A table that holds each entry once: an append-only buffer in wire format (tag, length, bytes; as
 * the repeated field of a protobuf message) and a hash index on the bytes. Entry 0 is the zero
 * value. It always exists and is never found: interning an empty entry returns an index of its own.
 *
 * intern_rollback undoes everything that was interned since intern_mark.
 */
struct intern_slot { /* small, because most lookups wait for one */
	uint32_t hash;
	/* base + index; a stamp up to base is free: entries from before a reset have lower
	 * stamps */
	uint32_t stamp;
};

struct intern_entry {
	uint32_t at, len; /* of the bytes, in wire */
};

struct intern {
	struct bytes wire;
	struct intern_slot *slots;    /* open addressing, linear probing, at most 3/4 full */
	struct intern_entry *entries; /* by index; room for limit + 1 */
	uint32_t mask;                /* there are mask + 1 slots */
	uint32_t base;                /* see intern_slot */
	uint32_t sparse;              /* consecutive resets with hardly any slot in use */
	uint32_t count,
		limit; /* entries, including the zero entry; more than limit make the slots grow */
	uint32_t mark;
	size_t mark_len;
	uint8_t tag;
	bool full; /* an entry did not fit: intern_put returned 0 */
};

/* max bounds the wire bytes; at most 2 GiB. */
void intern_init(struct intern *t, uint8_t tag, size_t max);
void intern_fini(struct intern *t);

/* Forgets all entries. Costs nothing, and keeps the capacity unless hardly any of it was used for a
 * long time. */
void intern_reset(struct intern *t);

void intern_mark(struct intern *t);
void intern_rollback(struct intern *t);

/* The index of the entry with these bytes (BYTES_SLACK readable behind them); creates the entry if
 * there is none. 0: it does not fit. A new entry is the last in `wire`. */
uint32_t intern_put(struct intern *t, const uint8_t *at, size_t len);

/* The same for a caller that knows the hash of the bytes. All entries of one table must use the
 * same kind of hash. */
uint32_t intern_put_hashed(struct intern *t, uint32_t hash, const uint8_t *at, size_t len);

/* A place where an entry of at most `max` bytes may be built for intern_put, which then need not
 * copy it. NULL: full. */
static inline uint8_t *intern_room(struct intern *t, size_t max)
{
	if (!bytes_reserve(&t->wire, max + PUT_MAX)) {
		t->full = true;
		return NULL;
	}
	return t->wire.at + t->wire.len + PUT_HEADER;
}

/*
 * Call this before about `expected` entries are put: it reads the slots into the cache, in order.
 * Otherwise each lookup would wait for its own slot, because other data has passed through the
 * cache since the last request. It does nothing if there are fewer lookups than cache lines to
 * read.
 */
void intern_warm(const struct intern *t, uint32_t expected);

size_t intern_footprint(const struct intern *t);

#endif
