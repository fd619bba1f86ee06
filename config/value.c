/* SPDX-License-Identifier: Apache-2.0 */
#include "config/value.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "config/scalar.h"
#include "config/suggest.h"

bool value_error(const struct value_spot *spot, const char *format, ...)
{
	char path[PATH_TEXT], text[300];
	struct error why;
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	node_error(spot->node, "", &why, "'%s' %s", path_text(spot->path, path), text);
	return problems_add_at(spot->problems, spot->node, &why);
}

/* What to write instead of a value of the wrong type; "": nothing simple. */
static const char *type_hint(const struct node *node, enum value_kind expected,
			     char out[DURATION_HINT])
{
	static const struct {
		const char *quoted, *scalar, *other;
	} hints[] = {
#define SAME(hint) { hint, hint, hint }
		[VALUE_BOOL] = SAME("write true or false"),
		[VALUE_INT] = { "write a whole number without quotes", "write a whole number",
				"write a whole number" },
		[VALUE_DOUBLE] = { "write a number without quotes", "write a number",
				   "write a number" },
		[VALUE_STRING] = { NULL, "put it in quotes", "write one string" },
		[VALUE_MAP] = SAME("write keys and values"),
		[VALUE_LIST] = { "put it in [ ]", "put it in [ ]", "begin each entry with -" },
#undef SAME
	};
	if (expected == VALUE_DURATION)
		return scalar_duration_hint(node->reference ? NULL : node->text, out);
	if (node->kind != NODE_SCALAR)
		return hints[expected].other;
	if (expected == VALUE_INT && !node->quoted && scalar_of(node).kind == SCALAR_STRING &&
	    strspn(node->text, "0123456789"))
		return "write a whole number without a unit";
	return node->quoted && !node->reference ? hints[expected].quoted : hints[expected].scalar;
}

bool value_wrong_type(const struct value_spot *spot, enum value_kind expected)
{
	static const char *const names[] = {
		[VALUE_BOOL] = "a boolean",      [VALUE_INT] = "a whole number",
		[VALUE_DOUBLE] = "a number",     [VALUE_STRING] = "a string",
		[VALUE_DURATION] = "a duration", [VALUE_MAP] = "a map",
		[VALUE_LIST] = "a list",
	};
	char hint[DURATION_HINT];
	const char *from = spot->node->reference;
	return value_error(spot, "expected %s, got %s%s%.100s; %s", names[expected],
			   scalar_type_name(spot->node), from ? " from " : "", from ? from : "",
			   type_hint(spot->node, expected, hint));
}

/* What a string field takes: a string, or whatever came whole from ${...}, as it stood there. */
static const char *string_of(const struct node *node)
{
	if (node->verbatim)
		return node->verbatim;
	return node->kind == NODE_SCALAR && scalar_of(node).kind == SCALAR_STRING ? node->text
										  : NULL;
}

enum { NUMBER_TEXT = 32 };

/* A number as the operator would write it. */
static const char *written(const struct value_spot *spot, int64_t number, char room[NUMBER_TEXT])
{
	struct bytes text;
	if (spot->row->type != CONFIG_DURATION) {
		snprintf(room, NUMBER_TEXT, "%lld", (long long)number);
		return room;
	}
	bytes_init(&text, NUMBER_TEXT);
	scalar_add_duration(&text, number);
	snprintf(room, NUMBER_TEXT, "%.*s", (int)text.len, (const char *)text.at);
	bytes_fini(&text);
	return room;
}

static bool check_range(const struct value_spot *spot, int64_t value)
{
	const struct config_row *row = spot->row;
	char min[NUMBER_TEXT], max[NUMBER_TEXT], got[NUMBER_TEXT];
	bool open = row->max < row->min || row->max == INT64_MAX;
	const char *reference = spot->node->reference;
	if (!row->limited || (value >= row->min && (value <= row->max || open)))
		return true;
	const char *shown = reference ? reference : written(spot, value, got);
	if (open)
		return value_error(spot, "must be at least %s, got %.100s",
				   written(spot, row->min, min), shown);
	return value_error(spot, "must be between %s and %s, got %.100s",
			   written(spot, row->min, min), written(spot, row->max, max), shown);
}

