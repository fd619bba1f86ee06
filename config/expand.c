/* SPDX-License-Identifier: Apache-2.0 */
#include "config/expand.h"

#include <string.h>

#include "base/memory.h"
#include "base/quote.h"
#include "config/scalar.h"

enum { STEPS_MAX = 1000, BYTES_MAX = 4 * SOURCE_MAX, NODES_MAX = 100 * 1000, DEPTH_MAX = 100 };

struct expansion {
	const struct config_sources *sources;
	size_t bytes, nodes; /* made so far */
	bool over;           /* a limit is exceeded: nothing more is expanded */
	struct problems *problems;
};

struct visit { /* one value on the way down */
	struct path path;
	int depth;
	int steps;    /* references replaced to come here */
	bool brought; /* the text has been changed by an expansion */
};

static bool fail(struct expansion *e, struct node *at, const struct visit *v, const char *text)
{
	char path[PATH_TEXT];
	struct error why;
	node_error(at, path_text(&v->path, path), &why, "%s", text);
	at->broken = true;
	return problems_add(e->problems, &why);
}

static bool exceed(struct expansion *e, struct node *at, const struct visit *v, const char *text)
{
	e->over = true;
	return fail(e, at, v, text);
}

/*
 * The innermost first reference of the text. As in the Collector, an escaped one ($${A}) hides all
 * that follow.
 */
static bool find_reference(const char *text, size_t *begin, size_t *len)
{
	for (const char *from = text, *close; (close = strchr(from, '}')); from = close + 1) {
		const char *open = close;
		while (open > from && !(open[0] == '$' && open[1] == '{'))
			open--;
		if (!(open[0] == '$' && open[1] == '{'))
			continue;
		const char *dollar = open;
		while (dollar > from && dollar[-1] == '$')
			dollar--;
		*begin = (size_t)(open - text);
		*len = (size_t)(close + 1 - open);
		return (open - dollar) % 2 == 0;
	}
	return false;
}

/* The URI inside of ${...}; without a scheme, or when what follows is ":-", it is a variable. */
static char *reference_uri(const char *reference, size_t len)
{
	char *inside = memory_text_of(reference + 2, len - 3);
	size_t scheme = source_scheme(inside);
	bool variable = scheme == 0;
	if (scheme && inside[scheme + 1] == '-') {
		variable = true;
		const char *known;
		for (size_t i = 0; (known = source_scheme_name(i)); i++)
			if (strlen(known) == scheme && memcmp(known, inside, scheme) == 0)
				variable = false;
	}
	if (!variable)
		return inside;
	char *uri = memory_format("env:%s", inside);
	memory_free(inside);
	return uri;
}

static bool is_text(const struct bytes *b)
{
	uint32_t code;
	for (size_t i = 0, n; i < b->len; i += n)
		if (!b->at[i] || !(n = quote_utf8(b->at + i, b->len - i, &code)))
			return false;
	return true;
}

/* The content that the reference refers to, NULL on error. */
static char *read_reference(struct expansion *e, struct node *at, const struct visit *v,
			    const char *reference, size_t len)
{
	struct error why = { 0 };
	struct bytes text;
	bool unset = false;
	bytes_init(&text, SOURCE_MAX);
	char *uri = reference_uri(reference, len), *copy = NULL;
	char *shown = v->brought ? memory_text(at->reference) : quote_place(uri);
	if (strchr(uri, '$'))
		error_set(&why, ERROR_CONFIG,
			  "the uri \"%.100s\" contains unsupported characters ('$')", shown);
	else if (source_read(e->sources, uri, v->brought ? shown : NULL, &text, &unset, &why) &&
		 !is_text(&text))
		error_set(&why, ERROR_CONFIG, "the content of \"%.100s\" is not valid UTF-8",
			  shown);
	e->bytes += text.len;
	if (unset && !at->unset)
		at->unset = memory_text(v->brought ? shown : strchr(uri, ':') + 1);
	if (why.kind != ERROR_NONE)
		fail(e, at, v, why.text);
	else
		copy = memory_text_of(text.at, text.len);
	memory_free(uri);
	memory_free(shown);
	bytes_fini(&text);
	return copy;
}

