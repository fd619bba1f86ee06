/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/redaction_values.h"
#include "base/digest.h"
#include "base/hash.h"
#include "base/memory.h"

#include <assert.h>
#include <strings.h>

/* Room for a string that was searched, and for every replacement in it. */
#define TEXT_MAX (1 << 20)

struct redaction_hash {
	const char *name;
	size_t size, key_min; /* bytes; key_min 0: it has no key */
	void (*digest)(struct view key, struct view data, uint8_t out[DIGEST_MAX]);
};

static void hash_md5(struct view key, struct view data, uint8_t out[DIGEST_MAX])
{
	(void)key;
	digest_md5(data, out);
}

static void hash_sha1(struct view key, struct view data, uint8_t out[DIGEST_MAX])
{
	(void)key;
	digest_sha1(data, out);
}

static void hash_sha3(struct view key, struct view data, uint8_t out[DIGEST_MAX])
{
	(void)key;
	digest_sha3_256(data, out);
}

static void hash_hmac_sha256(struct view key, struct view data, uint8_t out[DIGEST_MAX])
{
	struct digest_key hmac;
	digest_key_init(&hmac, key);
	digest_hmac(&hmac, data, out);
}

static const struct redaction_hash hashes[] = {
	{ "md5", DIGEST_MD5_SIZE, 0, hash_md5 },
	{ "sha1", DIGEST_SHA1_SIZE, 0, hash_sha1 },
	{ "sha3", DIGEST_SIZE, 0, hash_sha3 },
	{ "hmac-sha256", DIGEST_SIZE, 32, hash_hmac_sha256 },
	{ "hmac-sha512", DIGEST_SHA512_SIZE, 64, digest_hmac_sha512 },
	{ 0 }
};

static void init_hash(struct redaction_values *values, const struct redaction_values_config *config,
		      struct faults *faults)
{
	const char *name = config->hash_function ? config->hash_function : "";
	const struct redaction_hash *hash = hashes;
	if (!*name)
		return;
	while (hash->name && strcasecmp(hash->name, name) != 0)
		hash++;
	if (!hash->name) {
		faults_add(faults, "hash_function: unknown (allowed functions: sha1, sha3, md5, "
				   "hmac-sha256, hmac-sha512)");
		return;
	}
	values->hash = hash;
	values->hmac_key = view_of(config->hmac_key ? config->hmac_key : "");
	if (values->hmac_key.len < hash->key_min)
		faults_relate(faults, "hash_function",
			      "hmac_key: must be at least %zu bytes long for %s", hash->key_min,
			      hash->name);
}

static void init_list(struct regex_list *list, const struct strings *patterns, const char *key,
		      bool check, struct faults *faults)
{
	struct error why;
	list->at = memory_array(patterns->count, sizeof *list->at);
	for (size_t i = 0; i < patterns->count; i++) {
		struct regex *regex = regex_new(patterns->at[i], REGEX_GO, &why);
		if (!regex || (check && !regex_check_cost(patterns->at[i], REGEX_GO, &why)))
			faults_add(faults, "%s[%zu]: %s", key, i, why.text);
		if (regex)
			list->at[list->count++] = regex;
	}
}

static void init(struct redaction_values *values, const struct redaction_values_config *config,
		 bool check, struct faults *faults)
{
	*values = (struct redaction_values){ .lines = regex_new(".*", REGEX_GO, NULL) };
	assert(values->lines);
	init_list(&values->blocked, config->blocked, "blocked_values", check, faults);
	init_list(&values->allowed, config->allowed, "allowed_values", check, faults);
	init_hash(values, config, faults);
}

bool redaction_values_init(struct redaction_values *values,
			   const struct redaction_values_config *config, struct error *err)
{
	struct problems problems = { 0 };
	struct faults faults = { .path = "", .problems = &problems };
	init(values, config, false, &faults);
	return problems_end(&problems, err);
}

void redaction_values_check(const struct redaction_values_config *config, struct faults *faults)
{
	struct redaction_values values;
	init(&values, config, true, faults);
	redaction_values_fini(&values);
}

static void fini_list(struct regex_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		regex_unref(&list->at[i]);
	memory_free(list->at);
}

void redaction_values_fini(struct redaction_values *values)
{
	fini_list(&values->blocked);
	fini_list(&values->allowed);
	regex_unref(&values->lines);
}

static bool add_replacement(const struct redaction_values *values, struct bytes *out,
			    struct view match)
{
	uint8_t digest[DIGEST_MAX];
	char hex[2 * DIGEST_MAX];
	if (!values->hash)
		return bytes_add_text(out, REDACTION_MASK);
	values->hash->digest(values->hmac_key, match, digest);
	digest_hex(digest, values->hash->size, hex);
	return bytes_add(out, hex, 2 * values->hash->size);
}

