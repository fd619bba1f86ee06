/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"

/*
 * Starts a thread. Signals are handled by the main loop, so it blocks them all, except those that
 * belong to a thread: its own faults, and SIGPROF, by which it is sampled.
 */
bool thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument,
		  struct error *err);

#endif
