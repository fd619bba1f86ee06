/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_MEMO_H
#define PROFILE_MEMO_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

/*
 * Remembers what was made of which bytes. Keys are known by their digest alone: 128 bits, keyed
 * with the secret of the process, so that no sender can make two of them meet. One thread; zeroed
 * memory with max_bytes set is an empty memo.
 */
struct memo_entry {
	struct hash128 digest;  /* 0, 0: free */
	uint32_t first, second; /* whatever the owner keeps; 0 in a new entry */
};

struct memo {
	struct memo_entry *at;
	uint32_t count, room; /* room: 0 or a power of two */
	size_t max_bytes;
};

void memo_fini(struct memo *memo);

/*
 * The entry of these bytes under `kind` (a small number that keeps different things apart); a new
 * one, with both numbers 0, if there was none. NULL: it would pass max_bytes. Valid until the next
 * call.
 */
struct memo_entry *memo_enter(struct memo *memo, uint32_t kind, const void *data, size_t len);

/* The entry, or NULL. */
struct memo_entry *memo_find(const struct memo *memo, uint32_t kind, const void *data, size_t len);

#endif
