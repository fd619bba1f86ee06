/* SPDX-License-Identifier: Apache-2.0 */
#include "config/problems.h"

#include <string.h>

#include "base/memory.h"
#include "config/node.h"

/* Negative, 0 or positive, as strcmp. */
static int compare(const char *a, const struct error_place *at_a, const char *b,
		   const struct error_place *at_b)
{
	bool shorter = at_a->source_len < at_b->source_len;
	int order = memcmp(a, b, shorter ? at_a->source_len : at_b->source_len);
	if (order)
		return order;
	if (at_a->source_len != at_b->source_len)
		return shorter ? -1 : 1;
	if (at_a->line != at_b->line)
		return at_a->line < at_b->line ? -1 : 1;
	return (at_a->column > at_b->column) - (at_a->column < at_b->column);
}

/* Makes room for one more error after those that come before it. Returns its index. */
static size_t make_room(struct problems *p, const struct error *err)
{
	size_t i = p->count, count = p->count + 1;
	p->at = memory_resize(p->at, count * sizeof *p->at);
	p->places = memory_resize(p->places, count * sizeof *p->places);
	p->nodes = memory_resize(p->nodes, count * sizeof *p->nodes);
	for (; i && compare(err->text, &err->place, p->at[i - 1], &p->places[i - 1]) < 0; i--) {
		p->at[i] = p->at[i - 1];
		p->places[i] = p->places[i - 1];
		p->nodes[i] = p->nodes[i - 1];
	}
	p->count = count;
	return i;
}

bool problems_add_at(struct problems *problems, const struct node *node, const struct error *err)
{
	for (size_t i = 0; i < problems->count; i++)
		if (!strcmp(problems->at[i], err->text))
			return false;
	if (problems_full(problems)) {
		problems->omitted++;
		return false;
	}
	size_t i = make_room(problems, err);
	problems->at[i] = memory_text(err->text);
	problems->places[i] = err->place;
	problems->nodes[i] = node;
	return false;
}

bool problems_add(struct problems *problems, const struct error *err)
{
	return problems_add_at(problems, NULL, err);
}

bool problems_full(const struct problems *problems)
{
	return problems->count == PROBLEMS_MAX;
}

size_t problems_total(const struct problems *problems)
{
	return problems->count + problems->omitted;
}

bool problems_has(const struct problems *problems, const struct node *node)
{
	for (size_t i = 0; i < problems->count && node; i++)
		if (problems->nodes[i] == node)
			return true;
	return node && node->broken;
}

bool problems_touch(const struct problems *problems, const struct node *node)
{
	if (!node || !problems->count)
		return false;
	if (problems_has(problems, node))
		return true;
	for (size_t i = 0; i < node->count; i++)
		if (problems_touch(problems, node->children[i]))
			return true;
	return false;
}

bool problems_none(const struct problems *problems, struct error *err)
{
	return !problems->count || error_set(err, ERROR_CONFIG, "%s", problems->at[0]);
}

void problems_fini(struct problems *problems)
{
	for (size_t i = 0; i < problems->count; i++)
		memory_free(problems->at[i]);
	memory_free(problems->at);
	memory_free(problems->places);
	memory_free(problems->nodes);
	*problems = (struct problems){ 0 };
}

bool problems_end(struct problems *problems, struct error *err)
{
	bool none = problems_none(problems, err);
	problems_fini(problems);
	return none;
}
