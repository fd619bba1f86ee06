/* SPDX-License-Identifier: Apache-2.0 */
#include "config/print.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/quote.h"
#include "config/scalar.h"
#include "config/value.h"

enum {
	INDENT_STEP = 2,
	KEY_SIMPLE_MAX = 1000 /* libyaml takes a longer key only behind "? " */
};

struct printer {
	struct bytes *out;
	int indent;
	bool json, redact;
	bool same_line; /* behind "- ": the next key stands there */
};

static void print_table(struct printer *p, const struct config_table *table, const char *config,
			const struct node *node);

static void put(struct printer *p, const char *text)
{
	bytes_add_text(p->out, text);
}

/* Words that some YAML reader takes for no string. */
static bool is_loaded_word(const char *text)
{
	static const char *const words[] = { "true", "false", "null", "yes", "no",
					     "on",   "off",   "y",    "n" };
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strcasecmp(text, words[i]) == 0)
			return true;
	return false;
}

static bool is_plain(const char *text)
{
	if (!isalpha((unsigned char)text[0]) && text[0] != '_' && text[0] != '/')
		return false;
	for (const char *at = text; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr("_./-", *at) && !(*at == ':' && at[1]))
			return false;
	return !is_loaded_word(text);
}

static void put_string(struct printer *p, const char *text)
{
	if (!p->json && is_plain(text))
		put(p, text);
	else
		quote_json(p->out, text, strlen(text));
}

/* A string that ${...} is expanded in: doubles "$" if the text has what expansion looks for. */
static void put_value(struct printer *p, const char *text)
{
	if (!strstr(text, "${") && !strstr(text, "$$")) {
		put_string(p, text);
		return;
	}
	struct bytes doubled;
	bytes_init(&doubled, p->out->max);
	for (const char *at = text; *at; at++)
		bytes_add(&doubled, *at == '$' ? "$$" : at, *at == '$' ? 2 : 1);
	quote_json(p->out, doubled.at, doubled.len);
	bytes_fini(&doubled);
}

static void start_line(struct printer *p)
{
	if (!p->same_line)
		for (int i = 0; i < p->indent; i++)
			put(p, " ");
	p->same_line = false;
}

static void put_comma(struct printer *p)
{
	uint8_t last = p->out->len ? p->out->at[p->out->len - 1] : '{';
	if (last != '{' && last != '[')
		put(p, ",");
}

/* Up to and with the ":". */
static void put_key(struct printer *p, const char *key)
{
	if (p->json) {
		put_comma(p);
		put_string(p, key);
	} else {
		start_line(p);
		size_t mark = p->out->len;
		put_string(p, key);
		if (p->out->len - mark > KEY_SIMPLE_MAX) {
			p->out->len = mark;
			put(p, "? ");
			put_string(p, key);
			put(p, "\n");
			start_line(p);
		}
	}
	put(p, ":");
}

/* Between a key and its scalar, and behind the scalar. */
static void before_scalar(struct printer *p)
{
	if (!p->json)
		put(p, " ");
}

static void after_scalar(struct printer *p)
{
	if (!p->json)
		put(p, "\n");
}

/* What a collection behind a key remembers to end itself. */
struct mark {
	size_t begin, body;
	const char *empty;
	bool in_item; /* a member of a list, which begins on the line of its "-" */
};

static struct mark open_collection(struct printer *p, const char *json_open, const char *empty,
				   bool in_item)
{
	struct mark mark = { .begin = p->out->len, .empty = empty, .in_item = in_item };
	p->indent += INDENT_STEP;
	if (p->json)
		put(p, json_open);
	else
		put(p, in_item ? " " : "\n");
	p->same_line = in_item && !p->json;
	mark.body = p->out->len;
	return mark;
}

static void close_collection(struct printer *p, const struct mark *mark, const char *json_close)
{
	p->indent -= INDENT_STEP;
	p->same_line = false;
	if (p->json) {
		put(p, json_close);
	} else if (p->out->len == mark->body) {
		p->out->len = mark->begin;
		bytes_format(p->out, " %s\n", mark->empty);
	}
}

static struct mark open_map(struct printer *p, bool in_item)
{
	return open_collection(p, "{", "{}", in_item);
}

static struct mark open_list(struct printer *p)
{
	return open_collection(p, "[", "[]", false);
}

static void put_dash(struct printer *p)
{
	if (p->json) {
		put_comma(p);
		return;
	}
	start_line(p);
	put(p, "-");
}

