/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_ID_H
#define CONFIG_ID_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/*
 * A component ID "type[/name]", as in the Collector: split at the first "/", both halves trimmed.
 * The type is a letter and up to 62 letters, digits and "_"; the name is at most 1024 bytes of
 * UTF-8 without separators, controls and symbols. ASCII follows the Collector's rules; the rest of
 * Unicode is classified by blocks.
 */
struct config_id {
	char *text;      /* "type" or "type/name", trimmed; owned */
	size_t type_len; /* of the type in text */
};

/* On failure nothing is owned. The error carries no position. */
bool config_id_parse(const char *text, struct config_id *id, struct error *err);
void config_id_fini(struct config_id *id);

#endif
