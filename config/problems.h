/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_PROBLEMS_H
#define CONFIG_PROBLEMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct node;

/* The errors of a configuration, each with its place. They are sorted by source, line and column:
 * first those without a place, and those with the same one in the order in which they were found. A
 * zeroed struct is empty. */
struct problems {
	char **at;
	struct error_place *places;
	const struct node **nodes; /* by error: what it is about; NULL: no value of the tree */
	size_t count;
	size_t omitted; /* further ones, beyond PROBLEMS_MAX */
	/* A source could not be read: what is not in the tree may be in that source. */
	bool incomplete;
};

enum { PROBLEMS_MAX = 100 };

/* Adds a copy of the text, unless it is there already. Returns false, so that
 * `return problems_add(...)` reads well. */
bool problems_add(struct problems *problems, const struct error *err);
/* The same about a value, which lives as long as problems_touch is asked; may be NULL. */
bool problems_add_at(struct problems *problems, const struct node *node, const struct error *err);
/* The number of errors, with those that were omitted. */
size_t problems_total(const struct problems *problems);
/* Are further errors omitted? */
bool problems_full(const struct problems *problems);
/* Is there an error about this value? */
bool problems_has(const struct problems *problems, const struct node *node);
/* Is there an error about this value or one below it? Nothing can be concluded from such a value.
 * NULL: no. */
bool problems_touch(const struct problems *problems, const struct node *node);
/* Sets err to the first one, if there is one. Returns whether there is none. */
bool problems_none(const struct problems *problems, struct error *err);
/* The same, and problems_fini. */
bool problems_end(struct problems *problems, struct error *err);
void problems_fini(struct problems *problems);

#endif