/* Is the node to be shown as what was written? Then it is. */
static bool print_reference(struct printer *p, const struct node *node)
{
	if (!p->redact || !node || !node->reference)
		return false;
	before_scalar(p);
	put_string(p, node->reference);
	after_scalar(p);
	return true;
}

/* The node that the i-th element was bound from; NULL: none, for it is a default, or was split from
 * one text. */
static const struct node *element_of(const struct node *list, size_t i)
{
	return list && i < list->count ? list->children[i] : NULL;
}

static void put_secret(struct printer *p, const char *text)
{
	if (p->redact)
		quote_json(p->out, "[REDACTED]", 10);
	else
		put_value(p, text);
}

static void print_strings(struct printer *p, const struct strings *strings, const struct node *node,
			  bool secret)
{
	struct mark mark = open_list(p);
	for (size_t i = 0; i < strings->count; i++) {
		put_dash(p);
		if (!secret && print_reference(p, element_of(node, i)))
			continue;
		before_scalar(p);
		(secret ? put_secret : put_value)(p, strings->at[i]);
		after_scalar(p);
	}
	close_collection(p, &mark, "]");
}

/* Of {name: n, value: v} in a list, too. */
static const char *shown_name(const struct printer *p, const struct node *entry, const char *name)
{
	const struct node *given = entry && !entry->key ? node_get(entry, "name") : NULL;
	return p->redact && given ? node_shown(given) : name;
}

static void print_pairs(struct printer *p, const struct pairs *pairs, const struct node *node)
{
	struct mark mark = open_map(p, false);
	for (size_t i = 0; i < pairs->count; i++) {
		put_key(p, shown_name(p, element_of(node, i), pairs->at[i].name));
		before_scalar(p);
		put_secret(p, pairs->at[i].value.text);
		after_scalar(p);
	}
	close_collection(p, &mark, "}");
}

/* A float must not read as an integer where both are possible. */
static void put_double(struct printer *p, double number, bool as_float)
{
	char text[40];
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, number);
		if (strtod(text, NULL) == number)
			break;
	}
	put(p, text);
	if (as_float && !strpbrk(text, ".e"))
		put(p, ".0");
}

static void put_number(struct printer *p, int64_t number)
{
	bytes_format(p->out, "%lld", (long long)number);
}

static void put_scalar_node(struct printer *p, const struct node *node)
{
	struct scalar s = scalar_of(node);
	if (node->kind == NODE_NULL)
		put(p, "null");
	else if (s.kind == SCALAR_STRING)
		put_value(p, node->text);
	else if (s.kind == SCALAR_BOOL)
		put(p, s.truth ? "true" : "false");
	else if (s.kind == SCALAR_INT)
		put_number(p, s.integer);
	else if (isfinite(s.number))
		put_double(p, s.number, true);
	else
		put(p, p->json ? "null" : node->text); /* JSON has neither infinity nor NaN */
}

static void print_node(struct printer *p, const struct node *node, bool in_item)
{
	if (print_reference(p, node))
		return;
	if (node->kind == NODE_NULL || node->kind == NODE_SCALAR) {
		before_scalar(p);
		put_scalar_node(p, node);
		after_scalar(p);
		return;
	}
	bool map = node->kind == NODE_MAP;
	struct mark mark = map ? open_map(p, in_item) : open_list(p);
	for (size_t i = 0; i < node->count; i++) {
		if (map)
			put_key(p, node->children[i]->key);
		else
			put_dash(p);
		print_node(p, node->children[i], !map);
	}
	close_collection(p, &mark, map ? "}" : "]");
}

static void print_items(struct printer *p, const struct config_row *row,
			const struct config_items *items, const struct node *node)
{
	bool map = row->type == CONFIG_MAP;
	struct mark outer = map ? open_map(p, false) : open_list(p);
	for (size_t i = 0; i < items->count; i++) {
		if (map)
			put_key(p, items->names[i]);
		else
			put_dash(p);
		if (print_reference(p, element_of(node, i)))
			continue;
		struct mark inner = open_map(p, !map);
		print_table(p, row->table, (const char *)items->at + i * row->table->size,
			    element_of(node, i));
		close_collection(p, &inner, "}");
	}
	close_collection(p, &outer, map ? "}" : "]");
}

static void put_any(struct printer *p, const struct config_any *any)
{
	if (any->kind == ANY_STRING)
		put_value(p, any->text);
	else if (any->kind == ANY_INT)
		put_number(p, any->integer);
	else if (any->kind == ANY_DOUBLE)
		put_double(p, any->number, true);
	else
		put(p, any->integer ? "true" : "false");
}

