/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* XXH3 keyed with a secret drawn once per process, so that no sender can aim at collisions. */
struct hash128 {
	uint64_t low, high;
};

uint64_t hash_bytes(const void *data, size_t len);
struct hash128 hash_bytes_128(const void *data, size_t len);

/* Unpredictable bytes from the kernel; aborts if there are none. */
void hash_random(void *out, size_t len);

#endif
