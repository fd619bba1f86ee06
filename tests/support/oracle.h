/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_ORACLE_H
#define TESTS_SUPPORT_ORACLE_H

#include "base/bytes.h"

/* An independent reader of OTLP profiles (protobuf-c on tests/proto), which judges the output of
 * our own encoders. */

/*
 * Returns the first rule that the message violates, or NULL. The rules: no unknown fields; Resource
 * and Scope are present; every table has a zero entry 0, and every other entry is referred to and
 * unique; indices are in range; stack 0 and location 0 are unused; IDs have their exact length;
 * inline attributes contain no string references; no key occurs twice in a list.
 */
const char *oracle_breach(struct view otlp);

/*
 * The content with all references resolved, one line for each resource, scope, profile and sample,
 * indented. Fields that are absent or zero are not printed. The caller frees it with memory_free.
 */
char *oracle_text(struct view otlp);
/* The same, line by line, without newlines. */
void oracle_lines(struct view otlp, void (*visit)(void *context, const char *line, size_t len),
		  void *context);

#endif
