/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_ALLOWLIST_KEYS_H
#define PROCESSORS_ALLOWLIST_KEYS_H

#include "base/hash.h"
#include "config/table.h"
#include "processors/regex.h"
#include "profile/sites.h"

/*
 * The keys that the allow-list permits at each site, and their permitted values. Immutable after
 * init and shared by all workers. Each worker has a cache of verdicts that persists across
 * requests, because the same keys recur. It is keyed with the per-process secret of base/hash.h.
 */
struct allowlist_key_config {
	struct strings everywhere, patterns;
	struct strings sites[SITE_ENTITY + 1];
	const struct node *values; /* {key: [value, ...]} */
};

struct allowlist_keys {
	const struct allowlist_key_config *config;
	struct entry *entries; /* sorted by key */
	size_t entry_count;
	struct texts *values;
	size_t values_count;
	struct regex **patterns;
	size_t pattern_count;
};

struct allowlist_verdict {
	struct hash128 key;
	uint16_t sites;  /* 1 << enum site, for each where it is permitted */
	uint16_t values; /* for allowlist_value_listed; 0: any value */
	bool known;
};

#define ALLOWLIST_CACHE_SLOTS 1024

struct allowlist_cache { /* zeroed memory is an empty one */
	struct regex_memory *regex;
	struct allowlist_verdict slots[ALLOWLIST_CACHE_SLOTS];
};

bool allowlist_keys_check(const struct allowlist_key_config *config, struct error *err);

/* Borrows config, but not its nodes. fini must be called also after a failure. */
bool allowlist_keys_init(struct allowlist_keys *keys, const struct allowlist_key_config *config,
			 struct error *err);
void allowlist_keys_fini(struct allowlist_keys *keys);

struct allowlist_verdict allowlist_verdict(const struct allowlist_keys *keys,
					   struct allowlist_cache *cache, struct view key);
bool allowlist_value_listed(const struct allowlist_keys *keys, uint16_t values, struct view text);

/* For audits. The entry that permits a key at a site, after allowlist_verdict said that it is; and
 * the key of a list of values, as the configuration has it. */
struct audit_rule allowlist_rule(const struct allowlist_keys *keys, struct allowlist_cache *cache,
				 enum site site, struct view key);
const char *allowlist_values_key(const struct allowlist_keys *keys, uint16_t values);

void allowlist_cache_fini(struct allowlist_cache *cache);

#endif
