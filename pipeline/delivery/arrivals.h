/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_ARRIVALS_H
#define PIPELINE_DELIVERY_ARRIVALS_H

#include "base/array.h"

/*
 * The earliest of many times, which come and go in any order: a binary heap. Whoever has a time in
 * it keeps its place, which moves; 0: it has none. Zeroed memory is an empty heap.
 */
struct arrival {
	uint64_t time;
	uint32_t *place;
};

struct arrivals {
	ARRAY(struct arrival) heap;
};

void arrivals_fini(struct arrivals *arrivals);
/* *place is 0, and stays where it is until arrivals_remove. */
void arrivals_add(struct arrivals *arrivals, uint64_t time, uint32_t *place);
void arrivals_remove(struct arrivals *arrivals, uint32_t *place); /* nothing if that is 0 */
uint64_t arrivals_earliest(const struct arrivals *arrivals);      /* 0: there is none */

#endif
