/* SPDX-License-Identifier: Apache-2.0 */
/* The interface that OpenSSL 3 recommends looks up the algorithm for each digest: ten times the
 * cost of a short one. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/md5.h>

#include <assert.h>
#include <limits.h>

void digest_sha256(struct view data, uint8_t out[DIGEST_SIZE])
{
	SHA256(data.at, data.len, out);
}

static void absorb_padded(SHA256_CTX *state, const uint8_t key[SHA256_CBLOCK], uint8_t pad)
{
	uint8_t block[SHA256_CBLOCK];
	for (size_t i = 0; i < sizeof block; i++)
		block[i] = key[i] ^ pad;
	SHA256_Init(state);
	SHA256_Update(state, block, sizeof block);
}

void digest_key_init(struct digest_key *key, struct view secret)
{
	uint8_t block[SHA256_CBLOCK] = { 0 };
	if (secret.len > sizeof block)
		digest_sha256(secret, block);
	else if (secret.len)
		memcpy(block, secret.at, secret.len);
	absorb_padded(&key->inner, block, 0x36);
	absorb_padded(&key->outer, block, 0x5c);
}

void digest_hmac(const struct digest_key *key, struct view data, uint8_t out[DIGEST_SIZE])
{
	SHA256_CTX state = key->inner;
	SHA256_Update(&state, data.at, data.len);
	SHA256_Final(out, &state);
	state = key->outer;
	SHA256_Update(&state, out, DIGEST_SIZE);
	SHA256_Final(out, &state);
}

void digest_hex(const uint8_t *digest, size_t count, char *out)
{
	for (size_t i = 0; i < count; i++) {
		*out++ = "0123456789abcdef"[digest[i] >> 4];
		*out++ = "0123456789abcdef"[digest[i] & 15];
	}
}

void digest_sha3_256(struct view data, uint8_t out[DIGEST_SIZE])
{
	int ok = EVP_Digest(data.at, data.len, out, NULL, EVP_sha3_256(), NULL);
	assert(ok);
}

void digest_hmac_sha512(struct view key, struct view data, uint8_t out[DIGEST_SHA512_SIZE])
{
	assert(key.len <= INT_MAX);
	const uint8_t *made =
		HMAC(EVP_sha512(), key.at, (int)key.len, data.at, data.len, out, NULL);
	assert(made);
}

void digest_sha1(struct view data, uint8_t out[DIGEST_SHA1_SIZE])
{
	SHA1(data.at, data.len, out);
}

void digest_md5(struct view data, uint8_t out[DIGEST_MD5_SIZE])
{
	MD5(data.at, data.len, out);
}

bool digest_equal(const uint8_t a[DIGEST_SIZE], const uint8_t b[DIGEST_SIZE])
{
	return CRYPTO_memcmp(a, b, DIGEST_SIZE) == 0;
}
