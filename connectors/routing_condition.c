/* SPDX-License-Identifier: Apache-2.0 */
#include "connectors/routing_condition.h"

#include "base/memory.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum kind { NODE_AND, NODE_OR, NODE_NOT, NODE_COMPARE };
enum literal { LITERAL_STRING, LITERAL_INTEGER, LITERAL_BOOLEAN, LITERAL_NIL };

struct node {
	enum kind kind;
	uint32_t left, right; /* NODE_NOT: left only */
	/* of a comparison */
	bool differs; /* != */
	char *key, *text;
	enum literal literal;
	int64_t integer; /* also the boolean */
};

struct routing_condition {
	enum routing_context context;
	struct node nodes[ROUTING_CONDITION_NODES];
	uint32_t count, root;
};

struct parser {
	struct routing_condition *condition;
	const char *text, *at;
	uint32_t depth;
	struct error *err;
};

#define NONE UINT32_MAX

static uint32_t fail(struct parser *p, const char *what)
{
	error_set(p->err, ERROR_CONFIG, "at character %zu: %s", (size_t)(p->at - p->text) + 1,
		  what);
	return NONE;
}

static void skip_blanks(struct parser *p)
{
	while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r')
		p->at++;
}

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool take_word(struct parser *p, const char *word)
{
	size_t len = strlen(word);
	skip_blanks(p);
	if (strncmp(p->at, word, len) != 0 || in_word(p->at[len]))
		return false;
	p->at += len;
	return true;
}

static bool take_sign(struct parser *p, const char *sign)
{
	skip_blanks(p);
	if (strncmp(p->at, sign, strlen(sign)) != 0)
		return false;
	p->at += strlen(sign);
	return true;
}

/* At a quotation mark. NULL: an error. */
static char *take_string(struct parser *p)
{
	char *string = memory_new(strlen(p->at) + 1);
	size_t len = 0;
	for (p->at++; *p->at && *p->at != '"'; p->at++) {
		if (*p->at == '\\' && p->at[1] != '"' && p->at[1] != '\\') {
			fail(p, "only \\\" and \\\\ are supported as escapes");
			break;
		}
		p->at += *p->at == '\\';
		string[len++] = *p->at;
	}
	if (*p->at == '"') {
		p->at++;
		return string;
	}
	if (!*p->at)
		fail(p, "the string does not end");
	memory_free(string);
	return NULL;
}

/* `["key"]` */
static char *take_key(struct parser *p)
{
	char *key = NULL;
	skip_blanks(p);
	if (*p->at != '[') {
		fail(p, "expected [\"key\"]");
		return NULL;
	}
	p->at++;
	skip_blanks(p);
	if (*p->at != '"')
		fail(p, "expected a string in quotation marks");
	else
		key = take_string(p);
	if (key && !take_sign(p, "]")) {
		fail(p, "expected ]");
		memory_free(key);
		key = NULL;
	}
	return key;
}

static char *take_path(struct parser *p)
{
	if (p->condition->context == ROUTING_REQUEST) {
		if (take_word(p, "request"))
			return take_key(p);
		fail(p, "expected request[\"key\"]; nothing else is supported in the context "
			"`request`");
		return NULL;
	}
	if (take_word(p, "resource") && !take_sign(p, ".")) {
		fail(p, "expected .attributes[\"key\"]");
		return NULL;
	}
	if (take_word(p, "attributes"))
		return take_key(p);
	fail(p, "expected attributes[\"key\"] or resource.attributes[\"key\"]; functions and other "
		"paths are not supported");
	return NULL;
}

static bool take_integer(struct parser *p, int64_t *integer)
{
	char *end;
	if (!isdigit((unsigned char)*p->at) && !(*p->at == '-' && isdigit((unsigned char)p->at[1])))
		return fail(p, "expected a string, an integer, true, false or nil") != NONE;
	size_t digits = strspn(p->at + 1, "0123456789") + 1;
	if (digits > 18)
		return fail(p, "the integer has too many digits") != NONE;
	*integer = strtoll(p->at, &end, 10);
	if (in_word(*end) || *end == '.')
		return fail(p, "only decimal integers are supported as numbers") != NONE;
	p->at = end;
	return true;
}

static bool take_literal(struct parser *p, struct node *node)
{
	skip_blanks(p);
	if (*p->at == '"') {
		node->literal = LITERAL_STRING;
		node->text = take_string(p);
		return node->text;
	}
	node->literal = LITERAL_BOOLEAN;
	node->integer = take_word(p, "true");
	if (node->integer || take_word(p, "false"))
		return true;
	node->literal = LITERAL_NIL;
	if (take_word(p, "nil"))
		return true;
	node->literal = LITERAL_INTEGER;
	return take_integer(p, &node->integer);
}

static uint32_t add_node(struct parser *p, struct node node)
{
	struct routing_condition *c = p->condition;
	if (c->count == ROUTING_CONDITION_NODES) {
		memory_free(node.key);
		memory_free(node.text);
		return fail(p, "the condition has too many terms");
	}
	c->nodes[c->count] = node;
	return c->count++;
}

