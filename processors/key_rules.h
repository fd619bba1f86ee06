/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_KEY_RULES_H
#define PROCESSORS_KEY_RULES_H

#include "base/hash.h"
#include "config/table.h"
#include "processors/regex.h"
#include "profile/sites.h"

/*
 * A set of keys, given by lists and by patterns: those that the allow-list permits at each site
 * with their permitted values, and those that `redaction` permits, ignores or blocks. Immutable
 * after init and shared by all workers. Each worker has a cache of verdicts that persists across
 * requests, because the same keys recur. It is keyed with the per-process secret of base/hash.h.
 */
struct key_rules_config {
	struct strings everywhere, patterns;
	struct strings sites[SITE_ENTITY + 1];
	const struct node *values; /* {key: [value, ...]} */
	/* The patterns are the Collector's, and may match any part of a key. Else they are PCRE2's,
	 * and must match all of it. */
	bool search;
	/* Is a key in the set if the engine cannot decide that, or if it is too long for the
	 * patterns? */
	bool doubt;
	/* In the configuration; NULL: `keys` and `key_patterns`. */
	const char *keys_name, *patterns_name;
};

struct key_rules {
	struct key_rules_config config;
	struct entry *entries; /* sorted by key */
	size_t entry_count;
	struct texts *values;
	size_t values_count;
	struct regex **patterns;
	size_t pattern_count;
	bool doubt;
};

struct key_rules_verdict {
	struct hash128 key;
	uint16_t sites;  /* 1 << enum site, for each where the key is in the set */
	uint16_t values; /* for key_rules_value_listed; 0: any value */
	bool known;
};

#define KEY_RULES_CACHE_SLOTS 1024

struct key_rules_cache { /* zeroed memory is an empty one */
	struct regex_memory *regex;
	struct key_rules_verdict slots[KEY_RULES_CACHE_SLOTS];
};

void key_rules_check(const struct key_rules_config *config, struct faults *faults);

/* Borrows the lists of config, not its nodes. fini must be called also after a failure. */
bool key_rules_init(struct key_rules *keys, const struct key_rules_config *config,
		    struct error *err);
void key_rules_fini(struct key_rules *keys);

struct key_rules_verdict key_rules_verdict(const struct key_rules *keys,
					   struct key_rules_cache *cache, struct view key);
bool key_rules_value_listed(const struct key_rules *keys, uint16_t values, struct view text);

/* For audits: the entry that has a key at a site, after key_rules_verdict said that one has; and
 * the key of a list of values, as the configuration has it. */
struct audit_rule key_rules_rule(const struct key_rules *keys, struct key_rules_cache *cache,
				 enum site site, struct view key);
const char *key_rules_values_key(const struct key_rules *keys, uint16_t values);

void key_rules_cache_fini(struct key_rules_cache *cache);

#endif
