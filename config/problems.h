/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_PROBLEMS_H
#define CONFIG_PROBLEMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* The errors of a configuration, each with its place, in the order in which they were found. A
 * zeroed struct is empty. */
struct problems {
	char **at;
	size_t count;
	size_t omitted; /* further ones, beyond PROBLEMS_MAX */
};

enum { PROBLEMS_MAX = 100 };

/* Appends a copy of the text, unless it is there already. Returns false, so that
 * `return problems_add(...)` reads well. */
bool problems_add(struct problems *problems, const struct error *err);
/* Sets err to the first one, if there is one. Returns whether there is none. */
bool problems_none(const struct problems *problems, struct error *err);
void problems_fini(struct problems *problems);

#endif
