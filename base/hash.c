/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

static uint8_t secret[XXH_SECRET_DEFAULT_SIZE];
static pthread_once_t drawn = PTHREAD_ONCE_INIT;

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

static void draw_secret(void)
{
	hash_random(secret, sizeof secret);
}

uint64_t hash_bytes(const void *data, size_t len)
{
	pthread_once(&drawn, draw_secret);
	return XXH3_64bits_withSecret(data, len, secret, sizeof secret);
}

struct hash128 hash_bytes_128(const void *data, size_t len)
{
	pthread_once(&drawn, draw_secret);
	XXH128_hash_t h = XXH3_128bits_withSecret(data, len, secret, sizeof secret);
	return (struct hash128){ h.low64, h.high64 };
}
