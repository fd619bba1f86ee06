/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_PRINT_H
#define CONFIG_PRINT_H

#include "base/bytes.h"
#include "config/table.h"

/*
 * The effective configuration of one bound struct, as YAML lines at the given indent. The output
 * can be loaded again and gives the same struct. For that, "$" is doubled in strings that expansion
 * would change. Nothing is printed for a struct in which nothing is set. Incomplete only when `out`
 * is full.
 *
 * redact: secrets and the values of headers are [REDACTED], and values from ${...} are printed as
 * they were written. node is the node that the struct was bound from (NULL or null: only defaults).
 */
void config_print(const struct config_table *table, const void *config, const struct node *node,
		  int indent, bool redact, struct bytes *out);

/* The same as one JSON object, without a newline. */
void config_print_json(const struct config_table *table, const void *config,
		       const struct node *node, bool redact, struct bytes *out);
/* The members of that object without its braces, for a caller that adds its own. */
void config_print_members(const struct config_table *table, const void *config,
			  const struct node *node, bool redact, struct bytes *out);

/* Keys that several components take. The manual prints them once, under this title, and components
 * refer to it. */
struct config_manual_section {
	const char *title; /* of the heading in Markdown; NULL ends a list */
	const struct config_table *table;
	const char *text; /* under the heading: one paragraph */
};

/*
 * The rows as a Markdown table, nested sections with dotted keys. With `shared`, a section in that
 * list becomes a link, rows that repeat those of one are left out for a link, and a table that
 * occurs again refers to its first occurrence. NULL: everything is printed where it occurs.
 */
void config_manual(const struct config_table *table, const struct config_manual_section *shared,
		   struct bytes *out);

#endif
