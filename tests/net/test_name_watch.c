/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <netdb.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "net/name_watch.h"

/* ---- a name whose look-up ends when the test permits it */

#define HANGING "hanging.test"

static sem_t begun, permitted, ended;

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **found)
{
	typedef int resolver(const char *, const char *, const struct addrinfo *,
			     struct addrinfo **);
	if (strcmp(node, HANGING) != 0)
		return ((resolver *)dlsym(RTLD_NEXT, "getaddrinfo"))(node, service, hints, found);
	sem_post(&begun);
	sem_wait(&permitted);
	sem_post(&ended);
	return EAI_AGAIN;
}

/* ---- results */

/* A watch that is stopped after three results. */
struct run {
	struct loop *loop;
	struct name_watch *watch;
	int results, failures;
	char first[64];
};

static void stop(void *argument)
{
	struct run *run = argument;
	name_watch_stop(&run->watch);
	name_watch_stop(&run->watch);
}

static void stopped(void *argument)
{
	loop_stop(((struct run *)argument)->loop);
}

static void resolved(void *context, char *const *addresses, size_t count)
{
	struct run *run = context;
	assert_true(loop_here(run->loop));
	assert_int_equal(addresses != NULL, count > 0);
	run->failures += !addresses;
	for (size_t i = 1; i < count; i++)
		assert_true(strcmp(addresses[i - 1], addresses[i]) < 0);
	if (addresses)
		strncpy(run->first, addresses[0], sizeof run->first - 1);
	if (++run->results == 3)
		loop_work(run->loop, stop, stopped, run);
}

static void begin(struct run *run, const char *name)
{
	struct error err;
	*run = (struct run){ .loop = loop_new(NULL) };
	run->watch = name_watch_new(&(struct name_watch_options){ .name = name,
								  .interval_ns = 1000000,
								  .timeout_ns = 1,
								  .loop = run->loop,
								  .resolved = resolved,
								  .context = run },
				    &err);
	assert_non_null(run->watch);
}

static void end(struct run *run)
{
	loop_run(run->loop);
	loop_unref(&run->loop);
}

static struct run watch(const char *name)
{
	struct run run;
	begin(&run, name);
	end(&run);
	assert_true(run.results >= 3);
	return run;
}

static void an_address_is_its_own(void **state)
{
	(void)state;
	assert_string_equal(watch("127.0.0.7").first, "127.0.0.7");
	assert_string_equal(watch("::1").first, "::1");
}

static void what_is_no_name_fails_each_time(void **state)
{
	char name[400];
	(void)state;
	memset(name, 'a', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	struct run run = watch(name);
	assert_int_equal(run.failures, run.results);
}

static void a_stop_does_not_wait_for_a_look_up(void **state)
{
	struct run run;
	(void)state;
	begin(&run, HANGING);
	sem_wait(&begun);
	loop_work(run.loop, stop, stopped, &run);
	end(&run);
	assert_int_equal(run.results, 0);
	sem_post(&permitted);
	sem_wait(&ended);
}

int main(void)
{
	sem_init(&begun, 0, 0);
	sem_init(&permitted, 0, 0);
	sem_init(&ended, 0, 0);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_is_its_own),
		cmocka_unit_test(what_is_no_name_fails_each_time),
		cmocka_unit_test(a_stop_does_not_wait_for_a_look_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
