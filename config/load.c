/* SPDX-License-Identifier: Apache-2.0 */
#include "config/load.h"

#include <ctype.h>
#include <string.h>

#include "base/memory.h"
#include "base/ordinal.h"
#include "base/quote.h"
#include "config/expand.h"
#include "config/scalar.h"
#include "config/source.h"

enum { KEY_PARTS_MAX = 50 };

static void absorb(struct node *into, struct node *map);

/* Takes child. Maps join; all else, null included, replaces what was there. */
static void merge_child(struct node *into, struct node *child)
{
	for (size_t i = 0; i < into->count; i++) {
		struct node **old = &into->children[i];
		if (strcmp((*old)->key, child->key) != 0)
			continue;
		if ((*old)->kind == NODE_MAP && child->kind == NODE_MAP) {
			absorb(*old, child);
		} else {
			node_unref(old);
			*old = child;
		}
		return;
	}
	node_add(into, child);
}

/* Takes map. */
static void absorb(struct node *into, struct node *map)
{
	for (size_t i = 0; i < map->count; i++)
		merge_child(into, map->children[i]);
	into->broken |= map->broken;
	map->count = 0;
	node_unref(&map);
}

/*
 * "a::b: c" at the root of a source is a: {b: c}. Takes child and returns what stands for it, NULL
 * if that is too deep.
 */
static struct node *unflatten(struct node *child, struct problems *problems)
{
	struct error why;
	for (int parts = 0;; parts++) {
		char *cut = NULL;
		for (char *at = strstr(child->key, "::"); at; at = strstr(at + 2, "::"))
			cut = at;
		if (!cut)
			return child;
		if (parts == KEY_PARTS_MAX) {
			node_error(child, "", &why, "the key has more than %d parts",
				   KEY_PARTS_MAX);
			problems_add(problems, &why);
			node_unref(&child);
			return NULL;
		}
		struct node *outer = node_new(NODE_MAP, child);
		outer->key = memory_text_of(child->key, (size_t)(cut - child->key));
		memmove(child->key, cut + 2, strlen(cut + 2) + 1);
		node_add(outer, child);
		child = outer;
	}
}

/* Merges the YAML of one source into the root. Takes tree, which may be NULL: it has been reported
 * that it could not be read. */
static void merge_tree(struct node *root, struct node *tree, struct problems *problems)
{
	struct error why;
	bool map = tree && tree->kind == NODE_MAP;
	if (tree && !map && tree->kind != NODE_NULL) {
		node_error(tree, "", &why, "the configuration must be a map, got %s",
			   scalar_type_name(tree));
		problems_add(problems, &why);
	}
	bool whole = tree && !tree->broken && (map || tree->kind == NODE_NULL);
	for (size_t i = 0; map && i < tree->count; i++) {
		struct node *child = unflatten(tree->children[i], problems);
		whole = whole && child;
		if (child)
			merge_child(root, child);
	}
	problems->incomplete |= !whole;
	if (map)
		tree->count = 0;
	node_unref(&tree);
}

/* The name of the source in errors: never the content of an inline one. */
static char *source_name(const char *uri)
{
	if (strncmp(uri, "file:", 5) == 0)
		return memory_text(uri + 5);
	if (strncmp(uri, "yaml:", 5) == 0)
		return memory_text("yaml");
	const char *mark = strstr(uri, ":-");
	return mark ? memory_text_of(uri, (size_t)(mark - uri)) : memory_text(uri);
}

static void load_location(struct node *root, const struct config_sources *sources,
			  const char *location, struct problems *problems)
{
	bool unset = false;
	struct bytes text;
	struct error why;
	struct node *tree = NULL;
	bytes_init(&text, SOURCE_MAX);
	char *uri = source_scheme(location) ? memory_text(location)
					    : memory_format("file:%s", location);
	char *given = source_name(uri), *name = quote_place(given);
	memory_free(given);
	if (source_read(sources, uri, NULL, &text, &unset, &why))
		tree = config_parse_all(name, true, (const char *)text.at, text.len, problems);
	else
		problems_add(problems, &why);
	merge_tree(root, tree, problems);
	if (unset && !root->unset)
		root->unset = memory_text(strchr(uri, ':') + 1);
	memory_free(name);
	memory_free(uri);
	bytes_fini(&text);
}

static void trim(const char **at, size_t *len)
{
	while (*len && isspace((unsigned char)(*at)[0]))
		++*at, --*len;
	while (*len && isspace((unsigned char)(*at)[*len - 1]))
		--*len;
}

/* An error in one --set names it by its key; its value may be secret. */
static void merge_set(struct node *root, const char *key, size_t key_len, struct bytes *text,
		      struct problems *problems)
{
	char *given = memory_format("--set %.*s", (int)key_len, key), *name = quote_place(given);
	merge_tree(root, config_parse_all(name, false, (const char *)text->at, text->len, problems),
		   problems);
	memory_free(given);
	memory_free(name);
}

static void refuse_set(struct problems *problems, const struct error *why)
{
	problems_add(problems, why);
	problems->incomplete = true;
}

/* "a.b=c" is the source `a::b: c`. */
static void load_set(struct node *root, const char *set, size_t index, struct problems *problems)
{
	const char *equal = strchr(set, '=');
	char which[ORDINAL_TEXT];
	struct error why;
	const char *key = set, *value = equal ? equal + 1 : "";
	size_t key_len = equal ? (size_t)(equal - set) : 0, value_len = strlen(value);
	trim(&key, &key_len);
	trim(&value, &value_len);
	if (!key_len) {
		error_set(&why, ERROR_CONFIG, "the %s --set: missing %s; write --set KEY=VALUE",
			  ordinal_text(index, which), equal ? "key" : "equals sign");
		refuse_set(problems, &why);
		return;
	}
	struct bytes text;
	bytes_init(&text, SOURCE_MAX);
	bool ok = true;
	for (size_t i = 0; ok && i < key_len; i++)
		ok = bytes_add(&text, key[i] == '.' ? "::" : &key[i], key[i] == '.' ? 2 : 1);
	ok = ok && bytes_add_text(&text, ": ") && bytes_add(&text, value, value_len);
	error_set(&why, ERROR_CONFIG, "--set: larger than 16 MiB");
	if (ok)
		merge_set(root, key, key_len, &text, problems);
	else
		refuse_set(problems, &why);
	bytes_fini(&text);
}

struct node *config_load_all(const struct config_sources *sources, struct problems *problems)
{
	struct node *root = node_new(NODE_MAP, NULL);
	for (size_t i = 0; i < sources->location_count; i++)
		load_location(root, sources, sources->locations[i], problems);
	for (size_t i = 0; i < sources->set_count; i++)
		load_set(root, sources->sets[i], i, problems);
	config_expand(root, sources, problems);
	return root;
}

struct node *config_load(const struct config_sources *sources, struct error *err)
{
	struct problems problems = { 0 };
	if (!sources->location_count && !sources->set_count) {
		error_set(err, ERROR_CONFIG,
			  "at least one config flag must be provided; write --config FILE");
		return NULL;
	}
	struct node *root = config_load_all(sources, &problems);
	if (!problems_end(&problems, err))
		node_unref(&root);
	return root;
}
