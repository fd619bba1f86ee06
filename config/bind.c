/* SPDX-License-Identifier: Apache-2.0 */
#include "config/table.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "config/blame.h"
#include "config/load.h"
#include "config/scalar.h"
#include "config/suggest.h"
#include "config/value.h"

/* One section: a table, its struct and its node (NULL or null: defaults). */
struct section {
	const struct config_table *table;
	const struct node *node;
	const struct path *path;
	void *config;
	struct problems *problems;
	const struct section *outer; /* NULL: there is none */
};

static bool bind_section(const struct section *s);

static const struct config_row *find_row(const struct config_table *table, const char *key)
{
	for (const struct config_row *row = table->rows; row->key; row++)
		if (strcmp(row->key, key) == 0)
			return row;
	return NULL;
}

static bool is_alias(const struct config_row *row)
{
	return row->alias_of != NULL;
}

/* The row that a key stands for, through its alias. */
static const struct config_row *resolve_row(const struct config_table *table, const char *key)
{
	const struct config_row *row = find_row(table, key);
	return row && is_alias(row) ? find_row(table, row->alias_of) : row;
}

enum { KEYS_TEXT = 220 };

/* What else could stand here, as far as it fits. */
static void list_keys(const struct config_table *table, char out[KEYS_TEXT])
{
	size_t used = (size_t)snprintf(out, KEYS_TEXT, " (valid keys: [");
	for (const struct config_row *row = table->rows; row->key; row++) {
		const char *space = row == table->rows ? "" : " ";
		if (is_alias(row))
			continue;
		if (used + strlen(row->key) + sizeof " ...])" > KEYS_TEXT) {
			used += (size_t)snprintf(out + used, KEYS_TEXT - used, " ...");
			break;
		}
		used += (size_t)snprintf(out + used, KEYS_TEXT - used, "%s%s", space, row->key);
	}
	snprintf(out + used, KEYS_TEXT - used, "])");
}

/* A section around this one has exactly this key. */
static void suggest_around(const struct section *s, struct suggest *suggest)
{
	char path[PATH_TEXT];
	const struct section *outer = s->outer;
	while (outer && suggest->name && !find_row(outer->table, suggest->name))
		outer = outer->outer;
	if (outer && suggest->name && !*suggest->place)
		snprintf(suggest->place, sizeof suggest->place, "%s", path_text(outer->path, path));
}

static bool refuse_key(const struct section *s, const struct node *entry)
{
	char path[PATH_TEXT], meant[SUGGEST_TEXT], keys[KEYS_TEXT] = "";
	struct suggest suggest;
	struct error why;
	blame_suggest(s->table, entry, &suggest);
	suggest_around(s, &suggest);
	suggest_text(&suggest, meant);
	if (!*meant)
		list_keys(s->table, keys);
	node_error(entry, "", &why, "'%s' has invalid keys: %.100s%s%s", path_text(s->path, path),
		   node_shown_key(entry), meant, keys);
	return problems_add_at(s->problems, entry, &why);
}

static bool check_keys(const struct section *s)
{
	bool ok = true;
	for (size_t i = 0; i < s->node->count; i++)
		if (!blame_knows(s->table, s->node->children[i]->key))
			ok = refuse_key(s, s->node->children[i]);
	return ok;
}

const struct node *value_find_entry(const struct config_table *table, const struct node *node,
				    const struct config_row *row, const char **twice)
{
	const struct node *found = node_get(node, row->key);
	*twice = NULL;
	for (const struct config_row *alias = table->rows; alias->key; alias++) {
		if (!is_alias(alias) || strcmp(alias->alias_of, row->key) != 0)
			continue;
		const struct node *other = node_get(node, alias->key);
		if (other && found)
			*twice = alias->key;
		found = found ? found : other;
	}
	return found;
}

static bool read_enabled(const struct section *s, bool *enabled)
{
	static const struct config_row row = { .key = "enabled", .type = CONFIG_BOOL };
	const struct node *node = node_get(s->node, "enabled");
	if (!node || node->kind == NODE_NULL)
		return true;
	struct path path = { s->path, "enabled", 0 };
	struct value_spot spot = { &row, node, &path, s->problems };
	bool said;
	if (problems_has(s->problems, node) || !value_bind(&spot, &said))
		return false;
	*enabled = *enabled && said;
	return true;
}

