/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pthread.h>
#include <cmocka.h>

#include "pipeline/ledger.h"

struct fixture {
	struct metrics *metrics;
	struct ledger *ledger;
	struct ledger_row *receiver, *pipeline, *destination;
};

static int setup(void **state)
{
	static struct fixture f;
	f.metrics = metrics_new();
	f.ledger = ledger_new(f.metrics);
	f.receiver = ledger_receiver(f.ledger, "otlp");
	f.pipeline = ledger_pipeline(f.ledger, "profiles");
	f.destination = ledger_destination(f.ledger, "profiles", "otlp_grpc");
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	ledger_unref(&f->ledger);
	metrics_unref(&f->metrics);
	return 0;
}

static char *scrape(struct fixture *f)
{
	static char text[1 << 20];
	struct bytes out;
	bytes_init(&out, sizeof text - 1);
	metrics_write(f->metrics, &out);
	memcpy(text, out.at, out.len);
	text[out.len] = '\0';
	bytes_fini(&out);
	return text;
}

static int64_t value(const char *text, const char *line)
{
	const char *at = strstr(text, line);
	return at ? strtoll(at + strlen(line), NULL, 10) : -1;
}

/* Runs `fault` in a process of its own. Returns what that wrote when it was aborted; NULL: it was
 * not. */
