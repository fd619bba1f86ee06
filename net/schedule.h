/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_SCHEDULE_H
#define NET_SCHEDULE_H

#include <stddef.h>

#include "net/loop.h"

/*
 * Any number of deadlines on one timer of the main loop: a binary heap. An entry is part of its
 * owner's struct, costs 16 bytes and a pointer, and is waiting in at most one schedule. [loop
 * thread, or before it runs]
 */
struct schedule_entry {
	uint64_t due; /* clock_now */
	size_t place; /* in the heap, from 1; 0: not waiting */
};

struct schedule;

/* fire is called with each entry that is due, which is not waiting any more. It may add and remove
 * entries. */
struct schedule *schedule_new(struct loop *loop,
			      void (*fire)(void *context, struct schedule_entry *entry),
			      void *context);
/* The entries are forgotten. [any thread] */
void schedule_unref(struct schedule **schedule);
/* Adds an entry, or moves it if it is waiting. */
void schedule_add(struct schedule *schedule, struct schedule_entry *entry, uint64_t due);
/* Removes an entry, if it is waiting. */
void schedule_remove(struct schedule *schedule, struct schedule_entry *entry);

#endif
