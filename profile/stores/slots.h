/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_STORES_SLOTS_H
#define PROFILE_STORES_SLOTS_H

#include <stdint.h>

/*
 * Which milliseconds of which series have been given away, for stores that take the second profile
 * of a series in a millisecond for a repetition of the first. Remembers the newest of many series,
 * each as a few runs of milliseconds, in a fixed amount of memory (some 120 KB): what is forgotten
 * counts as free. Any thread.
 */
struct slots;

struct slots *slots_new(void);
void slots_unref(struct slots **slots);

/* The time (ns), or its place in the first free millisecond after it, which is taken then. */
uint64_t slots_take(struct slots *slots, uint64_t series, uint64_t time);

#endif
