/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_ORACLE_H
#define TESTS_SUPPORT_ORACLE_H

#include "base/bytes.h"

/*
 * An independent reader of OTLP profiles (protobuf-c on tests/proto), to judge what our own
 * encoders write.
 */

/*
 * The first rule that the message breaks, or NULL: no unknown field; Resource and Scope present;
 * every table with a zero entry 0, every other entry referred to and there once; indices in range;
 * no stack or location 0 in use; ids of exact length; inline strings only; no key twice in a list.
 */
const char *oracle_breach(struct view otlp);

/*
 * The content with all references resolved, one line for each resource, scope, profile and sample,
 * indented. Fields that are absent or zero are not printed. The caller frees it with memory_free.
 */
char *oracle_text(struct view otlp);
/* The same, line by line, without the newlines. */
void oracle_lines(struct view otlp, void (*visit)(void *context, const char *line, size_t len),
		  void *context);

#endif
