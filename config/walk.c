/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "config/table.h"
#include "config/value.h"

const struct config_row *config_find_row(const struct config_table *table, const char *key)
{
	const struct config_row *row = table->rows;
	while (row->key && (row->alias_of || strcmp(row->key, key) != 0))
		row++;
	return row->key ? row : NULL;
}

struct walk {
	void (*visit)(void *context, const struct config_spot *spot);
	void *context;
};

/* A section, its node (NULL: it is not in the file) and the closest node around it. */
struct place {
	const struct config_table *table;
	const void *config;
	const struct node *node, *around;
	const struct path *path;
};

static void walk_section(const struct walk *walk, const struct place *place);

static void walk_items(const struct walk *walk, const struct config_row *row, const void *member,
		       const struct place *outer)
{
	const struct config_items *items = member;
	for (size_t i = 0; i < items->count; i++) {
		const struct node *node =
			outer->node && i < outer->node->count ? outer->node->children[i] : NULL;
		struct path path = { outer->path, items->names ? items->names[i] : NULL, i };
		if (node)
			path = path_step(outer->path, node, i);
		walk_section(walk, &(struct place){ row->table,
						    (const char *)items->at + i * row->table->size,
						    node, node ? node : outer->around, &path });
	}
}

static void walk_row(const struct walk *walk, const struct place *section,
		     const struct config_row *row)
{
	const void *member = (const char *)section->config + row->offset;
	struct path path = { section->path, row->key, 0 };
	char text[PATH_TEXT];
	const char *twice;
	const struct node *node = value_find_entry(section->table, section->node, row, &twice);
	const struct place inner = { row->table, member, node, node ? node : section->around,
				     &path };
	walk->visit(walk->context, &(struct config_spot){ section->table, row, section->config,
							  member, section->node, inner.around,
							  node != NULL, path_text(&path, text) });
	if (row->type == CONFIG_TABLE)
		walk_section(walk, &inner);
	else if (row->type == CONFIG_LIST || row->type == CONFIG_MAP)
		walk_items(walk, row, member, &inner);
}

static void walk_section(const struct walk *walk, const struct place *place)
{
	if (place->table->optional && !((const struct optional *)place->config)->enabled)
		return;
	for (const struct config_row *row = place->table->rows; row->key; row++)
		if (!row->alias_of)
			walk_row(walk, place, row);
}

void config_walk(const struct config_table *table, const void *config, const struct node *node,
		 const char *path, void (*visit)(void *context, const struct config_spot *spot),
		 void *context)
{
	const struct walk walk = { visit, context };
	struct path top = { NULL, path, 0 };
	walk_section(&walk, &(struct place){ table, config, node, node, &top });
}