/* Whether an optional section is there; the key `enabled` is read later. */
static bool is_present(const struct config_row *row, const struct node *entry)
{
	switch (row->presence) {
	case PRESENCE_NONE:
		return entry && entry->kind != NODE_NULL;
	case PRESENCE_DEFAULT:
		return entry != NULL;
	default:
		return true;
	}
}

static bool bind_nested(const struct section *outer, const struct config_row *row,
			const struct node *entry, const struct path *path)
{
	void *member = (char *)outer->config + row->offset;
	assert(row->presence == PRESENCE_PLAIN || row->table->optional);
	if (row->table->optional)
		((struct optional *)member)->enabled = is_present(row, entry);
	return bind_section(
		&(struct section){ row->table, entry, path, member, outer->problems, outer });
}

/* Is it the list or map that the row needs? */
static bool check_items(const struct section *s, const struct config_row *row,
			const struct node *entry, const struct path *path)
{
	struct value_spot spot = { row, entry, path, s->problems };
	if (entry->kind == (row->type == CONFIG_LIST ? NODE_LIST : NODE_MAP))
		return true;
	return value_wrong_type(&spot, row->type == CONFIG_MAP ? VALUE_MAP : VALUE_LIST);
}

/* A list of structs, or a map of name -> struct. */
static bool bind_items(const struct section *outer, const struct config_row *row,
		       const struct node *entry, const struct path *path)
{
	struct config_items *items = (void *)((char *)outer->config + row->offset);
	bool ok = true;
	if (entry->kind == NODE_NULL)
		return true;
	if (!check_items(outer, row, entry, path))
		return false;
	items->at = memory_array(entry->count, row->table->size);
	items->names =
		entry->kind == NODE_MAP ? memory_array(entry->count, sizeof *items->names) : NULL;
	for (size_t i = 0; i < entry->count; i++) {
		const struct node *child = entry->children[i];
		struct path below = path_step(path, child, i);
		void *item = (char *)items->at + i * row->table->size;
		if (items->names)
			items->names[i] = memory_text(child->key);
		items->count++;
		if (row->table->optional)
			((struct optional *)item)->enabled = true;
		ok &= bind_section(&(struct section){ row->table, child, &below, item,
						      outer->problems, outer });
	}
	return ok;
}

static bool bind_row(const struct section *s, const struct config_row *row,
		     const struct node *entry)
{
	struct path path = { s->path, row->key, 0 };
	if (row->type == CONFIG_TABLE)
		return bind_nested(s, row, entry, &path);
	if (row->type == CONFIG_LIST || row->type == CONFIG_MAP)
		return !entry || bind_items(s, row, entry, &path);
	struct value_spot spot = { row, entry, &path, s->problems };
	return !entry || value_bind(&spot, (char *)s->config + row->offset);
}

static void release_items(const struct config_row *row, struct config_items *items)
{
	for (size_t i = 0; i < items->count; i++) {
		config_release(row->table, (char *)items->at + i * row->table->size);
		if (items->names)
			memory_free(items->names[i]);
	}
	memory_free(items->at);
	memory_free(items->names);
	*items = (struct config_items){ 0 };
}

static void release_row(const struct config_row *row, void *member)
{
	if (row->type == CONFIG_TABLE)
		config_release(row->table, member);
	else if (row->type == CONFIG_LIST || row->type == CONFIG_MAP)
		release_items(row, member);
	else
		value_release(row->type, member);
}

void config_release(const struct config_table *table, void *config)
{
	for (const struct config_row *row = table->rows; row->key; row++)
		if (!is_alias(row))
			release_row(row, (char *)config + row->offset);
}

/* Defaults go through the parser that the user's text goes through. A value with an error may be
 * there already, in part. */
