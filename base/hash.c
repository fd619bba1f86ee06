/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>
#include <sys/random.h>

static uint8_t secret[XXH_SECRET_DEFAULT_SIZE];

void hash_random(void *out, size_t len)
{
	uint8_t *at = out;
	while (len) {
		ssize_t got = getrandom(at, len, 0);
		if (got <= 0)
			abort();
		at += got;
		len -= (size_t)got;
	}
}

/* Before main, so that hashing, which the hot path does for every entry, need not ask. */
__attribute__((constructor)) static void draw_secret(void)
{
	hash_random(secret, sizeof secret);
}

/* One function for each class of lengths, with the library's code for that class alone in it: most
 * of what is hashed is short, and should not pay for the frame of the loop over long input. */
#define CLASS(name, type, min, max, hash) \
	__attribute__((noinline, flatten)) static type name(const void *data, size_t len) \
	{ \
		if (len - (min) > (max) - (min)) \
			__builtin_unreachable(); \
		return hash(data, len); \
	}
#define SHORT 16
#define MIDDLE 128

static inline uint64_t hash_64(const void *data, size_t len)
{
	return XXH3_64bits_withSecret(data, len, secret, sizeof secret);
}

static inline struct hash128 hash_128(const void *data, size_t len)
{
	XXH128_hash_t h = XXH3_128bits_withSecret(data, len, secret, sizeof secret);
	return (struct hash128){ h.low64, h.high64 };
}

CLASS(hash_short, uint64_t, 0, SHORT, hash_64)
CLASS(hash_middle, uint64_t, SHORT + 1, MIDDLE, hash_64)
CLASS(hash_long, uint64_t, MIDDLE + 1, SIZE_MAX, hash_64)
CLASS(hash_short_128, struct hash128, 0, SHORT, hash_128)
CLASS(hash_middle_128, struct hash128, SHORT + 1, MIDDLE, hash_128)
CLASS(hash_long_128, struct hash128, MIDDLE + 1, SIZE_MAX, hash_128)

uint64_t hash_bytes(const void *data, size_t len)
{
	return len <= SHORT    ? hash_short(data, len)
	       : len <= MIDDLE ? hash_middle(data, len)
			       : hash_long(data, len);
}

struct hash128 hash_bytes_128(const void *data, size_t len)
{
	return len <= SHORT    ? hash_short_128(data, len)
	       : len <= MIDDLE ? hash_middle_128(data, len)
			       : hash_long_128(data, len);
}

uint32_t hash_xxh32(const void *data, size_t len)
{
	return XXH32(data, len, 0);
}

uint64_t hash_content(const void *data, size_t len)
{
	return XXH3_64bits(data, len);
}

struct hash128 hash_content_128(const void *data, size_t len)
{
	XXH128_hash_t h = XXH3_128bits(data, len);
	return (struct hash128){ h.low64, h.high64 };
}
