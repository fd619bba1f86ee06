/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_VALUE_H
#define CONFIG_VALUE_H

#include "config/table.h"

/* One key's value on its way from the tree to the struct; private to config/. */
struct value_spot {
	const struct config_row *row;
	const struct node *node; /* never NULL */
	const struct path *path;
	struct problems *problems;
};

/* The entry for a row, under its own name or an alias; *twice when under both. */
const struct node *value_find_entry(const struct config_table *table, const struct node *node,
				    const struct config_row *row, const char **twice);

enum value_kind {
	VALUE_BOOL,
	VALUE_INT,
	VALUE_DOUBLE,
	VALUE_STRING,
	VALUE_DURATION,
	VALUE_MAP,
	VALUE_LIST
};

/* Report an error with file, line, column and the path in quotes; each returns false. */
bool value_error(const struct value_spot *spot, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
bool value_wrong_type(const struct value_spot *spot, enum value_kind expected);

/* Binds a value that is not a nested table; the member is still empty. Each entry of a list that
 * has an error is reported, and is an empty string in the member. */
bool value_bind(const struct value_spot *spot, void *member);
void value_release(enum config_type type, void *member);

#endif