static void bind_default(const struct section *s, const struct config_row *row)
{
	release_row(row, (char *)s->config + row->offset);
	if (!row->def)
		return;
	assert(row->type != CONFIG_NODE);
	struct problems problems = { 0 };
	struct section own = *s;
	own.problems = &problems;
	struct node *node = config_parse(row->key, row->def, strlen(row->def), NULL);
	bool ok = node && bind_row(&own, row, node);
	if (!ok)
		fprintf(stderr, "bad default of %s: %s\n", row->key,
			problems.count ? problems.at[0] : "not YAML");
	assert(ok);
	problems_fini(&problems);
	node_unref(&node);
}

static bool is_empty(const struct config_row *row, const void *member)
{
	const char *text = "set";
	if (row->type == CONFIG_STRING)
		text = *(char *const *)member;
	else if (row->type == CONFIG_SECRET)
		text = ((const struct secret *)member)->text;
	return !text || !*text;
}

static bool check_required(const struct section *s, const struct config_row *row)
{
	char path[PATH_TEXT];
	const char *twice;
	struct error why;
	const struct node *entry = value_find_entry(s->table, s->node, row, &twice);
	bool given = entry && (entry->kind != NODE_NULL || entry->verbatim);
	if (!row->required || (given && !is_empty(row, (char *)s->config + row->offset)) ||
	    blame_misspelt(s->table, s->node, row->key) || s->problems->incomplete)
		return true;
	node_error(entry ? entry : s->node, path_text(s->path, path), &why,
		   "requires a non-empty \"%s\"", row->key);
	return problems_add_at(s->problems, entry, &why);
}

/* Is the error of a value not in the list of errors, because that is full? The entries of a list of
 * structs are sections, with values of their own. */
static bool is_unreported(const struct section *s, const struct config_row *row,
			  const struct node *entry)
{
	return row->type != CONFIG_LIST && row->type != CONFIG_MAP &&
	       !problems_touch(s->problems, entry);
}

/*
 * `key:` leaves the default; `key: ${env:UNSET}` makes the zero value, as in the Collector: an
 * address that was meant to come from outside must not silently become the default.
 */
static bool bind_entry(const struct section *s, const struct config_row *row)
{
	const char *twice;
	struct error why;
	const struct node *entry = value_find_entry(s->table, s->node, row, &twice);
	if (twice) {
		node_error(entry, "", &why, "\"%s\" and its old name \"%s\" are both set", row->key,
			   twice);
		problems_add_at(s->problems, entry, &why);
	}
	if (row->type == CONFIG_TABLE)
		return bind_row(s, row, entry);
	bool readable = !problems_has(s->problems, entry);
	if (readable && entry && entry->kind == NODE_NULL && !entry->verbatim)
		entry = NULL;
	bool ok = readable && bind_row(s, row, entry);
	if (!entry || problems_has(s->problems, entry) || (!ok && is_unreported(s, row, entry)))
		bind_default(s, row);
	return ok;
}

/* Of two rows with one key, the second could never be set: a table that embeds the rows of another
 * must not repeat their keys. */
static bool is_first(const struct config_table *table, const struct config_row *row)
{
	return find_row(table, row->key) == row;
}

/* Required keys are those of a section that is there. */
static bool bind_rows(const struct section *s, bool there)
{
	bool ok = true;
	for (const struct config_row *row = s->table->rows; row->key; row++) {
		assert(is_first(s->table, row));
		if (!is_alias(row))
			ok &= bind_entry(s, row) && (!there || check_required(s, row));
	}
	return ok;
}

static bool check_section(const struct section *s)
{
	char path[PATH_TEXT];
	struct faults faults = { s->table, s->node, path_text(s->path, path), s->problems };
	size_t before = problems_total(s->problems);
	if (s->table->check)
		s->table->check(s->config, &faults);
	return problems_total(s->problems) == before;
}

static bool bind_unknown(const struct section *s)
{
	struct section unknown = *s;
	unknown.node = NULL;
	bind_rows(&unknown, false);
	return false;
}

static bool takes(const struct config_row *row, const struct node *node)
{
	if (node->kind == NODE_LIST)
		return row->type == CONFIG_LIST || row->type == CONFIG_STRINGS;
	return node->kind == NODE_SCALAR && row->type == CONFIG_STRING &&
	       scalar_of(node).kind == SCALAR_STRING;
}