/* Only an expanded null comes here: an unset variable, the zero value. */
static bool is_unset(const struct value_spot *spot)
{
	return spot->node->kind == NODE_NULL;
}

static bool bind_bool(const struct value_spot *spot, void *member)
{
	struct scalar s = scalar_of(spot->node);
	if (s.kind != SCALAR_BOOL && !is_unset(spot))
		return value_wrong_type(spot, VALUE_BOOL);
	*(bool *)member = s.truth;
	return true;
}

static bool bind_int(const struct value_spot *spot, void *member)
{
	struct scalar s = scalar_of(spot->node);
	bool whole = s.kind == SCALAR_FLOAT && s.number == trunc(s.number);
	if (whole && fabs(s.number) >= 9223372036854775808.0)
		return value_error(spot, "is out of range, got %.100s", node_shown(spot->node));
	if (whole)
		s.integer = (int64_t)s.number;
	else if (s.kind != SCALAR_INT && !is_unset(spot))
		return value_wrong_type(spot, VALUE_INT);
	*(int64_t *)member = s.integer;
	return check_range(spot, s.integer);
}

static bool bind_double(const struct value_spot *spot, void *member)
{
	struct scalar s = scalar_of(spot->node);
	double number = s.kind == SCALAR_INT ? (double)s.integer : s.number;
	if (s.kind != SCALAR_INT && s.kind != SCALAR_FLOAT && !is_unset(spot))
		return value_wrong_type(spot, VALUE_DOUBLE);
	if (!isfinite(number))
		return value_error(spot, "must be a finite number");
	const struct config_row *row = spot->row;
	*(double *)member = number == 0 ? 0 : number; /* -0 prints as what reads as the integer 0 */
	bool open = row->max < row->min;
	if (!row->limited || (number >= (double)row->min && (open || number <= (double)row->max)))
		return true;
	return value_error(spot, open ? "must be at least %lld" : "must be between %lld and %lld",
			   (long long)row->min, (long long)row->max);
}

static bool bind_string(const struct value_spot *spot, void *member)
{
	const char *text = string_of(spot->node);
	if (!text)
		return value_wrong_type(spot, VALUE_STRING);
	*(char **)member = memory_text(text);
	return true;
}

static bool bind_duration(const struct value_spot *spot, void *member)
{
	const char *text = is_unset(spot) ? "0" : string_of(spot->node);
	struct scalar s = scalar_of(spot->node);
	struct error why = { 0 };
	int64_t ns = 0;
	if (!text && (s.kind != SCALAR_INT || s.integer != 0))
		return value_wrong_type(spot, VALUE_DURATION);
	char hint[DURATION_HINT];
	if (text && !scalar_duration(text, &ns, &why))
		return spot->node->reference
			       ? value_error(spot, "must be a duration, got \"%.100s\"; %s",
					     spot->node->reference,
					     scalar_duration_hint(NULL, hint))
			       : value_error(spot, "%s", why.text);
	if (ns < 0 && !(spot->row->limited && spot->row->min < 0))
		return value_error(spot, "must not be negative");
	((struct duration *)member)->ns = ns;
	return check_range(spot, ns);
}

static bool bind_secret(const struct value_spot *spot, void *member)
{
	return bind_string(spot, &((struct secret *)member)->text);
}

static void push(struct strings *list, char *text)
{
	list->at = memory_resize(list->at, (list->count + 1) * sizeof *list->at);
	list->at[list->count++] = text;
}

static void split(struct strings *list, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, ",");
		push(list, memory_text_of(text, len));
		text += len;
		if (*text == ',' && !*++text)
			push(list, memory_text(""));
	}
}

/* NULL: it has an error. */
static const char *read_item(const struct value_spot *item)
{
	const char *text = string_of(item->node);
	if (problems_has(item->problems, item->node))
		return NULL;
	if (!text)
		value_wrong_type(item, VALUE_STRING);
	return text;
}

