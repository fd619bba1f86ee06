/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/allowlist_keys.h"
#include "base/memory.h"
#include "processors/value.h"

#include <stdlib.h>

#define ALL_SITES ((uint16_t)((2u << SITE_ENTITY) - 2))
#define KEY_PATTERN_MAX 1024 /* bytes; a longer key matches no pattern */

struct texts { /* sorted; copies, for the configuration's tree may go */
	char *key;
	struct view *at;
	size_t count;
};

struct entry { /* of one key; sorted by it */
	struct view key;
	uint16_t sites;  /* 1 << enum site */
	uint16_t values; /* index in values + 1; 0: any value */
};

static int compare_views(const void *a, const void *b)
{
	const struct view *x = a, *y = b;
	int order = memcmp(x->at, y->at, x->len < y->len ? x->len : y->len);
	return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* Both kinds of records begin with their text. */
static const void *find_text(const void *at, size_t count, size_t size, struct view text)
{
	return count ? bsearch(&text, at, count, size, compare_views) : NULL;
}

static struct allowlist_verdict judge(const struct allowlist_keys *keys, struct regex_memory *regex,
				      struct view key)
{
	struct allowlist_verdict v = { .known = true };
	const struct entry *entry =
		find_text(keys->entries, keys->entry_count, sizeof *keys->entries, key);
	if (entry) {
		v.sites = entry->sites;
		v.values = entry->values;
	}
	if (key.len > KEY_PATTERN_MAX)
		return v;
	/* An engine error permits nothing. */
	for (size_t i = 0; i < keys->pattern_count && v.sites != ALL_SITES; i++)
		if (regex_find(keys->patterns[i], regex, key, 0) == REGEX_YES)
			v.sites = ALL_SITES;
	return v;
}

struct allowlist_verdict allowlist_verdict(const struct allowlist_keys *keys,
					   struct allowlist_cache *cache, struct view key)
{
	struct hash128 hash = hash_bytes_128(key.at, key.len);
	struct allowlist_verdict *slot = &cache->slots[hash.low % ALLOWLIST_CACHE_SLOTS];
	if (!slot->known || slot->key.low != hash.low || slot->key.high != hash.high) {
		if (!cache->regex)
			cache->regex = regex_memory_new();
		*slot = judge(keys, cache->regex, key);
		slot->key = hash;
	}
	return *slot;
}

/* From 1; 0: it is not listed. */
static size_t number_of(const struct strings *list, struct view key)
{
	for (size_t i = 0; i < list->count; i++)
		if (view_is(key, list->at[i]))
			return i + 1;
	return 0;
}

struct audit_rule allowlist_rule(const struct allowlist_keys *keys, struct allowlist_cache *cache,
				 enum site site, struct view key)
{
	size_t number = number_of(&keys->config->everywhere, key);
	if (number)
		return (struct audit_rule){ .row = "keys", .number = number };
	number = number_of(&keys->config->sites[site], key);
	if (number)
		return (struct audit_rule){ .row = sites[site].name, .number = number };
	while (number < keys->pattern_count &&
	       regex_find(keys->patterns[number], cache->regex, key, 0) != REGEX_YES)
		number++;
	return (struct audit_rule){ .row = "key_patterns", .number = number + 1 };
}

const char *allowlist_values_key(const struct allowlist_keys *keys, uint16_t values)
{
	return keys->values[values - 1].key;
}

void allowlist_cache_fini(struct allowlist_cache *cache)
{
	regex_memory_unref(&cache->regex);
}

bool allowlist_value_listed(const struct allowlist_keys *keys, uint16_t values, struct view text)
{
	const struct texts *listed = &keys->values[values - 1];
	return find_text(listed->at, listed->count, sizeof *listed->at, text);
}

static int compare_entries(const void *a, const void *b)
{
	return compare_views(a, b); /* the key comes first */
}

/* Sorts, and joins what the configuration says of one key in several places. */
static void sort_entries(struct allowlist_keys *keys)
{
	size_t kept = 0;
	if (keys->entry_count)
		qsort(keys->entries, keys->entry_count, sizeof *keys->entries, compare_entries);
	for (size_t i = 0; i < keys->entry_count; i++) {
		struct entry *entry = &keys->entries[i];
		struct entry *last = kept ? &keys->entries[kept - 1] : NULL;
		if (last && view_equal(last->key, entry->key)) {
			last->sites |= entry->sites;
			last->values |= entry->values;
		} else {
			keys->entries[kept++] = *entry;
		}
	}
	keys->entry_count = kept;
}

static void add_keys(struct allowlist_keys *keys, const struct strings *list, uint16_t at_sites)
{
	for (size_t i = 0; i < list->count; i++)
		keys->entries[keys->entry_count++] =
			(struct entry){ view_of(list->at[i]), at_sites, 0 };
}

static void add_values(struct allowlist_keys *keys, const struct node *values)
{
	keys->values = memory_array(values ? values->count : 0, sizeof *keys->values);
	for (size_t i = 0; values && i < values->count; i++) {
		const struct node *list = values->children[i];
		struct texts *texts = &keys->values[keys->values_count++];
		texts->key = memory_text(list->key);
		texts->at = memory_array(list->count, sizeof *texts->at);
		for (; texts->count < list->count; texts->count++)
			texts->at[texts->count] =
				view_of(memory_text(list->children[texts->count]->text));
		if (texts->count)
			qsort(texts->at, texts->count, sizeof *texts->at, compare_views);
		keys->entries[keys->entry_count++] =
			(struct entry){ view_of(texts->key), 0, (uint16_t)keys->values_count };
	}
}

static void add_entries(struct allowlist_keys *keys, const struct allowlist_key_config *config)
{
	size_t count = config->everywhere.count + (config->values ? config->values->count : 0);
	for (enum site site = SITE_RESOURCE; site <= SITE_ENTITY; site++)
		count += config->sites[site].count;
	keys->entries = memory_array(count, sizeof *keys->entries);
	add_keys(keys, &config->everywhere, ALL_SITES);
	for (enum site site = SITE_RESOURCE; site <= SITE_ENTITY; site++)
		add_keys(keys, &config->sites[site], (uint16_t)(1u << site));
	add_values(keys, config->values);
	sort_entries(keys);
}

bool allowlist_keys_init(struct allowlist_keys *keys, const struct allowlist_key_config *config,
			 struct error *err)
{
	keys->config = config;
	add_entries(keys, config);
	keys->patterns = memory_array(config->patterns.count, sizeof *keys->patterns);
	for (size_t i = 0; i < config->patterns.count; i++) {
		keys->patterns[i] = regex_new(config->patterns.at[i], REGEX_WHOLE, err);
		if (!keys->patterns[i])
			return error_prefix(err, "key_patterns[%zu]", i);
		keys->pattern_count++;
	}
	return true;
}

void allowlist_keys_fini(struct allowlist_keys *keys)
{
	for (size_t i = 0; i < keys->pattern_count; i++)
		regex_unref(&keys->patterns[i]);
	for (size_t i = 0; i < keys->values_count; i++) {
		struct texts *texts = &keys->values[i];
		for (size_t n = 0; n < texts->count; n++)
			memory_free((void *)texts->at[n].at);
		memory_free(texts->at);
		memory_free(texts->key);
	}
	memory_free(keys->patterns);
	memory_free(keys->values);
	memory_free(keys->entries);
}

static bool check_values(const struct node *values, struct error *err)
{
	if (values && (values->kind != NODE_MAP || values->count > UINT16_MAX))
		return node_error(values, "values", err,
				  "must be a map of keys to lists of permitted values");
	for (size_t i = 0; values && i < values->count; i++) {
		const struct node *list = values->children[i];
		if (list->kind != NODE_LIST)
			return node_error(list, "values", err,
					  "must be a list of permitted values");
		for (size_t n = 0; n < list->count; n++)
			if (list->children[n]->kind != NODE_SCALAR)
				return node_error(list->children[n], "values", err,
						  "must be a scalar");
	}
	return true;
}

static bool check_patterns(const struct strings *patterns, struct error *err)
{
	for (size_t i = 0; i < patterns->count; i++)
		if (!regex_check_cost(patterns->at[i], REGEX_WHOLE, err))
			return error_prefix(err, "key_patterns[%zu]", i);
	return true;
}

bool allowlist_keys_check(const struct allowlist_key_config *config, struct error *err)
{
	struct allowlist_keys keys = { 0 };
	bool ok = check_values(config->values, err) && check_patterns(&config->patterns, err) &&
		  allowlist_keys_init(&keys, config, err);
	allowlist_keys_fini(&keys);
	return ok;
}