static const char *aborted(struct fixture *f, void (*fault)(struct fixture *f))
{
	static char text[8192];
	int ends[2], status;
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (!child) {
		dup2(ends[1], STDERR_FILENO);
		fault(f);
		_exit(0);
	}
	close(ends[1]);
	size_t len = 0;
	ssize_t n;
	while ((n = read(ends[0], text + len, sizeof text - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(ends[0]);
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? text : NULL;
}

static void sound(struct fixture *f)
{
	ledger_enter(f->ledger);
	ledger_bring(f->pipeline, LEDGER_IN, LEDGER_PROCESSING, 7);
	ledger_move(f->pipeline, LEDGER_PROCESSING, LEDGER_PASSED, 7);
	ledger_bring(f->destination, LEDGER_IN, LEDGER_QUEUED, 7);
	ledger_leave(f->ledger);
	ledger_set_abort(f->ledger, true);
	scrape(f);
	ledger_check(f->ledger, true);
}

static void lose_a_sample(struct fixture *f)
{
	sound(f);
	ledger_enter(f->ledger);
	ledger_move(f->destination, LEDGER_QUEUED, LEDGER_OUT, 5);
	ledger_add(f->destination, LEDGER_QUEUED, -1);
	ledger_leave(f->ledger);
	ledger_check(f->ledger, false);
}

static void lose_a_sample_before_a_scrape(struct fixture *f)
{
	ledger_add(f->receiver, LEDGER_ACCEPTED, 1);
#ifdef RELEASE
	ledger_set_abort(f->ledger, true);
#endif
	scrape(f);
}

static void send_what_was_not_queued(struct fixture *f)
{
	ledger_move(f->destination, LEDGER_QUEUED, LEDGER_OUT, 3);
	ledger_set_abort(f->ledger, true);
	ledger_check(f->ledger, false);
}

static void use_a_column_of_another_scope(struct fixture *f)
{
	ledger_bring(f->receiver, LEDGER_IN, LEDGER_OUT, 3);
	ledger_set_abort(f->ledger, true);
	ledger_check(f->ledger, false);
}

static void rest_while_processing(struct fixture *f)
{
	ledger_bring(f->pipeline, LEDGER_IN, LEDGER_PROCESSING, 3);
	ledger_set_abort(f->ledger, true);
	ledger_check(f->ledger, false);
	ledger_check(f->ledger, true);
}

static void leave_samples_behind(struct fixture *f)
{
	sound(f);
	ledger_fail(f->destination);
}

static void a_row_that_does_not_balance_ends_a_test_build(void **state)
{
	struct fixture *f = *state;
	assert_null(aborted(f, sound));
	const char *text = aborted(f, lose_a_sample);
	assert_non_null(text);
	assert_non_null(strstr(text, "the ledger does not balance"));
	assert_non_null(
		strstr(text, "WRONG destination profiles otlp_grpc: in=7 queued=1 out=5\n"));
	assert_non_null(strstr(text, "      pipeline profiles: in=7 passed=7\n"));
	assert_non_null(aborted(f, lose_a_sample_before_a_scrape));
	assert_non_null(aborted(f, send_what_was_not_queued));
	assert_non_null(aborted(f, use_a_column_of_another_scope));
	text = aborted(f, leave_samples_behind);
	assert_non_null(text);
	assert_non_null(strstr(text, "WRONG destination profiles otlp_grpc: in=7 queued=7\n"));
	text = aborted(f, rest_while_processing);
	assert_non_null(text);
	assert_non_null(strstr(text, "at rest"));
}

static void only_a_release_continues_and_counts(void **state)
{
	struct fixture *f = *state;
	ledger_set_abort(f->ledger, false);
	ledger_add(f->destination, LEDGER_OUT, 1);
	assert_int_equal(ledger_check(f->ledger, false), 1);
	const char *text = scrape(f);
	assert_int_equal(value(text, "\notelcol_ledger_imbalances "), 2);
	ledger_add(f->destination, LEDGER_IN, 1);
	assert_int_equal(ledger_check(f->ledger, false), 0);
}

static void a_row_exists_once(void **state)
{
	struct fixture *f = *state;
	assert_ptr_equal(ledger_pipeline(f->ledger, "profiles"), f->pipeline);
	assert_ptr_equal(ledger_destination(f->ledger, "profiles", "otlp_grpc"), f->destination);
	assert_ptr_not_equal(ledger_receiver(f->ledger, "profiles"), f->pipeline);
	assert_null(ledger_tenant(f->ledger, NULL));
}

static void tenants_beyond_the_limit_share_a_row(void **state)
{
	struct fixture *f = *state;
	ledger_limit_tenants(f->ledger, 2);
	struct ledger_row *a = ledger_tenant(f->ledger, "a"), *b = ledger_tenant(f->ledger, "b");
	struct ledger_row *c = ledger_tenant(f->ledger, "c"), *d = ledger_tenant(f->ledger, "d");
	assert_ptr_not_equal(a, b);
	assert_ptr_equal(c, d);
	assert_string_equal(ledger_row_name(c), "other");
	assert_ptr_equal(ledger_tenant(f->ledger, "a"), a);
	ledger_bring(a, LEDGER_IN, LEDGER_QUEUE_FULL, 4);
	const char *text = scrape(f);
	assert_int_equal(value(text, "otelcol_ledger_tenant_dropped_samples{reason=\"queue_full\","
				     "tenant=\"a\"} "),
			 4);
	assert_null(strstr(text, "tenant=\"b\""));
}

static void the_shared_row_takes_no_place(void **state)
{
	struct fixture *f = *state;
	ledger_limit_tenants(f->ledger, 2);
	assert_string_equal(ledger_row_name(ledger_tenant(f->ledger, "other")), "other");
	assert_string_equal(ledger_row_name(ledger_tenant(f->ledger, "a")), "a");
	assert_string_equal(ledger_row_name(ledger_tenant(f->ledger, "b")), "b");
	assert_string_equal(ledger_row_name(ledger_tenant(f->ledger, "c")), "other");
}

/* A tenant with data on disk that counts as `other` does so with any later limit. */
static void a_restored_tenant_stays_in_its_row(void **state)
{
	struct fixture *f = *state;
	ledger_limit_tenants(f->ledger, 1);
	struct ledger_row *a = ledger_restored_tenant(f->ledger, "a");
	struct ledger_row *b = ledger_restored_tenant(f->ledger, "b");
	assert_string_equal(ledger_row_name(a), "a");
	assert_string_equal(ledger_row_name(b), "other");
	ledger_limit_tenants(f->ledger, 10);
	assert_ptr_equal(ledger_tenant(f->ledger, "a"), a);
	assert_ptr_equal(ledger_tenant(f->ledger, "b"), b);
	assert_ptr_equal(ledger_restored_tenant(f->ledger, "b"), b);
	assert_string_equal(ledger_row_name(ledger_tenant(f->ledger, "c")), "c");
	assert_int_equal(ledger_check(f->ledger, true), 0);
}

/* Samples that go round: from the pipeline to the destination, and back out of both. */
enum { THREADS = 4, ROUNDS = 20000 };

static void *work(void *argument)
{
	struct fixture *f = argument;
	for (int i = 0; i < ROUNDS; i++) {
		ledger_enter(f->ledger);
		ledger_bring(f->pipeline, LEDGER_IN, LEDGER_BATCHED, 3);
		ledger_leave(f->ledger);
		ledger_enter(f->ledger);
		ledger_move(f->pipeline, LEDGER_BATCHED, LEDGER_PASSED, 3);
		ledger_bring(f->destination, LEDGER_IN, LEDGER_QUEUED, 3);
		ledger_leave(f->ledger);
		ledger_enter(f->ledger);
		ledger_move(f->destination, LEDGER_QUEUED, LEDGER_OUT, 3);
		ledger_leave(f->ledger);
	}
	return NULL;
}

static int64_t of_pipeline(const char *text, const char *what)
{
	char line[100];
	snprintf(line, sizeof line, "\notelcol_ledger_%s_samples{pipeline=\"profiles\"} ", what);
	return value(text, line);
}

static int64_t of_destination(const char *text, const char *what)
{
	char line[150];
	snprintf(line, sizeof line,
		 "\notelcol_ledger_%s_samples{exporter=\"otlp_grpc\",pipeline=\"profiles\"} ",
		 what);
	return value(text, line);
}

static void every_scrape_is_of_one_instant(void **state)
{
	struct fixture *f = *state;
	pthread_t threads[THREADS];
	int64_t in = 0;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, f);
	for (int scrapes = 0; scrapes < 50 || in < 3 * THREADS * ROUNDS; scrapes++) {
		const char *text = scrape(f);
		in = of_pipeline(text, "in");
		assert_int_equal(in, of_pipeline(text, "batched") + of_pipeline(text, "passed"));
		/* and between rows */
		assert_int_equal(of_pipeline(text, "passed"), of_destination(text, "entered"));
		assert_int_equal(of_pipeline(text, "passed"),
				 of_destination(text, "queued") + of_destination(text, "out"));
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(ledger_check(f->ledger, true), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_row_that_does_not_balance_ends_a_test_build),
		TEST(only_a_release_continues_and_counts),
		TEST(a_row_exists_once),
		TEST(tenants_beyond_the_limit_share_a_row),
		TEST(the_shared_row_takes_no_place),
		TEST(a_restored_tenant_stays_in_its_row),
		TEST(every_scrape_is_of_one_instant),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