static bool bind_strings(const struct value_spot *spot, void *member)
{
	struct strings *list = member;
	const struct node *node = spot->node;
	if (node->kind != NODE_LIST) {
		const char *text = node->kind == NODE_MAP ? NULL : string_of(node);
		if (!text)
			return value_wrong_type(spot, VALUE_LIST);
		split(list, text);
		return true;
	}
	bool ok = true;
	for (size_t i = 0; i < node->count; i++) {
		struct path path = path_step(spot->path, node->children[i], i);
		struct value_spot item = { spot->row, node->children[i], &path, spot->problems };
		const char *text = read_item(&item);
		ok &= text != NULL;
		push(list, memory_text(text ? text : ""));
	}
	return ok;
}

static bool bind_secrets(const struct value_spot *spot, void *member)
{
	return bind_strings(spot, &((struct secrets *)member)->list);
}

static void add_pair(struct pairs *pairs, const char *name, const char *value)
{
	pairs->at = memory_resize(pairs->at, (pairs->count + 1) * sizeof *pairs->at);
	pairs->at[pairs->count++] = (struct pair){ memory_text(name), { memory_text(value) } };
}

/* A null value is the empty text. */
static bool bind_pair(const struct value_spot *spot, const char *name, struct pairs *pairs)
{
	const char *value = spot->node->kind == NODE_NULL ? "" : string_of(spot->node);
	bool readable = !problems_has(spot->problems, spot->node);
	add_pair(pairs, name, readable && value ? value : "");
	return readable && (value || value_wrong_type(spot, VALUE_STRING));
}

/* {name: n, value: v} of a list. */
static bool bind_listed_pair(const struct value_spot *item, struct pairs *pairs)
{
	const struct node *name = NULL, *value = NULL;
	if (item->node->kind != NODE_MAP)
		return value_wrong_type(item, VALUE_MAP);
	for (size_t i = 0; i < item->node->count; i++) {
		const struct node *entry = item->node->children[i];
		if (strcmp(entry->key, "name") == 0)
			name = entry;
		else if (strcmp(entry->key, "value") == 0)
			value = entry;
		else
			return value_error(item,
					   "has invalid keys: %.100s (valid keys: [name value])",
					   node_shown_key(entry));
	}
	const char *text = name ? string_of(name) : NULL;
	if (problems_has(item->problems, name))
		return false;
	if (!text || !value)
		return value_error(item, "must have a name and a value");
	struct path path = { item->path, "value", 0 };
	return bind_pair(&(struct value_spot){ item->row, value, &path, item->problems }, text,
			 pairs);
}

/* An entry with an error has no name. */
static bool is_listed_before(const struct pairs *pairs, size_t i)
{
	size_t k = 0;
	while (k < i && strcmp(pairs->at[i].name, pairs->at[k].name) != 0)
		k++;
	return k < i && *pairs->at[i].name;
}

static bool check_pair_names(const struct value_spot *spot, const struct pairs *pairs)
{
	bool ok = true;
	for (size_t i = 1; i < pairs->count; i++) {
		const struct node *item = spot->node->children[i];
		struct value_spot at = { spot->row, item, spot->path, spot->problems };
		if (is_listed_before(pairs, i))
			ok = value_error(&at, "lists the name %.100s twice",
					 node_shown(node_get(item, "name")));
	}
	return ok;
}

static bool bind_pairs(const struct value_spot *spot, void *member)
{
	const struct node *node = spot->node;
	struct pairs *pairs = member;
	if (node->kind != NODE_MAP && node->kind != NODE_LIST && !is_unset(spot))
		return value_wrong_type(spot, VALUE_MAP);
	bool ok = true;
	for (size_t i = 0; i < node->count; i++) {
		struct path path = path_step(spot->path, node->children[i], i);
		struct value_spot item = { spot->row, node->children[i], &path, spot->problems };
		if (problems_has(spot->problems, item.node))
			ok = false;
		else
			ok &= node->kind == NODE_LIST ? bind_listed_pair(&item, pairs)
						      : bind_pair(&item, item.node->key, pairs);
		if (pairs->count == i)
			add_pair(pairs, "", "");
	}
	return (node->kind != NODE_LIST || check_pair_names(spot, pairs)) && ok;
}

static void list_choices(const struct config_row *row, char *out, size_t size)
{
	size_t used = 0;
	out[0] = '\0';
	for (const char *const *c = row->choices; *c && used < size; c++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", used ? " " : "",
					 **c ? *c : "\"\"");
}

