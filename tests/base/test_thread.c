/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/thread.h"

static void *read_mask(void *mask)
{
	pthread_sigmask(SIG_SETMASK, NULL, mask);
	return mask;
}

static void a_thread_gets_only_the_signals_that_are_its_own(void **state)
{
	static const int blocked[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGPIPE, SIGCHLD };
	static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGPROF };
	sigset_t before, after, mask;
	pthread_t thread;
	(void)state;
	sigemptyset(&before);
	sigaddset(&before, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	assert_true(thread_start(&thread, read_mask, &mask, NULL));
	pthread_join(thread, NULL);
	for (size_t i = 0; i < sizeof blocked / sizeof *blocked; i++)
		assert_true(sigismember(&mask, blocked[i]));
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		assert_false(sigismember(&mask, own[i]));
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_true(sigismember(&after, SIGUSR2));
	assert_false(sigismember(&after, SIGTERM));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_gets_only_the_signals_that_are_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
