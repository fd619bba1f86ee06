/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/entrance.h"

#include "base/memory.h"

#include <sched.h>

struct entrance {
	struct gate *_Atomic gate;
	_Atomic uint32_t entering; /* threads between reading `gate` and holding it */
	struct budget *budget;
};

struct entrance *entrance_new(struct budget *budget)
{
	struct entrance *e = memory_new(sizeof *e);
	e->budget = budget;
	return e;
}

void entrance_unref(struct entrance **entrance)
{
	memory_free(*entrance);
	*entrance = NULL;
}

/* A thread is in between for a few instructions. */
void entrance_lead(struct entrance *e, struct gate *gate)
{
	e->gate = gate;
	while (e->entering)
		sched_yield();
}

struct gate *entrance_take(struct entrance *e)
{
	e->entering++;
	struct gate *gate = e->gate;
	gate_take(gate);
	e->entering--;
	return gate;
}

bool entrance_hold(struct entrance *e, int64_t bytes)
{
	return budget_take_spare(e->budget, bytes);
}

void entrance_release(struct entrance *e, int64_t bytes)
{
	budget_give_spare(e->budget, bytes);
}

static bool hold(void *context, int64_t bytes)
{
	return entrance_hold(context, bytes);
}

static void release(void *context, int64_t bytes)
{
	entrance_release(context, bytes);
}

static int64_t spare(void *context)
{
	return budget_spare(((struct entrance *)context)->budget);
}

static bool is_short(void *context)
{
	return budget_is_short(((struct entrance *)context)->budget);
}

struct net_budget entrance_net_budget(struct entrance *e)
{
	return (struct net_budget){ hold, release, spare, is_short, e };
}