static bool bind_choice(const struct value_spot *spot, void *member)
{
	const char *text = string_of(spot->node);
	if (!text && spot->node->kind == NODE_SCALAR)
		text = spot->node->text;
	if (!text)
		return value_wrong_type(spot, VALUE_STRING);
	for (int i = 0; spot->row->choices[i]; i++) {
		if (strcmp(spot->row->choices[i], text) != 0)
			continue;
		((struct choice *)member)->index = i;
		return true;
	}
	char valid[160], meant[SUGGEST_TEXT];
	struct suggest suggest = { .name = spot->node->reference ? NULL : text };
	for (const char *const *c = spot->row->choices; *c; c++)
		suggest_try(&suggest, *c);
	list_choices(spot->row, valid, sizeof valid);
	return value_error(spot, "unsupported value \"%.60s\" (valid values: [%s])%s",
			   node_shown(spot->node), valid, suggest_text(&suggest, meant));
}

static bool bind_node(const struct value_spot *spot, void *member)
{
	*(const struct node **)member = is_unset(spot) ? NULL : spot->node;
	return true;
}

static bool bind_any(const struct value_spot *spot, void *member)
{
	struct config_any *any = member;
	if (is_unset(spot))
		return true;
	if (spot->node->kind != NODE_SCALAR) {
		*any = (struct config_any){ .kind = ANY_TREE, .tree = spot->node };
		return true;
	}
	struct scalar s = scalar_of(spot->node);
	switch (s.kind) {
	case SCALAR_INT:
		*any = (struct config_any){ .kind = ANY_INT, .integer = s.integer };
		break;
	case SCALAR_BOOL:
		*any = (struct config_any){ .kind = ANY_BOOL, .integer = s.truth };
		break;
	case SCALAR_FLOAT:
		*any = (struct config_any){ .kind = ANY_DOUBLE, .number = s.number };
		return isfinite(s.number) || value_error(spot, "must be a finite number");
	default:
		*any = (struct config_any){ .kind = ANY_STRING,
					    .text = memory_text(spot->node->text) };
	}
	return true;
}

static bool (*const binders[])(const struct value_spot *spot, void *member) = {
	[CONFIG_BOOL] = bind_bool,         [CONFIG_INT] = bind_int,
	[CONFIG_DOUBLE] = bind_double,     [CONFIG_STRING] = bind_string,
	[CONFIG_DURATION] = bind_duration, [CONFIG_SECRET] = bind_secret,
	[CONFIG_STRINGS] = bind_strings,   [CONFIG_PAIRS] = bind_pairs,
	[CONFIG_CHOICE] = bind_choice,     [CONFIG_NODE] = bind_node,
	[CONFIG_ANY] = bind_any,           [CONFIG_SECRETS] = bind_secrets,
};

bool value_bind(const struct value_spot *spot, void *member)
{
	assert(binders[spot->row->type]);
	return binders[spot->row->type](spot, member);
}

static void release_strings(struct strings *list)
{
	for (size_t i = 0; i < list->count; i++)
		memory_free(list->at[i]);
	memory_free(list->at);
	*list = (struct strings){ 0 };
}

static void release_pairs(struct pairs *pairs)
{
	for (size_t i = 0; i < pairs->count; i++) {
		memory_free(pairs->at[i].name);
		memory_free(pairs->at[i].value.text);
	}
	memory_free(pairs->at);
	*pairs = (struct pairs){ 0 };
}

void value_release(enum config_type type, void *member)
{
	char **text = type == CONFIG_SECRET ? &((struct secret *)member)->text : member;
	struct config_any *any = member;
	switch (type) {
	case CONFIG_STRING:
	case CONFIG_SECRET:
		memory_free(*text);
		*text = NULL;
		break;
	case CONFIG_STRINGS:
		release_strings(member);
		break;
	case CONFIG_SECRETS:
		release_strings(&((struct secrets *)member)->list);
		break;
	case CONFIG_PAIRS:
		release_pairs(member);
		break;
	case CONFIG_ANY:
		memory_free(any->text);
		*any = (struct config_any){ 0 };
		break;
	default:
		break;
	}
}
