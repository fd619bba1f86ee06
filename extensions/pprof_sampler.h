/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXTENSIONS_PPROF_SAMPLER_H
#define EXTENSIONS_PPROF_SAMPLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Samples this process: at every SAMPLER_PERIOD_NS of CPU time that it used (ITIMER_PROF, SIGPROF),
 * the thread that runs notes its registers and the lower end of its stack. Unwinding happens later
 * and elsewhere, so that the signal handler needs nothing but memory that was there before and one
 * system call, which copies the stack and cannot fault. There is one sampler in the process.
 */
enum {
	SAMPLER_PERIOD_NS = 10000000,
	SAMPLER_STACK = 16000,
	SAMPLER_REGISTERS = 33 /* as DWARF numbers them; more than any machine here has */
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
/* Gives every snapshot taken since the last call to `take`. One thread at a time. */
void sampler_drain(void (*take)(const struct snapshot *snapshot, void *context), void *context);

#endif
