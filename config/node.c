/* SPDX-License-Identifier: Apache-2.0 */
#include "config/node.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

struct source {
	size_t count;
	char name[];
};

static struct source *source_of(const char *name)
{
	return (struct source *)(name - offsetof(struct source, name));
}

const char *node_source(const char *name)
{
	size_t len = strlen(name);
	struct source *source = memory_new(sizeof *source + len + 1);
	source->count = 1;
	memcpy(source->name, name, len);
	return source->name;
}

static const char *source_ref(const char *name)
{
	if (name)
		source_of(name)->count++;
	return name;
}

void node_source_unref(const char **source)
{
	if (*source && --source_of(*source)->count == 0)
		memory_free(source_of(*source));
	*source = NULL;
}

struct node *node_new(enum node_kind kind, const struct node *at)
{
	struct node *node = memory_new(sizeof *node);
	node->kind = kind;
	if (at) {
		node->source = source_ref(at->source);
		node->line = at->line;
		node->column = at->column;
	}
	return node;
}

void node_add(struct node *parent, struct node *child)
{
	/* Grows at powers of two, so that the room need not be remembered. */
	if ((parent->count & (parent->count - 1)) == 0)
		parent->children =
			memory_resize(parent->children, (parent->count ? parent->count * 2 : 1) *
								sizeof *parent->children);
	parent->children[parent->count++] = child;
}

void node_remove(struct node *parent, size_t index)
{
	struct node **at = parent->children + index;
	node_unref(at);
	memmove(at, at + 1, (--parent->count - index) * sizeof *at);
}

struct node *node_copy(const struct node *node)
{
	struct node *copy = node_new(node->kind, node);
	copy->key = memory_text(node->key);
	copy->text = memory_text(node->text);
	copy->verbatim = memory_text(node->verbatim);
	copy->quoted = node->quoted;
	copy->reference = source_ref(node->reference);
	copy->unset = memory_text(node->unset);
	copy->brought_key = node->brought_key;
	copy->broken = node->broken;
	for (size_t i = 0; i < node->count; i++)
		node_add(copy, node_copy(node->children[i]));
	return copy;
}

static bool text_equal(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

bool node_equal(const struct node *a, const struct node *b)
{
	if (a->kind != b->kind || a->quoted != b->quoted || a->count != b->count ||
	    !text_equal(a->text, b->text) || !text_equal(a->verbatim, b->verbatim))
		return false;
	for (size_t i = 0; i < a->count; i++) {
		const struct node *entry = a->children[i];
		const struct node *other =
			a->kind == NODE_MAP ? node_get(b, entry->key) : b->children[i];
		if (!other || !node_equal(entry, other))
			return false;
	}
	return true;
}

void node_place(struct node *node, const struct node *at)
{
	const char *old = node->source;
	node->source = source_ref(at->source);
	node_source_unref(&old);
	node->line = at->line;
	node->column = at->column;
	for (size_t i = 0; i < node->count; i++)
		node_place(node->children[i], at);
}

void node_refer(struct node *node, const char *reference)
{
	const char *old = node->reference;
	node->reference = source_ref(reference);
	node_source_unref(&old);
	for (size_t i = 0; i < node->count; i++) {
		node_refer(node->children[i], reference);
		node->children[i]->brought_key = node->kind == NODE_MAP;
	}
}

const char *node_shown(const struct node *node)
{
	return node->reference ? node->reference : node->text ? node->text : "";
}

const char *node_shown_key(const struct node *entry)
{
	return entry->brought_key ? entry->reference : entry->key;
}

void node_unref(struct node **node)
{
	struct node *n = *node;
	*node = NULL;
	if (!n)
		return;
	for (size_t i = 0; i < n->count; i++)
		node_unref(&n->children[i]);
	memory_free(n->children);
	memory_free(n->key);
	memory_free(n->text);
	memory_free(n->verbatim);
	memory_free(n->unset);
	node_source_unref(&n->source);
	node_source_unref(&n->reference);
	memory_free(n);
}

const struct node *node_get(const struct node *map, const char *key)
{
	if (!map || map->kind != NODE_MAP)
		return NULL;
	for (size_t i = 0; i < map->count; i++)
		if (strcmp(map->children[i]->key, key) == 0)
			return map->children[i];
	return NULL;
}

const struct node *node_find(const struct node *node, const char *key, const char *text, char *path)
{
	size_t used = strlen(path);
	for (size_t i = 0; i < node->count; i++) {
		const struct node *child = node->children[i], *found = child;
		if (child->brought_key || node->kind != NODE_MAP)
			snprintf(path + used, PATH_TEXT - used, "[%zu]", i);
		else
			snprintf(path + used, PATH_TEXT - used, "::%s", child->key);
		bool hit = child->key && child->text && !strcmp(child->key, key) &&
			   !strncmp(child->text, text, strlen(text));
		if (hit || (found = node_find(child, key, text, path)))
			return found;
	}
	path[used] = '\0';
	return NULL;
}

enum { SOURCE_SHOWN_MAX = 120 };

/* Shells write $NAME, and Kubernetes $(NAME). */
static bool looks_expanded(const struct node *node)
{
	for (const char *at = node->reference ? NULL : node->text; at && *at; at++)
		if (at[0] == '$' && (isalpha((unsigned char)at[1]) || at[1] == '_' || at[1] == '('))
			return true;
	return false;
}

bool node_error(const struct node *at, const char *path, struct error *err, const char *format, ...)
{
	if (!err)
		return false;
	char text[sizeof err->text];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	bool unset = at && at->unset;
	error_set(err, ERROR_CONFIG, "%s%s%s%s%.100s%s%s", path, *path ? ": " : "", text,
		  unset ? "; the environment variable " : "", unset ? at->unset : "",
		  unset ? " is not set" : "",
		  at && looks_expanded(at) ? "; only ${...} is expanded, as in ${env:NAME}" : "");
	if (!at || !at->source)
		return false;
	size_t len = strnlen(at->source, SOURCE_SHOWN_MAX);
	if (at->line)
		error_prefix(err, "%.*s:%d:%d", (int)len, at->source, at->line, at->column);
	else
		error_prefix(err, "%.*s", (int)len, at->source);
	err->place = (struct error_place){ len, at->line, at->column };
	return false;
}

/* Returns how much was written; the front is written first, by recursion. */
static size_t render(const struct path *path, char *out, size_t room)
{
	if (!path)
		return 0;
	size_t used = render(path->up, out, room);
	int more;
	if (path->key)
		more = snprintf(out + used, room - used, "%s%s", used && *path->key ? "::" : "",
				path->key);
	else
		more = snprintf(out + used, room - used, "[%zu]", path->index);
	used += (size_t)more;
	return used < room ? used : room - 1;
}

const char *path_text(const struct path *path, char out[PATH_TEXT])
{
	out[0] = '\0';
	render(path, out, PATH_TEXT);
	return out;
}

struct path path_step(const struct path *up, const struct node *entry, size_t index)
{
	return (struct path){ up, entry->brought_key ? NULL : entry->key, index };
}
