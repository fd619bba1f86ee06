/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_PRINT_H
#define CONFIG_PRINT_H

#include "base/bytes.h"
#include "config/table.h"

/*
 * The effective configuration of one bound struct, as YAML lines at the given indent. What is
 * printed can be loaded again and gives the same struct; for that, "$" is doubled in texts that
 * expansion would change. Nothing at all is printed for a struct in which nothing is set.
 * Incomplete only when `out` is full.
 *
 * redact: Secrets and the values of headers are [REDACTED], and all that ${...} brought is printed
 * as it was written; node is what the struct was bound from (NULL or null: only defaults).
 */
void config_print(const struct config_table *table, const void *config, const struct node *node,
		  int indent, bool redact, struct bytes *out);

/* The same as one JSON object, without a line end. */
void config_print_json(const struct config_table *table, const void *config,
		       const struct node *node, bool redact, struct bytes *out);
/* The members of that object without its braces, for a caller that adds its own. */
void config_print_members(const struct config_table *table, const void *config,
			  const struct node *node, bool redact, struct bytes *out);

/* The rows as a Markdown table for docs/MANUAL.md, nested sections with dotted keys. */
void config_manual(const struct config_table *table, struct bytes *out);

#endif
