/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/key_rules.h"
#include "base/memory.h"
#include "processors/value.h"

#include <stdlib.h>

#define ALL_SITES ((uint16_t)((2u << SITE_ENTITY) - 2))
#define KEY_PATTERN_MAX 1024 /* bytes; for a longer key, `doubt` decides */

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

static struct key_rules_verdict judge(const struct key_rules *keys, struct regex_memory *regex,
				      struct view key)
{
	struct key_rules_verdict v = { .known = true };
	const struct entry *entry =
		find_text(keys->entries, keys->entry_count, sizeof *keys->entries, key);
	if (entry) {
		v.sites = entry->sites;
		v.values = entry->values;
	}
	for (size_t i = 0; i < keys->pattern_count && v.sites != ALL_SITES; i++) {
		enum regex_result result = key.len > KEY_PATTERN_MAX
						   ? REGEX_ERROR
						   : regex_find(keys->patterns[i], regex, key, 0);
		if (result == REGEX_YES || (result == REGEX_ERROR && keys->doubt))
			v.sites = ALL_SITES;
	}
	return v;
}

struct key_rules_verdict key_rules_verdict(const struct key_rules *keys,
					   struct key_rules_cache *cache, struct view key)
{
	struct hash128 hash = hash_bytes_128(key.at, key.len);
	struct key_rules_verdict *slot = &cache->slots[hash.low % KEY_RULES_CACHE_SLOTS];
	if (!slot->known || slot->key.low != hash.low || slot->key.high != hash.high) {
		if (!cache->regex)
			cache->regex = regex_memory_new();
		*slot = judge(keys, cache->regex, key);
		slot->key = hash;
	}
	return *slot;
}

static const char *patterns_name(const struct key_rules_config *config)
{
	return config->patterns_name ? config->patterns_name : "key_patterns";
}

/* From 1; 0: it is not listed. */
static size_t number_of(const struct strings *list, struct view key)
{
	for (size_t i = 0; i < list->count; i++)
		if (view_is(key, list->at[i]))
			return i + 1;
	return 0;
}

struct audit_rule key_rules_rule(const struct key_rules *keys, struct key_rules_cache *cache,
				 enum site site, struct view key)
{
	size_t number = number_of(&keys->config.everywhere, key);
	if (number)
		return (struct audit_rule){ .row = keys->config.keys_name ? keys->config.keys_name
									  : "keys",
					    .number = number };
	number = number_of(&keys->config.sites[site], key);
	if (number)
		return (struct audit_rule){ .row = sites[site].name, .number = number };
	while (number < keys->pattern_count &&
	       regex_find(keys->patterns[number], cache->regex, key, 0) != REGEX_YES)
		number++;
	return (struct audit_rule){ .row = patterns_name(&keys->config), .number = number + 1 };
}

const char *key_rules_values_key(const struct key_rules *keys, uint16_t values)
{
	return keys->values[values - 1].key;
}

void key_rules_cache_fini(struct key_rules_cache *cache)
{
	regex_memory_unref(&cache->regex);
}

bool key_rules_value_listed(const struct key_rules *keys, uint16_t values, struct view text)
{
	const struct texts *listed = &keys->values[values - 1];
	return find_text(listed->at, listed->count, sizeof *listed->at, text);
}

static int compare_entries(const void *a, const void *b)
{
	return compare_views(a, b); /* the key comes first */
}

/* Sorts, and joins what the configuration says of one key in several places. */
static void sort_entries(struct key_rules *keys)
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

static void add_keys(struct key_rules *keys, const struct strings *list, uint16_t at_sites)
{
	for (size_t i = 0; i < list->count; i++)
		keys->entries[keys->entry_count++] =
			(struct entry){ view_of(list->at[i]), at_sites, 0 };
}

static void add_values(struct key_rules *keys, const struct node *values)
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

static void add_entries(struct key_rules *keys, const struct key_rules_config *config)
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

static unsigned pattern_flags(const struct key_rules_config *config)
{
	return config->search ? REGEX_GO : REGEX_WHOLE;
}

static bool bad_pattern(const struct key_rules_config *config, size_t index, struct error *err)
{
	return error_prefix(err, "%s[%zu]", patterns_name(config), index);
}

bool key_rules_init(struct key_rules *keys, const struct key_rules_config *config,
		    struct error *err)
{
	keys->config = *config;
	add_entries(keys, config);
	keys->doubt = config->doubt;
	keys->patterns = memory_array(config->patterns.count, sizeof *keys->patterns);
	for (size_t i = 0; i < config->patterns.count; i++) {
		keys->patterns[i] = regex_new(config->patterns.at[i], pattern_flags(config), err);
		if (!keys->patterns[i])
			return bad_pattern(config, i, err);
		keys->pattern_count++;
	}
	return true;
}

void key_rules_fini(struct key_rules *keys)
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

static void check_list(const struct node *list, size_t index, struct faults *faults)
{
	if (list->kind != NODE_LIST)
		faults_add(faults, "values[%zu]: must be a list of permitted values", index);
	for (size_t n = 0; list->kind == NODE_LIST && n < list->count; n++)
		if (list->children[n]->kind != NODE_SCALAR)
			faults_add(faults, "values[%zu][%zu]: must be a scalar", index, n);
}

static void check_values(const struct node *values, struct faults *faults)
{
	if (values->kind != NODE_MAP || values->count > UINT16_MAX) {
		faults_add(faults, "values: must be a map of keys to lists of permitted values");
		return;
	}
	for (size_t i = 0; i < values->count; i++)
		check_list(values->children[i], i, faults);
}

static void check_pattern(const struct key_rules_config *config, size_t index,
			  struct faults *faults)
{
	const char *pattern = config->patterns.at[index];
	struct error why;
	struct regex *compiled = NULL;
	if (!regex_check_cost(pattern, pattern_flags(config), &why) ||
	    !(compiled = regex_new(pattern, pattern_flags(config), &why)))
		faults_add(faults, "%s[%zu]: %s", patterns_name(config), index, why.text);
	regex_unref(&compiled);
}

void key_rules_check(const struct key_rules_config *config, struct faults *faults)
{
	if (config->values)
		check_values(config->values, faults);
	for (size_t i = 0; i < config->patterns.count; i++)
		check_pattern(config, i, faults);
}
