/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_EXPAND_H
#define CONFIG_EXPAND_H

#include "config/source.h"

/*
 * Replaces ${env:X}, ${X}, ${X:-default}, ${file:...} and ${yaml:...} in all values of the tree,
 * and then $$ by $. A reference that is the whole value becomes what its text is as YAML (a number,
 * a map, ...) and keeps the text in `verbatim`; inside other text it is text. Innermost first, at
 * most 1000 deep, 64 MiB in all.
 */
bool config_expand(struct node *root, struct source_reader *reader, struct error *err);

#endif
