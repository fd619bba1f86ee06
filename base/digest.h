/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <openssl/sha.h>

#include "base/bytes.h"

/* Digests (libcrypto); any thread. */
#define DIGEST_SIZE 32

void digest_sha256(struct view data, uint8_t out[DIGEST_SIZE]);

/* An HMAC key (RFC 2104), hashed once. A short string then costs two blocks of SHA-256. Immutable;
 * any thread. */
struct digest_key {
	SHA256_CTX inner, outer;
};

void digest_key_init(struct digest_key *key, struct view secret);
void digest_hmac(const struct digest_key *key, struct view data, uint8_t out[DIGEST_SIZE]);

enum { DIGEST_SHA1_SIZE = 20, DIGEST_MD5_SIZE = 16, DIGEST_SHA512_SIZE = 64, DIGEST_MAX = 64 };
void digest_sha3_256(struct view data, uint8_t out[DIGEST_SIZE]);
void digest_hmac_sha512(struct view key, struct view data, uint8_t out[DIGEST_SHA512_SIZE]);
/* Only where others prescribe them: passwords of htpasswd, and hashes that the Collector makes. */
void digest_sha1(struct view data, uint8_t out[DIGEST_SHA1_SIZE]);
void digest_md5(struct view data, uint8_t out[DIGEST_MD5_SIZE]);
/* Are both digests equal? In constant time. */
bool digest_equal(const uint8_t a[DIGEST_SIZE], const uint8_t b[DIGEST_SIZE]);
/* The first `count` bytes in lower-case hex; out takes 2 * count characters and no NUL. */
void digest_hex(const uint8_t *digest, size_t count, char *out);

#endif
