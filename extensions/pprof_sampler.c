/* SPDX-License-Identifier: Apache-2.0 */
#include "extensions/pprof_sampler.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

enum { SLOTS = 64 };
enum { SLOT_FREE, SLOT_TAKEN, SLOT_FULL };

static struct snapshot slots[SLOTS];
static _Atomic unsigned next_slot;
static _Atomic bool running, sampling;

#if defined(__x86_64__)
static void note_registers(struct snapshot *s, const ucontext_t *context)
{
	static const int order[] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				     REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
				     REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP };
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		s->registers[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
	s->pc = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
	s->sp = (uint64_t)context->uc_mcontext.gregs[REG_RSP];
}
#elif defined(__aarch64__)
static void note_registers(struct snapshot *s, const ucontext_t *context)
{
	for (int i = 0; i < 31; i++)
		s->registers[i] = context->uc_mcontext.regs[i];
	s->registers[31] = s->sp = context->uc_mcontext.sp;
	s->pc = context->uc_mcontext.pc;
}
#else
#error "the sampler does not support this CPU architecture"
#endif

/* The kernel copies the stack, so an unmapped address ends the copy and not the process. */
static ssize_t copy_own_memory(void *to, uint64_t from, size_t len)
{
	struct iovec local = { to, len }, remote = { (void *)(uintptr_t)from, len };
	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
}

/* Everything here is async-signal-safe. If the ring is full, the sample is dropped. */
static void on_tick(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	int saved = errno, free_slot = SLOT_FREE;
	struct snapshot *s = &slots[atomic_fetch_add(&next_slot, 1) % SLOTS];
	if (atomic_load(&sampling) &&
	    atomic_compare_exchange_strong(&s->state, &free_slot, SLOT_TAKEN)) {
		note_registers(s, context);
		ssize_t copied = copy_own_memory(s->stack, s->sp, sizeof s->stack);
		s->stack_len = copied > 0 ? (uint32_t)copied : 0;
		atomic_store(&s->state, SLOT_FULL);
	}
	errno = saved;
}

static bool set_timer(int64_t period_ns)
{
	struct timeval period = { .tv_usec = period_ns / 1000 };
	struct itimerval timer = { .it_interval = period, .it_value = period };
	return setitimer(ITIMER_PROF, &timer, NULL) == 0;
}

static bool check_system(struct error *err)
{
	uint64_t here = 1, there = 0;
	if (copy_own_memory(&there, (uintptr_t)&here, sizeof here) == sizeof here && there == 1)
		return true;
	return error_set(err, ERROR_INTERNAL, "the system call process_vm_readv is not permitted");
}

bool sampler_start(struct error *err)
{
	bool idle = false;
	/* The handler stays installed: a late signal must not trigger the default action, which
	 * ends the process. */
	struct sigaction action = { .sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART };
	if (!check_system(err))
		return false;
	if (!atomic_compare_exchange_strong(&running, &idle, true))
		return error_set(err, ERROR_BUSY, "another profile is in progress");
	sigaction(SIGPROF, &action, NULL);
	atomic_store(&sampling, true);
	if (set_timer(SAMPLER_PERIOD_NS))
		return true;
	sampler_stop();
	return error_set(err, ERROR_INTERNAL, "cannot start the profiling timer");
}

static void forget(const struct snapshot *snapshot, void *context)
{
	(void)snapshot;
	(void)context;
}

void sampler_stop(void)
{
	set_timer(0);
	atomic_store(&sampling, false);
	sampler_drain(forget, NULL);
	atomic_store(&running, false);
}

void sampler_drain(void (*take)(const struct snapshot *snapshot, void *context), void *context)
{
	for (int i = 0; i < SLOTS; i++) {
		if (atomic_load(&slots[i].state) != SLOT_FULL)
			continue;
		take(&slots[i], context);
		atomic_store(&slots[i].state, SLOT_FREE);
	}
}
