/* SPDX-License-Identifier: Apache-2.0 */
#include "extensions/htpasswd.h"

#include <crypt.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/digest.h"
#include "base/memory.h"

/* bcrypt: 2^10 rounds take about 50 ms; crypt: 5,000 rounds are the default. */
enum { COST_MAX = 12, ROUNDS_MAX = 50000, APR1_ROUNDS = 1000, SALT_MAX = 8 };

struct entry {
	char *user, *hash;
};

struct htpasswd {
	struct entry *at;
	size_t count;
};

/* ---- the file ---- */

static bool starts(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_bcrypt(const char *hash)
{
	return starts(hash, "$2a$") || starts(hash, "$2b$") || starts(hash, "$2y$");
}

static bool is_crypt(const char *hash)
{
	return is_bcrypt(hash) || starts(hash, "$1$") || starts(hash, "$5$") || starts(hash, "$6$");
}

static bool is_too_slow(const char *hash)
{
	const char *rounds = strstr(hash, "$rounds=");
	if (is_bcrypt(hash))
		return strtol(hash + 4, NULL, 10) > COST_MAX;
	return is_crypt(hash) && rounds && strtol(rounds + 8, NULL, 10) > ROUNDS_MAX;
}

static bool add_line(struct htpasswd *h, const char *line, size_t len, size_t number,
		     struct error *err)
{
	while (len && (line[len - 1] == '\r' || line[len - 1] == ' ' || line[len - 1] == '\t'))
		len--;
	if (!len || *line == '#')
		return true;
	const char *colon = memchr(line, ':', len);
	if (!colon || colon == line || memchr(line, '\0', len))
		return error_set(err, ERROR_CONFIG, "line %zu is not user:hash", number);
	h->at = memory_resize(h->at, (h->count + 1) * sizeof *h->at);
	struct entry *e = &h->at[h->count++];
	e->user = memory_text_of(line, (size_t)(colon - line));
	e->hash = memory_text_of(colon + 1, len - (size_t)(colon + 1 - line));
	if (*e->hash == '$' && !htpasswd_is_slow(e->hash))
		return error_set(
			err, ERROR_CONFIG,
			"line %zu: unsupported hash; use bcrypt, SHA-256 or SHA-512 crypt, or "
			"MD5",
			number);
	if (is_too_slow(e->hash))
		return error_set(
			err, ERROR_CONFIG,
			"line %zu: the hash is too slow to check; use bcrypt with a cost of at "
			"most %d, or at most %d rounds",
			number, (int)COST_MAX, (int)ROUNDS_MAX);
	return true;
}

struct htpasswd *htpasswd_new(struct view text, struct error *err)
{
	struct htpasswd *h = memory_new(sizeof *h);
	const char *at = (const char *)text.at, *end = at + text.len;
	bool ok = true;
	for (size_t number = 1; ok && at < end; number++) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((line_end ? line_end : end) - at);
		ok = add_line(h, at, len, number, err);
		at += len + 1;
	}
	if (ok && !h->count)
		ok = error_set(err, ERROR_CONFIG, "there is no user");
	if (!ok)
		htpasswd_unref(&h);
	return h;
}

void htpasswd_unref(struct htpasswd **slot)
{
	struct htpasswd *h = *slot;
	*slot = NULL;
	if (!h)
		return;
	for (size_t i = 0; i < h->count; i++) {
		memory_free(h->at[i].user);
		memory_free(h->at[i].hash);
	}
	memory_free(h->at);
	memory_free(h);
}

const char *htpasswd_find(const struct htpasswd *h, const char *user)
{
	for (size_t i = 0; i < h->count; i++)
		if (strcmp(h->at[i].user, user) == 0)
			return h->at[i].hash;
	return NULL;
}

/* ---- hashes ---- */

static bool same(struct view a, struct view b)
{
	uint8_t left[DIGEST_SIZE], right[DIGEST_SIZE];
	digest_sha256(a, left);
	digest_sha256(b, right);
	return digest_equal(left, right);
}

/* base64(SHA-1(password salt) salt); {SHA} has no salt. */
static bool matches_sha(const char *encoded, const char *password)
{
	uint8_t digest[DIGEST_SHA1_SIZE];
	struct bytes stored, salted;
	bytes_init(&stored, 256);
	bytes_init(&salted, strlen(password) + 256);
	bool ok = base64_decode(&stored, view_of(encoded)) && stored.len >= DIGEST_SHA1_SIZE &&
		  bytes_add_text(&salted, password) &&
		  bytes_add(&salted, stored.at + DIGEST_SHA1_SIZE, stored.len - DIGEST_SHA1_SIZE);
	if (ok) {
		digest_sha1(bytes_view(&salted), digest);
		ok = same((struct view){ digest, sizeof digest },
			  (struct view){ stored.at, DIGEST_SHA1_SIZE });
	}
	bytes_fini(&stored);
	bytes_fini(&salted);
	return ok;
}

