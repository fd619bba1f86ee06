/* SPDX-License-Identifier: Apache-2.0 */
#include "config/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/bytes.h"
#include "base/memory.h"

enum {
	TEXT_MAX = 16 * 1024 * 1024,
	BYTES_MAX = 4 * TEXT_MAX, /* of all scalars, copies by alias included */
	/* likewise: what stops a billion laughs; and one more for each NODE_BYTES of the text,
	 * because a long list needs them */
	NODES_MAX = 100 * 1000,
	NODE_BYTES = 4,
	DEPTH_MAX = 100
};

struct builder {
	yaml_parser_t parser;
	yaml_event_t event; /* the current one; zero before the first */
	const char *source;
	bool inlined;        /* the text has no lines that an operator could look up */
	struct view text;    /* the whole input */
	struct node anchors; /* a list of copies, keyed by anchor */
	size_t nodes, bytes;
	struct problems *problems;
};

static struct node *parse_value(struct builder *b, int depth);

static struct node place_of(const struct builder *b, yaml_mark_t mark)
{
	return (struct node){ .source = b->source,
			      .line = b->inlined ? 0 : (int)mark.line + 1,
			      .column = b->inlined ? 0 : (int)mark.column + 1 };
}

static bool fail(struct builder *b, yaml_mark_t mark, const char *text)
{
	struct node at = place_of(b, mark);
	struct error why;
	node_error(&at, "", &why, "%s", text);
	return problems_add(b->problems, &why);
}

static bool fail_here(struct builder *b, const char *text)
{
	return fail(b, b->event.start_mark, text);
}

/* Reports an error after which the rest can be read. */
static void fail_at(struct builder *b, struct node *node, const char *text)
{
	struct error why;
	node_error(node, "", &why, "%s", text);
	problems_add(b->problems, &why);
	node->broken = true;
}

/* libyaml reads ahead of its marks: where a byte that is no character stands is counted here. */
static yaml_mark_t mark_of_offset(const struct builder *b, size_t offset)
{
	yaml_mark_t mark = { .index = offset };
	for (size_t i = 0; i < offset && i < b->text.len; i++) {
		bool newline = b->text.at[i] == '\n';
		mark.line += newline;
		mark.column = newline ? 0 : mark.column + 1;
	}
	return mark;
}

/* What the byte offset of a place in the text is; marks count characters. */
static size_t offset_of_mark(const struct builder *b, yaml_mark_t mark)
{
	size_t i = 0;
	for (size_t line = 0; line < mark.line && i < b->text.len; i++)
		line += b->text.at[i] == '\n';
	for (size_t column = 0; column < mark.column && i < b->text.len; column++)
		for (i++; i < b->text.len && (b->text.at[i] & 0xc0) == 0x80;)
			i++;
	return i < b->text.len ? i : b->text.len;
}

/* Is there an opening "${" before this place on its line? */
static bool follows_reference(const struct builder *b, size_t offset)
{
	size_t begin = offset;
	while (begin && b->text.at[begin - 1] != '\n' && b->text.at[begin - 1] != '}')
		begin--;
	for (size_t i = begin; i < offset; i++)
		if (b->text.at[i] == '$' && i + 1 < b->text.len && b->text.at[i + 1] == '{')
			return true;
	return false;
}

/* What is wrong with the line more often than libyaml says. */
static const char *problem_hint(const struct builder *b, yaml_mark_t mark)
{
	size_t offset = offset_of_mark(b, mark);
	if (offset < b->text.len && b->text.at[offset] == '\t')
		return " (a tab; indent with spaces)";
	const char *problem = b->parser.problem ? b->parser.problem : "";
	if (strstr(problem, "escape character") || strstr(problem, "hexdecimal"))
		return " (a backslash in double quotes; use single quotes)";
	if (follows_reference(b, offset))
		return " (write ${...} inside { } or [ ] in quotes: \"${env:NAME}\")";
	return "";
}