static bool take_step(struct expansion *e, struct node *at, struct visit *v)
{
	if (++v->steps > STEPS_MAX)
		return exceed(e, at, v, "too many recursive expansions");
	if (e->bytes > BYTES_MAX)
		return exceed(e, at, v, "expands to more than 64 MiB");
	return true;
}

/* Replaces all occurrences of the reference. NULL when the result would exceed the limit. */
static char *replace_all(const char *text, const char *reference, size_t len,
			 const char *replacement)
{
	struct bytes out;
	bytes_init(&out, SOURCE_MAX);
	bool ok = true;
	while (ok && *text) {
		bool hit = strncmp(text, reference, len) == 0;
		ok = hit ? bytes_add_text(&out, replacement) : bytes_add_byte(&out, (uint8_t)*text);
		text += hit ? len : 1;
	}
	char *copy = ok ? memory_text_of(out.at, out.len) : NULL;
	bytes_fini(&out);
	return copy;
}

/* Replaces the first reference of *text where it stands. */
static bool embed(struct expansion *e, struct node *at, struct visit *v, char **text, size_t begin,
		  size_t len)
{
	char *replacement = read_reference(e, at, v, *text + begin, len);
	if (!replacement)
		return false;
	char *reference = memory_text_of(*text + begin, len);
	char *fresh = replace_all(*text, reference, len, replacement);
	memory_free(reference);
	memory_free(replacement);
	if (!fresh)
		return fail(e, at, v, "expands to more than 16 MiB");
	e->bytes += strlen(fresh);
	memory_free(*text);
	*text = fresh;
	return true;
}

static size_t count_nodes(const struct node *node)
{
	size_t count = 1;
	for (size_t i = 0; i < node->count; i++)
		count += count_nodes(node->children[i]);
	return count;
}

/* The YAML value of the text. A string, or text that is not YAML, stays unchanged. */
static struct node *parse_value(const char *text, const struct node *at)
{
	struct node *value = config_parse("", text, strlen(text), NULL);
	if (!value)
		value = node_new(NODE_SCALAR, at);
	if (value->kind == NODE_SCALAR &&
	    (!value->text || scalar_of(value).kind == SCALAR_STRING)) {
		memory_free(value->text);
		value->text = memory_text(text);
		value->quoted = true;
	}
	node_place(value, at);
	value->verbatim = memory_text(text);
	return value;
}

/* The whole value is one reference: node becomes the value that it refers to. */
static bool substitute(struct expansion *e, struct node *node, struct visit *v)
{
	char *text = read_reference(e, node, v, node->text, strlen(node->text));
	if (!text)
		return false;
	struct node *value = parse_value(text, node);
	memory_free(text);
	e->nodes += count_nodes(value);
	struct node old = *node;
	*node = *value;
	node->key = old.key;
	node->brought_key = old.brought_key;
	node->unset = old.unset;
	old.unset = NULL;
	node_refer(node, old.reference);
	*value = old;
	value->key = NULL;
	node_unref(&value);
	if (e->nodes > NODES_MAX)
		return exceed(e, node, v, "expands to more than 100000 values");
	return true;
}

static bool expand_text(struct expansion *e, struct node *at, struct visit *v, char **text)
{
	size_t begin, len;
	while (find_reference(*text, &begin, &len))
		if (!take_step(e, at, v) || !embed(e, at, v, text, begin, len))
			return false;
	return true;
}

enum { SHOWN_MAX = 4096 };

