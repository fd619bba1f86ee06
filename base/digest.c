/* SPDX-License-Identifier: Apache-2.0 */
#include "base/digest.h"

#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <stdlib.h>

void digest_sha256(struct view data, uint8_t out[DIGEST_SIZE])
{
	SHA256(data.at, data.len, out);
}

void digest_hmac(struct view key, struct view data, uint8_t out[DIGEST_SIZE])
{
	/* A missing digest would let the text itself pass for hashed. */
	if (!HMAC(EVP_sha256(), key.at, (int)key.len, data.at, data.len, out, NULL))
		abort();
}

void digest_hex(const uint8_t *digest, size_t count, char *out)
{
	for (size_t i = 0; i < count; i++) {
		*out++ = "0123456789abcdef"[digest[i] >> 4];
		*out++ = "0123456789abcdef"[digest[i] & 15];
	}
}
