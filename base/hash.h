/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* XXH3 keyed with a secret that is generated once per process, so no sender can provoke
 * collisions. */
struct hash128 {
	uint64_t low, high;
};

uint64_t hash_bytes(const void *data, size_t len);
struct hash128 hash_bytes_128(const void *data, size_t len);

/* XXH32 with seed 0: a checksum that file formats prescribe (LZ4 frames). Not for tables. */
uint32_t hash_xxh32(const void *data, size_t len);

/* XXH3 without a secret: the same in every process, for what is written to disk. Not for tables. */
uint64_t hash_content(const void *data, size_t len);
struct hash128 hash_content_128(const void *data, size_t len);

/* Random bytes from the kernel; aborts if none are available. */
void hash_random(void *out, size_t len);

#endif
