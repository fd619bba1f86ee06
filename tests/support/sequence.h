/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_SEQUENCE_H
#define TESTS_SUPPORT_SEQUENCE_H

#include <stdint.h>

#include "base/bytes.h"

/* The content of OTLP messages as protobuf-c reads it, in order: a digest for each sample with its
 * Profile, scope and resource, all references resolved, and a digest for each Profile without
 * samples. Zeroed memory is an empty sequence; memory_free(at) frees it. */
struct sequence {
	uint64_t *at;
	uint32_t count, room;
};

/* Appends a message. */
void sequence_read(struct view otlp, struct sequence *out);

/* The number of elements of `all` that are missing in `some`. -1: `some` has other elements, or
 * another order. */
int64_t sequence_missing(const struct sequence *all, const struct sequence *some);

#endif