/* The only key that would take the value; NULL: there is none, or there are several. */
static const char *only_key(const struct config_table *table, const struct node *node)
{
	const struct config_row *found = NULL;
	for (const struct config_row *row = table->rows; row->key; row++) {
		if (is_alias(row) || !takes(row, node))
			continue;
		if (found)
			return NULL;
		found = row;
	}
	return found ? found->key : NULL;
}

/* "key:value" is a string. */
static bool lacks_blank(const struct node *node)
{
	return node->kind == NODE_SCALAR && !node->quoted && strchr(node->text, ':');
}

/* It is no map: a boolean that stands for the key `enabled`, or the value of a key alone. */
static bool refuse_section(const struct value_spot *whole, const struct config_table *table)
{
	const char *key = only_key(table, whole->node);
	if (table->optional && scalar_of(whole->node).kind == SCALAR_BOOL)
		return value_error(whole, "expected a map, got a boolean; write {enabled: %.60s}",
				   node_shown(whole->node));
	if (lacks_blank(whole->node))
		return value_error(whole, "expected a map, got a string; write a blank after the "
					  "colon");
	if (!key || whole->node->reference)
		return value_wrong_type(whole, VALUE_MAP);
	return value_error(whole, "expected a map, got %s; put it under `%s`",
			   scalar_type_name(whole->node), key);
}

static bool bind_section(const struct section *s)
{
	bool null = !s->node || s->node->kind == NODE_NULL;
	bool *enabled = s->table->optional ? &((struct optional *)s->config)->enabled : NULL;
	struct value_spot whole = { NULL, s->node, s->path, s->problems };
	if (problems_has(s->problems, s->node))
		return bind_unknown(s);
	if (!null && s->node->kind != NODE_MAP)
		return refuse_section(&whole, s->table) || bind_unknown(s);
	bool ok = null || check_keys(s);
	ok &= !enabled || read_enabled(s, enabled);
	bool there = !enabled || *enabled;
	ok &= bind_rows(s, there);
	return (!there || check_section(s)) && ok;
}

bool config_bind_all(const struct config_table *table, const struct node *node, const char *path,
		     void *config, struct problems *problems)
{
	struct path top = { NULL, path, 0 };
	if (table->optional)
		((struct optional *)config)->enabled = true;
	return bind_section(&(struct section){ table, node, &top, config, problems, NULL });
}

bool config_bind(const struct config_table *table, const struct node *node, const char *path,
		 void *config, struct error *err)
{
	struct problems problems = { 0 };
	config_bind_all(table, node, path, config, &problems);
	return problems_end(&problems, err);
}

bool config_lists(const struct strings *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->at[i], text))
			return true;
	return false;
}

struct inert_walk {
	void (*inert)(void *context, const char *path, const struct config_row *row);
	void *context;
};

static void walk_inert(const struct inert_walk *walk, const struct config_table *table,
		       const struct node *node, const struct path *path);

static void walk_inert_row(const struct inert_walk *walk, const struct config_row *row,
			   const struct node *node, const struct path *path)
{
	char text[PATH_TEXT];
	if (row->inert) {
		walk->inert(walk->context, path_text(path, text), row);
	} else if (row->type == CONFIG_TABLE) {
		walk_inert(walk, row->table, node, path);
	} else if (row->type == CONFIG_LIST || row->type == CONFIG_MAP) {
		for (size_t i = 0; i < node->count; i++) {
			struct path item = path_step(path, node->children[i], i);
			walk_inert(walk, row->table, node->children[i], &item);
		}
	}
}

static void walk_inert(const struct inert_walk *walk, const struct config_table *table,
		       const struct node *node, const struct path *path)
{
	for (size_t i = 0; node && node->kind == NODE_MAP && i < node->count; i++) {
		const struct node *child = node->children[i];
		const struct config_row *row = resolve_row(table, child->key);
		struct path below = { path, child->key, 0 };
		if (row)
			walk_inert_row(walk, row, child, &below);
	}
}

void config_each_inert(const struct config_table *table, const struct node *node, const char *path,
		       void (*inert)(void *context, const char *path, const struct config_row *row),
		       void *context)
{
	struct inert_walk walk = { inert, context };
	struct path top = { NULL, path, 0 };
	walk_inert(&walk, table, node, &top);
}
