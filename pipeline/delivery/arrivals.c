/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/arrivals.h"

#include "base/memory.h"

/* Places begin at 1, so that those below place p are 2p and 2p + 1. */
static struct arrival *at(const struct arrivals *a, uint32_t place)
{
	return &a->heap.at[place - 1];
}

static void put(struct arrivals *a, uint32_t place, struct arrival arrival)
{
	*at(a, place) = arrival;
	*arrival.place = place;
}

/* Puts it at this place, or above it. */
static void rise(struct arrivals *a, uint32_t place, struct arrival arrival)
{
	for (; place > 1 && at(a, place / 2)->time > arrival.time; place /= 2)
		put(a, place, *at(a, place / 2));
	put(a, place, arrival);
}

/* Puts it at this place, or below it. */
static void sink(struct arrivals *a, uint32_t place, struct arrival arrival)
{
	for (uint32_t next; place <= a->heap.count / 2; place = next) {
		next = 2 * place;
		if (next < a->heap.count && at(a, next + 1)->time < at(a, next)->time)
			next++;
		if (at(a, next)->time >= arrival.time)
			break;
		put(a, place, *at(a, next));
	}
	put(a, place, arrival);
}

void arrivals_fini(struct arrivals *a)
{
	memory_free(a->heap.at);
}

void arrivals_add(struct arrivals *a, uint64_t time, uint32_t *place)
{
	const struct arrival arrival = { time, place };
	array_push(&a->heap) = arrival;
	rise(a, a->heap.count, arrival);
}

void arrivals_remove(struct arrivals *a, uint32_t *place)
{
	uint32_t free_place = *place;
	if (!free_place)
		return;
	*place = 0;
	const struct arrival last = a->heap.at[--a->heap.count];
	if (free_place > a->heap.count)
		return;
	if (free_place > 1 && at(a, free_place / 2)->time > last.time)
		rise(a, free_place, last);
	else
		sink(a, free_place, last);
}

uint64_t arrivals_earliest(const struct arrivals *a)
{
	return a->heap.count ? a->heap.at[0].time : 0;
}