/* The 22 characters of MD5 crypt's own base64. */
static void apr1_print(const uint8_t d[DIGEST_MD5_SIZE], char *out)
{
	static const char alphabet[] =
		"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	static const uint8_t order[][3] = {
		{ 0, 6, 12 }, { 1, 7, 13 }, { 2, 8, 14 }, { 3, 9, 15 }, { 4, 10, 5 }
	};
	for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
		uint32_t v = (uint32_t)d[order[i][0]] << 16 | (uint32_t)d[order[i][1]] << 8 |
			     d[order[i][2]];
		for (int k = 0; k < 4; k++, v >>= 6)
			*out++ = alphabet[v & 63];
	}
	*out++ = alphabet[d[11] & 63];
	*out++ = alphabet[d[11] >> 6];
	*out = '\0';
}

/* One of the 1,000 rounds. */
static void apr1_round(int i, const char *password, struct view salt, uint8_t d[DIGEST_MD5_SIZE])
{
	struct bytes b;
	bytes_init(&b, 2 * strlen(password) + salt.len + DIGEST_MD5_SIZE);
	if (i & 1)
		bytes_add_text(&b, password);
	else
		bytes_add(&b, d, DIGEST_MD5_SIZE);
	if (i % 3)
		bytes_add(&b, salt.at, salt.len);
	if (i % 7)
		bytes_add_text(&b, password);
	if (i & 1)
		bytes_add(&b, d, DIGEST_MD5_SIZE);
	else
		bytes_add_text(&b, password);
	digest_md5(bytes_view(&b), d);
	bytes_fini(&b);
}

/* The digest before the rounds. */
static void apr1_begin(const char *password, struct view salt, uint8_t d[DIGEST_MD5_SIZE])
{
	size_t len = strlen(password);
	struct bytes b;
	bytes_init(&b, 4 * len + 2 * salt.len + 128);
	bytes_add_text(&b, password);
	bytes_add(&b, salt.at, salt.len);
	bytes_add_text(&b, password);
	digest_md5(bytes_view(&b), d);
	b.len = 0;
	bytes_add_text(&b, password);
	bytes_add_text(&b, "$apr1$");
	bytes_add(&b, salt.at, salt.len);
	for (size_t left = len; left; left -= left < DIGEST_MD5_SIZE ? left : DIGEST_MD5_SIZE)
		bytes_add(&b, d, left < DIGEST_MD5_SIZE ? left : DIGEST_MD5_SIZE);
	for (size_t bits = len; bits; bits >>= 1)
		bytes_add_byte(&b, bits & 1 || !len ? 0 : (uint8_t)*password);
	digest_md5(bytes_view(&b), d);
	bytes_fini(&b);
}

/* Apache's variant of MD5 crypt (apr_md5.c describes it). */
static bool matches_apr1(const char *hash, const char *password)
{
	uint8_t d[DIGEST_MD5_SIZE];
	char printed[24];
	const char *salt_at = hash + strlen("$apr1$"), *end = strchr(salt_at, '$');
	if (!end || end - salt_at > SALT_MAX)
		return false;
	struct view salt = { (const uint8_t *)salt_at, (size_t)(end - salt_at) };
	apr1_begin(password, salt, d);
	for (int i = 0; i < APR1_ROUNDS; i++)
		apr1_round(i, password, salt, d);
	apr1_print(d, printed);
	return same(view_of(printed), view_of(end + 1));
}

static bool matches_crypt(const char *hash, const char *password)
{
	struct crypt_data *data = memory_new(sizeof *data);
	const char *made = crypt_r(password, hash, data);
	bool ok = made && same(view_of(made), view_of(hash));
	memory_free(data);
	return ok;
}

bool htpasswd_is_slow(const char *hash)
{
	return is_crypt(hash) || starts(hash, "$apr1$");
}

bool htpasswd_matches(const char *hash, const char *password)
{
	if (is_crypt(hash))
		return matches_crypt(hash, password);
	if (starts(hash, "$apr1$"))
		return matches_apr1(hash, password);
	if (starts(hash, "{SHA}"))
		return matches_sha(hash + 5, password);
	if (starts(hash, "{SSHA}"))
		return matches_sha(hash + 6, password);
	return same(view_of(hash), view_of(password));
}