static bool fail_parse(struct builder *b)
{
	const yaml_parser_t *p = &b->parser;
	char text[300];
	bool reader = p->error == YAML_READER_ERROR;
	yaml_mark_t mark = reader ? mark_of_offset(b, p->problem_offset) : p->problem_mark;
	snprintf(text, sizeof text, "not valid YAML: %s%s",
		 p->problem ? p->problem : "out of memory", problem_hint(b, mark));
	return fail(b, mark, text);
}

/* Moves on to the next event. */
static bool advance(struct builder *b)
{
	yaml_event_delete(&b->event);
	if (yaml_parser_parse(&b->parser, &b->event))
		return true;
	memset(&b->event, 0, sizeof b->event);
	return fail_parse(b);
}

static bool charge(struct builder *b, size_t bytes)
{
	b->bytes += bytes;
	if (++b->nodes > NODES_MAX + b->text.len / NODE_BYTES)
		return fail_here(b, "more than 100000 values");
	if (b->bytes > BYTES_MAX)
		return fail_here(b, "more than 64 MiB of strings");
	return true;
}

static struct node *begin(struct builder *b, enum node_kind kind)
{
	struct node at = place_of(b, b->event.start_mark);
	return node_new(kind, &at);
}

static bool charge_copy(struct builder *b, const struct node *node)
{
	size_t bytes = (node->text ? strlen(node->text) : 0) + (node->key ? strlen(node->key) : 0);
	if (!charge(b, bytes))
		return false;
	for (size_t i = 0; i < node->count; i++)
		if (!charge_copy(b, node->children[i]))
			return false;
	return true;
}

static bool remember(struct builder *b, const char *anchor, const struct node *node)
{
	if (!charge_copy(b, node))
		return false;
	struct node *copy = node_copy(node);
	memory_free(copy->key);
	copy->key = memory_text(anchor);
	node_add(&b->anchors, copy);
	return true;
}

static struct node *recall(struct builder *b)
{
	const char *name = (const char *)b->event.data.alias.anchor;
	for (size_t i = b->anchors.count; i-- > 0;) {
		const struct node *found = b->anchors.children[i];
		if (strcmp(found->key, name) != 0)
			continue;
		if (!charge_copy(b, found))
			return NULL;
		struct node *copy = node_copy(found);
		memory_free(copy->key);
		copy->key = NULL;
		return copy;
	}
	struct node *node = begin(b, NODE_NULL);
	fail_at(b, node, "unknown anchor");
	return node;
}

static bool is_null_word(const char *text)
{
	static const char *const words[] = { "", "~", "null", "Null", "NULL" };
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strcmp(text, words[i]) == 0)
			return true;
	return false;
}

/* Tags that say what the value is anyway are taken; those that would convert it are not. */
static void check_tag(struct builder *b, const char *tag, const char *expected, struct node *node)
{
	if (tag && strcmp(tag, "!") != 0 && strcmp(tag, expected) != 0)
		fail_at(b, node, "unsupported tag");
}

static bool is_plain_tag(const char *tag)
{
	static const char *const tags[] = { YAML_INT_TAG, YAML_FLOAT_TAG, YAML_BOOL_TAG,
					    YAML_NULL_TAG };
	for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++)
		if (strcmp(tag, tags[i]) == 0)
			return true;
	return false;
}

static struct node *parse_scalar(struct builder *b)
{
	const char *tag = (const char *)b->event.data.scalar.tag;
	const char *text = (const char *)b->event.data.scalar.value;
	size_t len = b->event.data.scalar.length;
	bool quoted = b->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	if (memchr(text, '\0', len)) {
		fail_here(b, "NUL character in a value");
		return NULL;
	}
	if (tag)
		quoted = !is_plain_tag(tag);
	if (!charge(b, len))
		return NULL;
	struct node *node = begin(b, !quoted && is_null_word(text) ? NODE_NULL : NODE_SCALAR);
	node->quoted = quoted;
	if (quoted)
		check_tag(b, tag, YAML_STR_TAG, node);
	if (node->kind == NODE_SCALAR)
		node->text = memory_text_of(text, len);
	return node;
}

