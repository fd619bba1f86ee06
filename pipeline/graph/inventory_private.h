/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_GRAPH_INVENTORY_PRIVATE_H
#define PIPELINE_GRAPH_INVENTORY_PRIVATE_H

#include "pipeline/graph/inventory.h"

/* The parts of inventory_read. */

/* The error message contains the ID, or the reference that produced it. Returns false. */
bool inventory_bad_id(const struct node *node, const char *reference, const char *path,
		      const struct error *why, struct error *err);
/* What the section of this name contains may stand in one with a mistake in its name, beside it, or
 * in a source that could not be read. */
bool inventory_is_elsewhere(const struct inventory *inventory, const char *section,
			    const struct problems *problems);
/* "a receiver or an exporter": the kinds for which `has` is true. */
enum { KINDS_TEXT = 100 };
void inventory_list_kinds(const bool has[COMPONENT_EXTENSION + 1], char out[KINDS_TEXT]);
/* Checks the section `service`, which is bound. Returns whether each name in it is that of a
 * component. */
bool inventory_check_service(struct inventory *inventory, struct problems *problems);
/* Two exporters that write to the same path would destroy each other's data. */
void inventory_check_paths(const struct inventory *inventory, struct problems *problems);

#endif
