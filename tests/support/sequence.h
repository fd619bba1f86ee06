/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_SEQUENCE_H
#define TESTS_SUPPORT_SEQUENCE_H

#include <stdint.h>

#include "base/bytes.h"

/* The content of OTLP messages as protobuf-c reads it: a digest for each sample with its Profile,
 * scope and resource, all resolved, and for each Profile without any; in their order. Zeroed memory
 * is an empty one; memory_free(at) ends it. */
struct sequence {
	uint64_t *at;
	uint32_t count, room;
};

/* Appends a message. */
void sequence_read(struct view otlp, struct sequence *out);

/* How many of `all` are missing in `some`, which has nothing else and keeps the order; -1 if it
 * does not. */
int64_t sequence_missing(const struct sequence *all, const struct sequence *some);

#endif
