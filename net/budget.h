/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_BUDGET_H
#define NET_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How a server charges what its connections cost to the program's memory budget
 * (pipeline/intake/gate.h has the one of a receiver). All functions: any thread, they do not block.
 * All NULL: nothing is charged.
 */
struct net_budget {
	/* Charges the bytes until release. False: memory is short, so the connection is
	 * rejected. */
	bool (*hold)(void *context, int64_t bytes);
	void (*release)(void *context, int64_t bytes);
	/* The number of bytes that hold would still accept. The connections of one peer must hold
	 * less than that. */
	int64_t (*room)(void *context);
	/* Is memory so short that idle connections must be closed, oldest first? Cheap. */
	bool (*is_short)(void *context);
	void *context;
};

static inline bool net_budget_hold(const struct net_budget *b, int64_t bytes)
{
	return !b->hold || b->hold(b->context, bytes);
}

static inline void net_budget_release(const struct net_budget *b, int64_t bytes)
{
	if (b->release)
		b->release(b->context, bytes);
}

static inline int64_t net_budget_room(const struct net_budget *b)
{
	return b->room ? b->room(b->context) : INT64_MAX;
}

static inline bool net_budget_is_short(const struct net_budget *b)
{
	return b->is_short && b->is_short(b->context);
}

#endif