static uint32_t parse_comparison(struct parser *p)
{
	struct node node = { .kind = NODE_COMPARE, .key = take_path(p) };
	bool ok = node.key;
	if (ok && take_sign(p, "!="))
		node.differs = true;
	else if (ok && !take_sign(p, "=="))
		ok = fail(p, "expected == or !=; other operators are not supported") != NONE;
	if (ok && take_literal(p, &node))
		return add_node(p, node);
	memory_free(node.key);
	memory_free(node.text);
	return NONE;
}

static uint32_t parse_condition(struct parser *p);

static uint32_t parse_factor(struct parser *p)
{
	bool negated = take_word(p, "not");
	uint32_t node;
	if (take_sign(p, "(")) {
		node = parse_condition(p);
		if (node != NONE && !take_sign(p, ")"))
			node = fail(p, "expected )");
	} else {
		node = parse_comparison(p);
	}
	if (node == NONE || !negated)
		return node;
	return add_node(p, (struct node){ .kind = NODE_NOT, .left = node });
}

static uint32_t parse_chain(struct parser *p, const char *word, enum kind kind,
			    uint32_t (*next)(struct parser *p))
{
	uint32_t node = next(p);
	while (node != NONE && take_word(p, word)) {
		uint32_t right = next(p);
		node = right == NONE
			       ? NONE
			       : add_node(p, (struct node){
						     .kind = kind, .left = node, .right = right });
	}
	return node;
}

static uint32_t parse_term(struct parser *p)
{
	return parse_chain(p, "and", NODE_AND, parse_factor);
}

static uint32_t parse_condition(struct parser *p)
{
	if (p->depth == ROUTING_CONDITION_DEPTH)
		return fail(p, "too many nested parentheses");
	p->depth++;
	uint32_t node = parse_chain(p, "or", NODE_OR, parse_term);
	p->depth--;
	return node;
}

static uint32_t parse_all(struct parser *p, bool statement)
{
	if (strlen(p->text) > ROUTING_CONDITION_BYTES)
		return fail(p, "the text is too long");
	if (statement && !(take_word(p, "route") && take_sign(p, "(") && take_sign(p, ")") &&
			   take_word(p, "where")))
		return fail(p, "expected `route() where` and a condition; other statements are not "
			       "supported");
	uint32_t root = parse_condition(p);
	skip_blanks(p);
	return root != NONE && *p->at ? fail(p, "expected `and`, `or` or the end") : root;
}

struct routing_condition *routing_condition_parse(const char *text, bool statement,
						  enum routing_context context, struct error *err)
{
	struct routing_condition *c = memory_new(sizeof *c);
	struct parser parser = { .condition = c, .text = text, .at = text, .err = err };
	c->context = context;
	c->root = parse_all(&parser, statement);
	if (c->root == NONE)
		routing_condition_free(&c);
	return c;
}

void routing_condition_free(struct routing_condition **condition)
{
	struct routing_condition *c = *condition;
	*condition = NULL;
	for (uint32_t i = 0; c && i < c->count; i++) {
		memory_free(c->nodes[i].key);
		memory_free(c->nodes[i].text);
	}
	memory_free(c);
}

/* ---- evaluation */

/* The first attribute of this key, as pcommon.Map.Get. NULL: nil. */
static const struct attribute *find(const struct profiles *p, const struct resource *r,
				    const char *key)
{
	for (uint32_t i = 0; i < r->attributes.count; i++) {
		uint32_t index = p->indices.at[r->attributes.first + i];
		const struct attribute *a = &p->attributes.at[index];
		if (string_is(p, a->key, key))
			return a->type == VALUE_EMPTY ? NULL : a;
	}
	return NULL;
}

static bool equals(const struct profiles *p, const struct attribute *a, const struct node *n)
{
	if (n->literal == LITERAL_NIL || !a)
		return !a && n->literal == LITERAL_NIL;
	switch (a->type) {
	case VALUE_STRING:
		return n->literal == LITERAL_STRING && string_is(p, a->string, n->text);
	case VALUE_BOOL:
		return n->literal == LITERAL_BOOLEAN && !a->boolean == !n->integer;
	case VALUE_INT:
		return n->literal == LITERAL_INTEGER && attribute_integer(a) == n->integer;
	case VALUE_DOUBLE:
		return n->literal == LITERAL_INTEGER && attribute_number(a) == (double)n->integer;
	default:
		return false;
	}
}

static bool request_equals(const struct request *request, const struct node *n)
{
	const char *value = request ? request_metadata(request, n->key) : NULL;
	if (n->literal == LITERAL_NIL || !value)
		return !value && n->literal == LITERAL_NIL;
	return n->literal == LITERAL_STRING && !strcmp(value, n->text);
}

static bool holds(const struct routing_condition *c, uint32_t node, const struct profiles *p,
		  const struct resource *r)
{
	const struct node *n = &c->nodes[node];
	switch (n->kind) {
	case NODE_AND:
		return holds(c, n->left, p, r) && holds(c, n->right, p, r);
	case NODE_OR:
		return holds(c, n->left, p, r) || holds(c, n->right, p, r);
	case NODE_NOT:
		return !holds(c, n->left, p, r);
	default:
		return n->differs != (c->context == ROUTING_REQUEST
					      ? request_equals(p->request, n)
					      : equals(p, find(p, r, n->key), n));
	}
}

bool routing_condition_holds(const struct routing_condition *c, const struct profiles *p,
			     const struct resource *r)
{
	return holds(c, c->root, p, r);
}
