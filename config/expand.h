/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_EXPAND_H
#define CONFIG_EXPAND_H

#include "config/problems.h"
#include "config/source.h"

/*
 * Replaces ${env:X}, ${X}, ${X:-default}, ${file:...} and ${yaml:...} in all values of the tree,
 * and then $$ by $. A reference that is the whole value becomes the YAML value of its content (a
 * number, a map, ...) and keeps the content in `verbatim`. Inside a longer string, it is replaced
 * as a string. Innermost references come first; at most 1000 levels and 64 MiB in total. A value
 * that cannot be expanded is broken; one with a variable that is not set is marked (unset).
 */
void config_expand(struct node *root, const struct config_sources *sources,
		   struct problems *problems);

#endif
