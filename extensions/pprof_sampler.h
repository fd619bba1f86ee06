/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXTENSIONS_PPROF_SAMPLER_H
#define EXTENSIONS_PPROF_SAMPLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Samples this process. After every SAMPLER_PERIOD_NS of CPU time (ITIMER_PROF, SIGPROF), the
 * running thread records its registers and the lower end of its stack. Unwinding happens later on
 * another thread. The signal handler therefore needs only preallocated memory and one system call,
 * which copies the stack and cannot fault. There is one sampler in the process.
 */
enum {
	SAMPLER_PERIOD_NS = 10000000,
	SAMPLER_STACK = 16000,
	SAMPLER_REGISTERS = 33 /* in DWARF's numbering; more than any supported architecture has */
};

struct snapshot {
	_Atomic int state;
	uint32_t stack_len;
	uint64_t pc, sp;
	uint64_t registers[SAMPLER_REGISTERS];
	uint8_t stack[SAMPLER_STACK]; /* from sp upwards */
};

/* ERROR_BUSY while it is running already. */
bool sampler_start(struct error *err);
void sampler_stop(void);
/* Passes every snapshot since the last call to `take`. One thread at a time. */
void sampler_drain(void (*take)(const struct snapshot *snapshot, void *context), void *context);

#endif