static struct node *parse_list(struct builder *b, int depth)
{
	if (!charge(b, 0))
		return NULL;
	struct node *list = begin(b, NODE_LIST);
	check_tag(b, (const char *)b->event.data.sequence_start.tag, YAML_SEQ_TAG, list);
	while (advance(b)) {
		if (b->event.type == YAML_SEQUENCE_END_EVENT)
			return list;
		struct node *item = parse_value(b, depth + 1);
		if (!item)
			break;
		node_add(list, item);
	}
	node_unref(&list);
	return NULL;
}

static bool inherit(struct builder *b, struct node *map, const struct node *entry)
{
	if (node_get(map, entry->key))
		return true;
	if (!charge_copy(b, entry))
		return false;
	node_add(map, node_copy(entry));
	return true;
}

/* `<<: *base`, `<<: [*a, *b]`: what the map does not say itself, the first that says it wins. What
 * a broken one would bring is not known. */
static bool merge_into(struct builder *b, struct node *map, struct node *from, int depth)
{
	bool ok = true;
	if (!from->broken && from->kind != NODE_MAP && (from->kind != NODE_LIST || depth > 0))
		fail_at(b, from, "'<<' requires a map or a list of maps");
	map->broken |= from->broken;
	for (size_t i = 0; i < from->count && ok && !from->broken; i++)
		ok = from->kind == NODE_LIST ? merge_into(b, map, from->children[i], depth + 1)
					     : inherit(b, map, from->children[i]);
	return ok;
}

/* Entries with the same key in the order in which they are written. */
static int by_key(const void *a, const void *b)
{
	struct node **x = *(struct node * *const *)a, **y = *(struct node * *const *)b;
	int order = strcmp((*x)->key, (*y)->key);
	return order ? order : (x > y) - (x < y);
}

static void refuse_twice(struct builder *b, const struct node *first, struct node **again)
{
	struct error why;
	char line[32] = "";
	if (first->line)
		snprintf(line, sizeof line, " at line %d", first->line);
	node_error(*again, "", &why, "key \"%.100s\" is already defined%s", first->key, line);
	problems_add(b->problems, &why);
	node_unref(again);
}

/* Of several entries with one key, the first is kept. */
static void check_unique(struct builder *b, struct node *map)
{
	size_t count = map->count;
	struct node ***sorted = memory_array(count, sizeof *sorted), **first = NULL;
	for (size_t i = 0; i < count; i++)
		sorted[i] = &map->children[i];
	qsort(sorted, count, sizeof *sorted, by_key);
	for (size_t i = 0; i < count; i++) {
		if (first && !strcmp((*first)->key, (*sorted[i])->key))
			refuse_twice(b, *first, sorted[i]);
		else
			first = sorted[i];
	}
	memory_free(sorted);
	map->count = 0;
	for (size_t i = 0; i < count; i++)
		if (map->children[i])
			map->children[map->count++] = map->children[i];
}

/* One `key: value`; the key's place becomes the entry's. A plain `<<` goes to *merge. */
static bool parse_entry(struct builder *b, struct node *map, struct node **merge, int depth)
{
	if (b->event.type != YAML_SCALAR_EVENT)
		return fail_here(b, "a key must be a plain string");
	bool merges = b->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
		      strcmp((const char *)b->event.data.scalar.value, "<<") == 0;
	if (merges && *merge)
		return fail_here(b, "more than one '<<' in one map");
	struct node *key = parse_scalar(b);
	if (!key)
		return false;
	struct node *value = advance(b) ? parse_value(b, depth + 1) : NULL;
	if (value && merges) {
		*merge = value;
	} else if (value) {
		value->key = key->text ? key->text : memory_text("");
		key->text = NULL;
		value->line = key->line;
		value->column = key->column;
		node_add(map, value);
	}
	node_unref(&key);
	return value != NULL;
}

