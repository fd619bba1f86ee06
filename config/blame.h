/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_BLAME_H
#define CONFIG_BLAME_H

#include "config/table.h"

/* On the way from a section to the key that an error is about; private to config/. */
struct blame {
	const struct config_table *table; /* of the keys below; NULL: they are those of the tree */
	const struct node *node;          /* the deepest value that is set; NULL: none is */
	bool lost;                        /* what is below it is not set */
	bool keyed;    /* the text names a key; else it is about the section as a whole */
	bool misspelt; /* a key on the way is not set, and one with a mistake may stand for it */
	char path[PATH_TEXT];
};

struct blame blame_begin(const struct config_table *table, const struct node *node,
			 const char *path);
/* Goes down by the keys that the text begins with, and returns the text without those that are part
 * of the path. */
const char *blame_descend(struct blame *b, const char *text);

/* Is it a key of the table, also by an old name? */
bool blame_knows(const struct config_table *table, const char *key);
struct suggest;
/* The key of the table that an unknown one was probably meant to be. */
void blame_suggest(const struct config_table *table, const struct node *entry,
		   struct suggest *suggest);
/* Does a key with a mistake in this section stand for this one? */
bool blame_misspelt(const struct config_table *table, const struct node *node, const char *key);

#endif
