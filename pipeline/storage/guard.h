/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_STORAGE_GUARD_H
#define PIPELINE_STORAGE_GUARD_H

#include <stdbool.h>

/*
 * Runs code that reads a mapped file which may be damaged, or on a disk that may fail. If it faults
 * (SIGSEGV, SIGBUS) or calls guard_fail, it ends there and guard_run returns false. What it had
 * allocated or locked stays as it was. Faults of other threads, and of this thread outside
 * guard_run, end the process as usual. Any thread; not nested.
 */
void guard_prepare(void); /* before the first guard_run; one thread at a time */
bool guard_run(void (*run)(void *argument), void *argument);
void guard_fail(void) __attribute__((noreturn)); /* only within guard_run */

#endif
