/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/blame.h"
#include "config/suggest.h"
#include "config/value.h"

static void add_path(struct blame *b, const char *separator, const char *text)
{
	size_t used = strlen(b->path);
	snprintf(b->path + used, sizeof b->path - used, "%s%s", used ? separator : "", text);
}

static void move_to(struct blame *b, const struct node *node)
{
	b->lost = b->lost || !node;
	b->node = node ? node : b->node;
}

bool blame_knows(const struct config_table *table, const char *key)
{
	const struct config_row *row = table->rows;
	while (row->key && strcmp(row->key, key) != 0)
		row++;
	return row->key || (table->optional && !strcmp(key, "enabled"));
}

enum { SECTIONS_DEPTH = 3, SECTIONS_MAX = 3 };

static void add_place(const char *path, char place[SUGGEST_PLACE])
{
	size_t used = strlen(place);
	snprintf(place + used, SUGGEST_PLACE - used, "%s%s", used ? "` or `" : "", path);
}

/* How many sections at this depth below the table have the key. Appends their paths. */
static size_t find_below(const struct config_table *table, const char *key, int depth,
			 const char *path, char place[SUGGEST_PLACE])
{
	size_t found = 0;
	for (const struct config_row *row = table->rows; row->key; row++) {
		char below[SUGGEST_PLACE];
		if (row->type != CONFIG_TABLE)
			continue;
		snprintf(below, sizeof below, "%s%s%s", path, *path ? "::" : "", row->key);
		if (depth > 1) {
			found += find_below(row->table, key, depth - 1, below, place);
		} else if (config_find_row(row->table, key)) {
			found++;
			add_place(below, place);
		}
	}
	return found;
}

/* The few sections that have exactly this key. */
static void suggest_section(const struct config_table *table, struct suggest *suggest)
{
	size_t found = 0;
	for (int depth = 1; depth <= SECTIONS_DEPTH && !found && suggest->name; depth++)
		found = find_below(table, suggest->name, depth, "", suggest->place);
	if (found > SECTIONS_MAX)
		suggest->place[0] = '\0';
}

void blame_suggest(const struct config_table *table, const struct node *entry,
		   struct suggest *suggest)
{
	*suggest = (struct suggest){ .name = entry->brought_key ? NULL : entry->key };
	suggest_hint(suggest, table->hints);
	suggest_section(table, suggest);
	for (const struct config_row *row = table->rows; row->key; row++)
		if (!row->alias_of)
			suggest_try(suggest, row->key);
	if (table->optional)
		suggest_try(suggest, "enabled");
}

/* Does the key stand in a section below, which has no such key? */
static bool is_too_deep(const struct config_row *row, const struct node *node, const char *key)
{
	bool found = false;
	if (!row || row->type != CONFIG_TABLE)
		return false;
	for (size_t i = 0; node->kind == NODE_MAP && i < node->count && !found; i++) {
		const struct node *entry = node->children[i];
		found = blame_knows(row->table, entry->key)
				? is_too_deep(config_find_row(row->table, entry->key), entry, key)
				: !strcmp(entry->key, key);
	}
	return found;
}

bool blame_misspelt(const struct config_table *table, const struct node *node, const char *key)
{
	struct suggest suggest;
	for (size_t i = 0; node && node->kind == NODE_MAP && i < node->count; i++) {
		const struct node *entry = node->children[i];
		if (is_too_deep(config_find_row(table, entry->key), entry, key))
			return true;
		if (blame_knows(table, entry->key))
			continue;
		blame_suggest(table, entry, &suggest);
		if (suggest_is(&suggest, key))
			return true;
	}
	return false;
}

/* The key of a row; where there is no table, or its keys are free, one of the tree. */
static bool step_key(struct blame *b, const char *key)
{
	const struct config_row *row = b->table ? config_find_row(b->table, key) : NULL;
	const struct node *here = b->lost ? NULL : b->node, *entry = node_get(here, key);
	const char *twice;
	if (!row && (b->table || !entry))
		return false;
	if (row)
		entry = value_find_entry(b->table, here, row, &twice);
	if (row && !entry)
		b->misspelt = b->misspelt || blame_misspelt(b->table, here, key);
	add_path(b, "::", entry ? node_shown_key(entry) : key);
	move_to(b, entry);
	b->table = row ? row->table : NULL;
	return true;
}

static void step_index(struct blame *b, size_t index)
{
	const struct node *here = b->lost ? NULL : b->node;
	const struct node *item = here && index < here->count ? here->children[index] : NULL;
	char text[32];
	snprintf(text, sizeof text, "[%zu]", index);
	if (item && here->kind == NODE_MAP && !item->brought_key)
		add_path(b, "::", item->key);
	else
		add_path(b, "", text);
	move_to(b, item);
}

enum { KEY_TEXT = 100 };

static size_t read_key(const char *at, char out[KEY_TEXT])
{
	size_t len = 0;
	while (isalnum((unsigned char)at[len]) || at[len] == '_' || at[len] == '-')
		len++;
	if (!len || len >= KEY_TEXT)
		return 0;
	memcpy(out, at, len);
	out[len] = '\0';
	return len;
}

static const char *skip_indices(struct blame *b, const char *at)
{
	while (at[0] == '[' && isdigit((unsigned char)at[1])) {
		char *end;
		size_t index = strtoul(at + 1, &end, 10);
		if (*end != ']')
			break;
		step_index(b, index);
		at = end + 1;
	}
	return at;
}

/* One or more keys, "a::b[2]", perhaps in quotes. Returns what follows them; NULL: these are no
 * keys. */
static const char *read_keys(struct blame *b, const char *at)
{
	char key[KEY_TEXT];
	bool quoted = strchr("`'\"", *at) && *at;
	char quote = quoted ? *at++ : '\0';
	size_t len = read_key(at, key);
	if (!len || !step_key(b, key))
		return NULL;
	at = skip_indices(b, at + len);
	while (at[0] == ':' && at[1] == ':' && (len = read_key(at + 2, key)) && step_key(b, key))
		at = skip_indices(b, at + 2 + len);
	if (quoted && *at == quote)
		at++;
	return at;
}

struct blame blame_begin(const struct config_table *table, const struct node *node,
			 const char *path)
{
	struct blame b = { .table = table, .node = node, .lost = !node };
	snprintf(b.path, sizeof b.path, "%s", path);
	return b;
}

/* A key that is the subject of the sentence stays in it, and out of the path. */
static void end_at(struct blame *b, const struct blame *subject)
{
	struct blame end = *subject;
	memcpy(end.path, b->path, sizeof end.path);
	*b = end;
}

/* Keys before a colon are part of the path, and what is returned follows them. */
const char *blame_descend(struct blame *b, const char *text)
{
	for (;;) {
		struct blame next = *b;
		const char *after = read_keys(&next, text);
		if (!after || (*after != ' ' && *after != ':'))
			return text;
		next.keyed = true;
		if (*after == ' ')
			end_at(b, &next);
		if (*after == ' ' || after[1] != ' ')
			return text;
		*b = next;
		text = after + 2;
	}
}

bool config_blame(const struct config_table *table, const struct node *node, const char *path,
		  const struct error *why, struct error *err)
{
	struct blame b = blame_begin(table, node, path);
	const char *text = blame_descend(&b, why->text);
	return node_error(b.node, b.path, err, "%s", text);
}
