/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include "base/bytes.h"

/* SHA-256 and HMAC-SHA256 (libcrypto); any thread. */
#define DIGEST_SIZE 32

void digest_sha256(struct view data, uint8_t out[DIGEST_SIZE]);
void digest_hmac(struct view key, struct view data, uint8_t out[DIGEST_SIZE]);

/* The first `count` bytes in lower-case hex; out takes 2 * count characters and no NUL. */
void digest_hex(const uint8_t *digest, size_t count, char *out);

#endif