static struct node *parse_map(struct builder *b, int depth)
{
	if (!charge(b, 0))
		return NULL;
	struct node *map = begin(b, NODE_MAP), *merge = NULL;
	bool ok = true;
	check_tag(b, (const char *)b->event.data.mapping_start.tag, YAML_MAP_TAG, map);
	while ((ok = ok && advance(b)) && b->event.type != YAML_MAPPING_END_EVENT)
		ok = parse_entry(b, map, &merge, depth);
	if (ok && map->count > 1)
		check_unique(b, map);
	ok = ok && (!merge || merge_into(b, map, merge, 0));
	node_unref(&merge);
	if (!ok)
		node_unref(&map);
	return map;
}

/* The current event begins a value; afterwards it is the value's last one. */
static struct node *parse_value(struct builder *b, int depth)
{
	if (depth > DEPTH_MAX) {
		fail_here(b, "nested deeper than 100 levels");
		return NULL;
	}
	struct node *node = NULL;
	char *anchor = NULL;
	switch (b->event.type) {
	case YAML_ALIAS_EVENT:
		return recall(b);
	case YAML_SCALAR_EVENT:
		anchor = memory_text((const char *)b->event.data.scalar.anchor);
		node = parse_scalar(b);
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = memory_text((const char *)b->event.data.sequence_start.anchor);
		node = parse_list(b, depth);
		break;
	default:
		anchor = memory_text((const char *)b->event.data.mapping_start.anchor);
		node = parse_map(b, depth);
	}
	if (node && anchor && !remember(b, anchor, node))
		node_unref(&node);
	memory_free(anchor);
	return node;
}

static struct node *parse_document(struct builder *b)
{
	if (!advance(b) || !advance(b)) /* the stream's start, then the document's */
		return NULL;
	if (b->event.type == YAML_STREAM_END_EVENT)
		return begin(b, NODE_NULL);
	struct node *root = advance(b) ? parse_value(b, 0) : NULL;
	if (!root)
		return NULL;
	bool ok = advance(b) && advance(b);
	if (ok && b->event.type != YAML_STREAM_END_EVENT)
		ok = fail_here(b, "more than one document; only one is supported");
	if (!ok)
		node_unref(&root);
	return root;
}

struct node *config_parse_all(const char *source, bool lines, const char *yaml, size_t len,
			      struct problems *problems)
{
	struct builder b = { .inlined = !lines, .problems = problems };
	struct error why;
	if (len > TEXT_MAX) {
		error_set(&why, ERROR_CONFIG, "%.200s: larger than 16 MiB", source);
		problems_add(problems, &why);
		return NULL;
	}
	if (!yaml_parser_initialize(&b.parser)) {
		error_set(&why, ERROR_INTERNAL, "out of memory");
		problems_add(problems, &why);
		return NULL;
	}
	b.source = node_source(source);
	b.text = (struct view){ (const uint8_t *)yaml, len };
	yaml_parser_set_input_string(&b.parser, (const unsigned char *)(len ? yaml : ""), len);
	struct node *root = parse_document(&b);
	for (size_t i = 0; i < b.anchors.count; i++)
		node_unref(&b.anchors.children[i]);
	memory_free(b.anchors.children);
	yaml_event_delete(&b.event);
	yaml_parser_delete(&b.parser);
	node_source_unref(&b.source);
	return root;
}

struct node *config_parse(const char *source, const char *yaml, size_t len, struct error *err)
{
	struct problems problems = { 0 };
	struct node *root = config_parse_all(source, true, yaml, len, &problems);
	if (!problems_end(&problems, err))
		node_unref(&root);
	return root;
}