/* Of a URI in ${...}: the scheme with its ":", where what follows may be secret; else 0. */
static size_t secretive_scheme(const char *uri)
{
	size_t len = source_scheme(uri);
	bool name = !len || uri[len + 1] == '-' || !strncmp(uri, "env:", 4) ||
		    !strncmp(uri, "file:", 5);
	return name ? 0 : len + 1;
}

/*
 * The text as messages may show it: in ${...} neither what follows ":-" nor what follows any scheme
 * but env and file, for defaults, inline text and URLs may be secret.
 */
static const char *shown_text(const char *text)
{
	struct bytes out;
	bytes_init(&out, SHOWN_MAX);
	int depth = 0;
	bool hidden = false;
	for (const char *at = text; *at; at++) {
		if (*at == '}' && depth && --depth == 0 && hidden) {
			bytes_add_text(&out, "...");
			hidden = false;
		}
		if (depth && !hidden && !strncmp(at, ":-", 2)) {
			bytes_add_text(&out, ":-");
			hidden = true;
		}
		if (!hidden)
			bytes_add_byte(&out, (uint8_t)*at);
		if (*at == '{' && at > text && at[-1] == '$') {
			size_t scheme = depth++ == 0 ? secretive_scheme(at + 1) : 0;
			bytes_add(&out, at + 1, scheme);
			hidden |= scheme > 0;
		}
	}
	char *copy = memory_text_of(out.at, out.len);
	const char *shown = node_source(copy);
	memory_free(copy);
	bytes_fini(&out);
	return shown;
}

static void note_reference(struct node *node)
{
	const char *shown = shown_text(node->text);
	node_refer(node, shown);
	node_source_unref(&shown);
}

/* Until the scalar holds no reference, or is none any more. */
static bool expand_scalar(struct expansion *e, struct node *node, struct visit *v)
{
	size_t begin, len;
	v->brought = node->reference != NULL;
	for (; node->kind == NODE_SCALAR && find_reference(node->text, &begin, &len);
	     v->brought = true) {
		if (!node->reference)
			note_reference(node);
		if (!take_step(e, node, v))
			return false;
		if (len == strlen(node->text)) {
			if (!substitute(e, node, v))
				return false;
			continue;
		}
		memory_free(node->verbatim);
		node->verbatim = NULL;
		node->quoted = true;
		if (!embed(e, node, v, &node->text, begin, len))
			return false;
	}
	bool collection = node->kind == NODE_LIST || node->kind == NODE_MAP;
	return !collection || !node->verbatim || expand_text(e, node, v, &node->verbatim);
}

static void unescape(char *text)
{
	if (!text)
		return;
	char *out = text;
	for (; *text; text++) {
		*out++ = *text;
		if (text[0] == '$' && text[1] == '$')
			text++;
	}
	*out = '\0';
}

static void expand_children(struct expansion *e, struct node *node, struct visit *v);

static void expand(struct expansion *e, struct node *node, struct visit *v)
{
	size_t begin, len;
	if (v->depth > DEPTH_MAX) {
		fail(e, node, v, "nested deeper than 100 levels");
		return;
	}
	if (node->kind == NODE_SCALAR && e->over)
		node->broken |= find_reference(node->text, &begin, &len);
	else if (node->kind == NODE_SCALAR)
		expand_scalar(e, node, v);
	if (node->broken)
		return;
	unescape(node->text);
	unescape(node->verbatim);
	expand_children(e, node, v);
}

static void expand_children(struct expansion *e, struct node *node, struct visit *v)
{
	for (size_t i = 0; i < node->count; i++) {
		struct node *child = node->children[i];
		struct visit below = { path_step(&v->path, child, i), v->depth + 1, v->steps,
				       false };
		expand(e, child, &below);
	}
}

void config_expand(struct node *root, const struct config_sources *sources,
		   struct problems *problems)
{
	struct expansion e = { .sources = sources, .problems = problems };
	struct visit top = { { NULL, "", 0 }, 0, 0, false };
	expand(&e, root, &top);
}
