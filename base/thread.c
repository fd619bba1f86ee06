/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <signal.h>
#include <string.h>

bool thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument,
		  struct error *err)
{
	static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGPROF };
	sigset_t blocked, before;
	sigfillset(&blocked);
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		sigdelset(&blocked, own[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	int code = pthread_create(thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return !code || error_set(err, ERROR_INTERNAL, "cannot start a thread: %s", strerror(code));
}
