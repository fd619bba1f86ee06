/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "net/name_watch.h"

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

static struct run watch(const char *name)
{
	struct run run = { .loop = loop_new(NULL) };
	struct error err;
	run.watch = name_watch_new(&(struct name_watch_options){ .name = name,
								 .interval_ns = 1000000,
								 .timeout_ns = 1,
								 .loop = run.loop,
								 .resolved = resolved,
								 .context = &run },
				   &err);
	assert_non_null(run.watch);
	loop_run(run.loop);
	loop_unref(&run.loop);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_is_its_own),
		cmocka_unit_test(what_is_no_name_fails_each_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
