/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/stores/slots.h"
#include "base/memory.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { SETS = 256, WAYS = 4, RUNS = 128 };
#define MS UINT64_C(1000000)

struct run { /* a run of used milliseconds; to == 0: unused */
	uint64_t from, to;
};

struct place {                 /* of one series */
	uint64_t series, used; /* used: the count of all takes at its last use; 0: never used */
	struct run runs[RUNS]; /* the most recently changed run is first */
};

struct slots {
	pthread_mutex_t lock; /* guards the whole struct */
	uint64_t takes;
	struct place places[SETS][WAYS];
};

struct slots *slots_new(void)
{
	struct slots *slots = memory_new(sizeof *slots);
	pthread_mutex_init(&slots->lock, NULL);
	return slots;
}

void slots_unref(struct slots **slots)
{
	if (*slots)
		pthread_mutex_destroy(&(*slots)->lock);
	memory_free(*slots);
	*slots = NULL;
}

/* The place of the series. If there is none, the least recently used place is emptied and
 * returned. */
static struct place *place_of(struct slots *s, uint64_t series)
{
	struct place *set = s->places[series % SETS], *oldest = set;
	for (int i = 0; i < WAYS; i++) {
		if (set[i].used && set[i].series == series)
			return &set[i];
		if (set[i].used < oldest->used)
			oldest = &set[i];
	}
	*oldest = (struct place){ .series = series };
	return oldest;
}

static void put_first(struct place *place, int i, struct run run)
{
	for (; i > 0; i--)
		place->runs[i] = place->runs[i - 1];
	place->runs[0] = run;
}

static bool holds(struct run run, uint64_t ms)
{
	return run.to && ms >= run.from && ms <= run.to;
}

static bool step(const struct place *place, uint64_t *ms)
{
	for (int i = 0; i < RUNS; i++)
		if (holds(place->runs[i], *ms)) {
			*ms = place->runs[i].to + 1;
			return true;
		}
	return false;
}

/* Extends the run that ends immediately before the millisecond. If there is none, a new run
 * replaces the least recently changed one. */
static void take(struct place *place, uint64_t ms)
{
	for (int i = 0; i < RUNS; i++)
		if (place->runs[i].to && place->runs[i].to + 1 == ms) {
			put_first(place, i, (struct run){ place->runs[i].from, ms });
			return;
		}
	put_first(place, RUNS - 1, (struct run){ ms, ms });
}

uint64_t slots_take(struct slots *s, uint64_t series, uint64_t time)
{
	uint64_t ms = time / MS;
	pthread_mutex_lock(&s->lock);
	struct place *place = place_of(s, series);
	place->used = ++s->takes;
	while (step(place, &ms))
		;
	take(place, ms);
	pthread_mutex_unlock(&s->lock);
	return ms * MS + time % MS;
}
