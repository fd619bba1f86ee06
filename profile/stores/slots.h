/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_STORES_SLOTS_H
#define PROFILE_STORES_SLOTS_H

#include <stdint.h>

/*
 * Records which milliseconds of which series have been used, for stores that take a second profile
 * of a series in the same millisecond for a duplicate of the first. Remembers the newest of many
 * series, each as a few runs of milliseconds, in a fixed amount of memory (about 120 KB). What is
 * forgotten counts as free. Any thread.
 */
struct slots;

struct slots *slots_new(void);
void slots_unref(struct slots **slots);

/* Returns the time (ns), moved to the first free millisecond at or after it, and marks that
 * millisecond as used. */
uint64_t slots_take(struct slots *slots, uint64_t series, uint64_t time);

#endif
