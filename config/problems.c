/* SPDX-License-Identifier: Apache-2.0 */
#include "config/problems.h"

#include <string.h>

#include "base/memory.h"
#include "config/node.h"

bool problems_add_at(struct problems *problems, const struct node *node, const struct error *err)
{
	for (size_t i = 0; i < problems->count; i++)
		if (!strcmp(problems->at[i], err->text))
			return false;
	if (problems->count == PROBLEMS_MAX) {
		problems->omitted++;
		return false;
	}
	size_t count = problems->count + 1;
	problems->at = memory_resize(problems->at, count * sizeof *problems->at);
	problems->nodes = memory_resize(problems->nodes, count * sizeof *problems->nodes);
	problems->at[problems->count] = memory_text(err->text);
	problems->nodes[problems->count] = node;
	problems->count = count;
	return false;
}

bool problems_add(struct problems *problems, const struct error *err)
{
	return problems_add_at(problems, NULL, err);
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
	memory_free(problems->nodes);
	*problems = (struct problems){ 0 };
}

bool problems_end(struct problems *problems, struct error *err)
{
	bool none = problems_none(problems, err);
	problems_fini(problems);
	return none;
}
