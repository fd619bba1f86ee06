/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_PRINT_H
#define CONFIG_PRINT_H

#include "base/bytes.h"
#include "config/table.h"

/* The effective configuration of one bound struct as YAML (or JSON) lines at the given indent; secrets redacted
 * unless told. */
void config_print(const struct config_table *table, const void *config, int indent, bool redact, struct bytes *out);

/* The rows as a Markdown table for docs/MANUAL.md, nested sections with dotted keys. */
void config_manual(const struct config_table *table, struct bytes *out);

#endif