static void put_duration(struct printer *p, int64_t ns)
{
	put(p, p->json ? "\"" : "");
	scalar_add_duration(p->out, ns);
	put(p, p->json ? "\"" : "");
}

static void put_member(struct printer *p, const struct config_row *row, const void *member)
{
	switch (row->type) {
	case CONFIG_BOOL:
		put(p, *(const bool *)member ? "true" : "false");
		break;
	case CONFIG_INT:
		put_number(p, *(const int64_t *)member);
		break;
	case CONFIG_DOUBLE:
		put_double(p, *(const double *)member, false);
		break;
	case CONFIG_STRING:
		put_value(p, *(char *const *)member);
		break;
	case CONFIG_DURATION:
		put_duration(p, ((const struct duration *)member)->ns);
		break;
	case CONFIG_SECRET:
		put_secret(p, ((const struct secret *)member)->text);
		break;
	case CONFIG_CHOICE:
		put_value(p, row->choices[((const struct choice *)member)->index]);
		break;
	default:
		put_any(p, member);
	}
}

/* Absent: what no key in the YAML gives. */
static bool is_absent(const struct config_row *row, const void *member)
{
	switch (row->type) {
	case CONFIG_STRING:
		return !*(char *const *)member;
	case CONFIG_SECRET:
		return !((const struct secret *)member)->text;
	case CONFIG_NODE:
		return !*(const struct node *const *)member;
	case CONFIG_ANY:
		return ((const struct config_any *)member)->kind == ANY_ABSENT;
	case CONFIG_TABLE:
		return row->table->optional && !((const struct optional *)member)->enabled &&
		       row->presence != PRESENCE_SOME;
	default:
		return false;
	}
}

static void print_section(struct printer *p, const struct config_row *row, const char *member,
			  const struct node *node)
{
	struct mark mark = open_map(p, false);
	if (row->table->optional && !((const struct optional *)(const void *)member)->enabled) {
		put_key(p, "enabled");
		before_scalar(p);
		put(p, "false");
		after_scalar(p);
	}
	print_table(p, row->table, member, node);
	close_collection(p, &mark, "}");
}

static void print_row(struct printer *p, const struct config_row *row, const char *member,
		      const struct node *node)
{
	const struct config_any *any = (const void *)member;
	put_key(p, row->key);
	if (row->type != CONFIG_SECRET && row->type != CONFIG_SECRETS && print_reference(p, node))
		return;
	if (row->type == CONFIG_TABLE) {
		print_section(p, row, member, node);
	} else if (row->type == CONFIG_LIST || row->type == CONFIG_MAP) {
		print_items(p, row, (const void *)member, node);
	} else if (row->type == CONFIG_STRINGS || row->type == CONFIG_SECRETS) {
		print_strings(p, (const void *)member, node, row->type == CONFIG_SECRETS);
	} else if (row->type == CONFIG_ANY && any->kind == ANY_TREE) {
		print_node(p, any->tree, false);
	} else if (row->type == CONFIG_PAIRS) {
		print_pairs(p, (const void *)member, node);
	} else if (row->type == CONFIG_NODE) {
		print_node(p, *(const struct node *const *)(const void *)member, false);
	} else {
		before_scalar(p);
		put_member(p, row, member);
		after_scalar(p);
	}
}

static void print_table(struct printer *p, const struct config_table *table, const char *config,
			const struct node *node)
{
	const char *twice;
	for (const struct config_row *row = table->rows; row->key; row++)
		if (!row->alias_of && !is_absent(row, config + row->offset))
			print_row(p, row, config + row->offset,
				  value_find_entry(table, node, row, &twice));
}

void config_print(const struct config_table *table, const void *config, const struct node *node,
		  int indent, bool redact, struct bytes *out)
{
	struct printer p = { .out = out, .indent = indent, .redact = redact };
	print_table(&p, table, config, node);
}

void config_print_members(const struct config_table *table, const void *config,
			  const struct node *node, bool redact, struct bytes *out)
{
	struct printer p = { .out = out, .json = true, .redact = redact };
	print_table(&p, table, config, node);
}

void config_print_json(const struct config_table *table, const void *config,
		       const struct node *node, bool redact, struct bytes *out)
{
	bytes_add_byte(out, '{');
	config_print_members(table, config, node, redact, out);
	bytes_add_byte(out, '}');
}