/* Of one character, in valid UTF-8. */
static size_t step(struct view text, size_t at)
{
	size_t end = at + 1;
	while (end < text.len && (text.at[end] & 0xc0) == 0x80)
		end++;
	return end;
}

/*
 * Replaces all matches, as Go's regexp does: an empty match directly behind another match is none.
 * False: a limit was reached.
 */
static bool replace(const struct redaction_values *values, const struct regex *regex,
		    struct regex_memory *memory, struct view text, struct bytes *out)
{
	size_t from = 0, copied = 0;
	out->len = 0;
	for (int matches = 0; from <= text.len; matches++) {
		enum regex_result result = regex_find(regex, memory, text, from);
		if (result == REGEX_NO)
			break;
		if (result == REGEX_ERROR || matches == REDACTION_MATCHES_MAX)
			return false;
		struct regex_span span = regex_group(memory, 0);
		struct view match = { text.at + span.start, span.end - span.start };
		if (!bytes_add(out, text.at + copied, span.start - copied))
			return false;
		if ((span.end > copied || !span.start) && !add_replacement(values, out, match))
			return false;
		copied = span.end;
		from = span.end > from ? span.end : step(text, from);
	}
	return bytes_add(out, text.at + copied, text.len - copied);
}

static void prepare(struct redaction_scratch *scratch)
{
	if (scratch->regex)
		return;
	scratch->regex = regex_memory_new();
	for (int i = 0; i < 2; i++) {
		bytes_init(&scratch->text[i], TEXT_MAX);
		bytes_reserve(&scratch->text[i], REGEX_TEXT_MAX);
	}
}

static struct redaction_verdict mask_whole(const struct redaction_values *values,
					   struct redaction_scratch *scratch, struct view text)
{
	struct bytes *out = &scratch->text[0];
	out->len = 0;
	add_replacement(values, out, text);
	return (struct redaction_verdict){ REDACTION_WHOLE, bytes_view(out) };
}

bool redaction_values_allow(const struct redaction_values *values,
			    struct redaction_scratch *scratch, struct view text)
{
	prepare(scratch);
	for (size_t i = 0; i < values->allowed.count; i++)
		if (regex_find(values->allowed.at[i], scratch->regex, text, 0) == REGEX_YES)
			return true;
	return false;
}

/* With the patterns one behind the other; clean if nothing changed. */
static struct redaction_verdict run(const struct redaction_values *values,
				    const struct regex_list *list,
				    struct redaction_scratch *scratch, struct view text)
{
	struct view current = text;
	for (size_t i = 0; i < list->count; i++) {
		struct bytes *out = &scratch->text[i % 2];
		if (!replace(values, list->at[i], scratch->regex, current, out))
			return mask_whole(values, scratch, text);
		current = bytes_view(out);
	}
	if (view_equal(current, text))
		return (struct redaction_verdict){ .outcome = REDACTION_CLEAN };
	return (struct redaction_verdict){ REDACTION_MASKED, current };
}

struct redaction_verdict redaction_values_search(const struct redaction_values *values,
						 struct redaction_scratch *scratch,
						 struct view text)
{
	struct hash128 key = hash_bytes_128(text.at, text.len);
	uint64_t *slot = &scratch->clean[key.low % REDACTION_CLEAN_SLOTS];
	if (*slot == (key.high | 1))
		return (struct redaction_verdict){ .outcome = REDACTION_CLEAN };
	if (redaction_values_allow(values, scratch, text))
		return (struct redaction_verdict){ .outcome = REDACTION_ALLOWED };
	struct redaction_verdict verdict = run(values, &values->blocked, scratch, text);
	if (verdict.outcome == REDACTION_CLEAN)
		*slot = key.high | 1;
	return verdict;
}

struct redaction_verdict redaction_values_mask(const struct redaction_values *values,
					       struct redaction_scratch *scratch, struct view text)
{
	struct bytes *out = &scratch->text[0];
	prepare(scratch);
	if (!replace(values, values->lines, scratch->regex, text, out))
		return mask_whole(values, scratch, text);
	return (struct redaction_verdict){ REDACTION_MASKED, bytes_view(out) };
}

void redaction_scratch_fini(struct redaction_scratch *scratch)
{
	regex_memory_unref(&scratch->regex);
	for (int i = 0; i < 2; i++)
		bytes_fini(&scratch->text[i]);
}
