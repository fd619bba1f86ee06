/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/storage/guard.h"

#include <assert.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>

/* What the library has allocated when a fault ends a call is lost. Leak detection need not know. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#else
#define __lsan_disable() ((void)0)
#define __lsan_enable() ((void)0)
#endif

static const int numbers[] = { SIGSEGV, SIGBUS };
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static struct sigaction before[NUMBERS];
static _Thread_local sigjmp_buf *guarded;

/* A fault outside: the instruction runs again under the action that was there before. */
static void caught(int number, siginfo_t *info, void *context)
{
	(void)info;
	(void)context;
	if (guarded)
		siglongjmp(*guarded, 1);
	for (int i = 0; i < NUMBERS; i++)
		if (numbers[i] == number)
			sigaction(number, &before[i], NULL);
}

void guard_prepare(void)
{
	/* The signal is not blocked in its handler, so that the jump need not restore the mask. */
	const struct sigaction action = { .sa_sigaction = caught,
					  .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK };
	for (int i = 0; i < NUMBERS; i++) {
		struct sigaction now;
		sigaction(numbers[i], NULL, &now);
		if (now.sa_sigaction == caught)
			continue;
		before[i] = now;
		sigaction(numbers[i], &action, NULL);
	}
}

bool guard_run(void (*run)(void *argument), void *argument)
{
	sigjmp_buf here;
	assert(!guarded);
	__lsan_disable();
	if (sigsetjmp(here, 0)) {
		guarded = NULL;
		__lsan_enable();
		return false;
	}
	guarded = &here;
	run(argument);
	guarded = NULL;
	__lsan_enable();
	return true;
}

void guard_fail(void)
{
	assert(guarded);
	siglongjmp(*guarded, 1);
}
