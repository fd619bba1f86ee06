/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/memo.h"
#include "base/memory.h"

#include <stdbool.h>

static struct hash128 digest_of(uint32_t kind, const void *data, size_t len)
{
	struct hash128 digest = hash_bytes_128(data, len);
	digest.low ^= kind;
	if (!digest.low && !digest.high)
		digest.high = 1;
	return digest;
}

static struct memo_entry *slot_of(const struct memo *memo, struct hash128 digest)
{
	uint32_t mask = memo->room - 1;
	uint32_t at = (uint32_t)digest.high & mask;
	for (;; at = (at + 1) & mask) {
		struct memo_entry *entry = &memo->at[at];
		bool unused = !entry->digest.low && !entry->digest.high;
		if (unused ||
		    (entry->digest.low == digest.low && entry->digest.high == digest.high))
			return entry;
	}
}

static bool enlarge(struct memo *memo)
{
	uint32_t room = memo->room ? memo->room * 2 : 64;
	if (room > memo->max_bytes / sizeof *memo->at)
		return false;
	struct memo larger = *memo;
	larger.room = room;
	larger.at = memory_array(room, sizeof *larger.at);
	for (uint32_t i = 0; i < memo->room; i++)
		if (memo->at[i].digest.low || memo->at[i].digest.high)
			*slot_of(&larger, memo->at[i].digest) = memo->at[i];
	memory_free(memo->at);
	*memo = larger;
	return true;
}

struct memo_entry *memo_enter(struct memo *memo, uint32_t kind, const void *data, size_t len)
{
	if (memo->count >= memo->room / 2 && !enlarge(memo))
		return NULL;
	struct hash128 digest = digest_of(kind, data, len);
	struct memo_entry *entry = slot_of(memo, digest);
	if (!entry->digest.low && !entry->digest.high) {
		*entry = (struct memo_entry){ .digest = digest };
		memo->count++;
	}
	return entry;
}

struct memo_entry *memo_find(const struct memo *memo, uint32_t kind, const void *data, size_t len)
{
	if (!memo->count)
		return NULL;
	struct memo_entry *entry = slot_of(memo, digest_of(kind, data, len));
	return entry->digest.low || entry->digest.high ? entry : NULL;
}

void memo_fini(struct memo *memo)
{
	memory_free(memo->at);
	*memo = (struct memo){ .max_bytes = memo->max_bytes };
}
