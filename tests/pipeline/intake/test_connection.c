/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "pipeline/intake/pipeline.h"
#include "tests/support/open.h"

/* Two Profiles of two resources, and pipelines with given results. This file replaces pipeline.c.
 */
#define TABLES ((size_t)1 << 16)

enum { PIPELINES = 3 };

struct seen {
	const struct profiles *tables;
	uint32_t resources;
	uint64_t samples;
	int64_t charged; /* while it ran */
	uint32_t strings;
};

static struct fixture {
	struct metrics *metrics;
	struct ledger *ledger;
	struct budget budget;
	struct profiles p;
	struct pipeline from, paths[PIPELINES];
	bool refuses[PIPELINES], full[PIPELINES], best_effort[PIPELINES];
	struct seen seen[PIPELINES];
	struct connection connection;
	struct request request;
	uint32_t chosen[2];
} f;

static uint32_t number_of(const struct pipeline *path)
{
	return (uint32_t)(path - f.paths);
}

static uint64_t samples_of(const struct profiles *p)
{
	uint64_t samples = 0;
	for (uint32_t i = 0; i < p->profiles.count; i++)
		samples += p->profiles.at[i].dropped ? 0 : p->profiles.at[i].samples.count;
	return samples;
}

/* As a processor would, it adds to the tables and changes a record that is shared. */
bool pipeline_continue(const struct pipeline *path, struct profiles *p, void **scratch,
		       struct error *err)
{
	uint32_t n = number_of(path);
	(void)scratch;
	f.seen[n] = (struct seen){ .tables = p,
				   .resources = p->resources.count,
				   .samples = samples_of(p),
				   .charged = f.budget.charged,
				   .strings = p->strings.count };
	for (uint32_t i = 0; i < p->functions.count; i++)
		p->functions.at[i].name = profiles_text_new(p, "changed", 7);
	ledger_enter(f.ledger);
	ledger_move(path->row, LEDGER_PROCESSING, f.refuses[n] ? LEDGER_REFUSED : LEDGER_PASSED,
		    f.seen[n].samples);
	ledger_leave(f.ledger);
	return !f.refuses[n] || error_set(err, ERROR_INVALID, "scripted");
}

void pipeline_refuse(const struct pipeline *path, uint64_t samples)
{
	ledger_move(path->row, LEDGER_PROCESSING, LEDGER_REFUSED, samples);
}

bool pipeline_has_room(const struct pipeline *path)
{
	return !f.full[number_of(path)];
}

bool pipeline_blocks(const struct pipeline *path, enum ack_mode mode)
{
	(void)path;
	(void)mode;
	return false;
}

bool pipeline_is_required(const struct pipeline *path)
{
	return !f.best_effort[number_of(path)];
}

void pipeline_expect_senders(struct pipeline *path, enum ack_mode mode)
{
	(void)path;
	(void)mode;
}

uint32_t pipeline_batches(const struct pipeline *path)
{
	(void)path;
	return 1;
}

static void choose(void *self, const struct profiles *p, uint32_t *chosen)
{
	(void)self;
	memcpy(chosen, f.chosen, p->profiles.count * sizeof *chosen);
}

static const struct connector_ops forwards, chooses = { .choose = choose };

static void add_resource(struct profiles *p, const char *name, int samples)
{
	uint32_t stack = open_frame(p, name);
	open_resource(p, (struct list){ 0 });
	open_scope(p, "");
	open_profile(p, "cpu", "ns");
	for (int i = 0; i < samples; i++)
		open_value(p, stack, (struct list){ 0 }, 1);
}

static void add_route(uint32_t first, uint32_t count)
{
	struct connection *c = &f.connection;
	c->routes = memory_resize(c->routes, (c->route_count + 1) * sizeof *c->routes);
	struct connection_route *route = &c->routes[c->route_count++];
	*route = (struct connection_route){ .paths = memory_array(count, sizeof(void *)),
					    .count = count };
	for (uint32_t i = 0; i < count; i++)
		route->paths[i] = &f.paths[first + i];
}

static int setup(void **state)
{
	static const char *const ids[] = { "profiles/0", "profiles/1", "profiles/2" };
	(void)state;
	f = (struct fixture){ .metrics = metrics_new() };
	f.ledger = ledger_new(f.metrics);
	budget_init(&f.budget, INT64_C(1) << 30, 0);
	profiles_reset(&f.p, &f.request, (struct view){ 0 }, TABLES);
	add_resource(&f.p, "red", 3);
	add_resource(&f.p, "blue", 4);
	f.from = (struct pipeline){ .id = "profiles/from",
				    .ledger = f.ledger,
				    .row = ledger_pipeline(f.ledger, "profiles/from"),
				    .budget = &f.budget };
	for (int i = 0; i < PIPELINES; i++)
		f.paths[i] = (struct pipeline){ .row = ledger_pipeline(f.ledger, ids[i]) };
	f.connection.row = ledger_destination(f.ledger, "profiles/from", "connector");
	f.connection.leads = true;
	ledger_bring(f.from.row, LEDGER_IN, LEDGER_PROCESSING, 7);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(ledger_check(f.ledger, false), 0);
	assert_int_equal(f.budget.charged, 0);
	connection_fini(&f.connection);
	profiles_fini(&f.p);
	ledger_unref(&f.ledger);
	metrics_unref(&f.metrics);
	return 0;
}

static struct error why;

static bool run(const struct connector_ops *ops, bool last)
{
	error_clear(&why);
	f.connection.ops = ops;
	return connection_run(&f.from, &f.connection, &f.p, last, NULL, &why);
}

static void every_pipeline_but_the_last_gets_a_charged_copy(void **state)
{
	uint32_t strings = f.p.strings.count;
	(void)state;
	add_route(0, PIPELINES);
	assert_true(run(&forwards, true));
	for (int i = 0; i < PIPELINES; i++) {
		bool own = i == PIPELINES - 1;
		assert_int_equal(f.seen[i].tables == &f.p, own);
		assert_int_equal(f.seen[i].charged, own ? 0 : TABLES);
		assert_int_equal(f.seen[i].samples, 7);
		assert_int_equal(f.seen[i].strings, strings); /* not those that others added */
	}
	assert_int_equal(ledger_get(f.connection.row, LEDGER_OUT), 7);
	assert_int_equal(ledger_get(f.from.row, LEDGER_PASSED), 7);
}

static void tables_that_are_needed_again_are_not_changed(void **state)
{
	uint32_t strings = f.p.strings.count, name = f.p.functions.at[1].name;
	(void)state;
	add_route(0, 1);
	assert_true(run(&forwards, false));
	assert_ptr_not_equal(f.seen[0].tables, &f.p);
	assert_int_equal(f.p.strings.count, strings);
	assert_int_equal(f.p.functions.at[1].name, name);
}

static void a_copy_that_does_not_fit_is_refused(void **state)
{
	(void)state;
	add_route(0, 2);
	f.best_effort[1] = true;
	budget_init(&f.budget, TABLES / 2, 0);
	assert_false(run(&forwards, true));
	assert_true(why.kind == ERROR_BUSY || why.kind == ERROR_TOO_LARGE);
	assert_null(f.seen[0].tables);
	assert_int_equal(ledger_get(f.paths[0].row, LEDGER_REFUSED), 7);
	assert_int_equal(ledger_get(f.paths[1].row, LEDGER_PASSED), 7);
}

static void a_route_sees_only_what_takes_it(void **state)
{
	(void)state;
	add_route(0, 1);
	add_route(1, 1);
	f.chosen[0] = 1;
	assert_true(run(&chooses, true));
	assert_int_equal(f.seen[0].resources, 1);
	assert_int_equal(f.seen[0].samples, 4);
	assert_int_equal(f.seen[1].resources, 1);
	assert_int_equal(f.seen[1].samples, 3);
}

static void what_takes_no_route_is_dropped(void **state)
{
	(void)state;
	add_route(0, 1);
	f.chosen[1] = CONNECTOR_NONE;
	assert_true(run(&chooses, true));
	assert_int_equal(ledger_get(f.connection.row, LEDGER_IN), 7);
	assert_int_equal(ledger_get(f.connection.row, LEDGER_UNROUTED), 4);
	assert_int_equal(ledger_get(f.connection.row, LEDGER_OUT), 3);
	assert_int_equal(ledger_get(f.from.row, LEDGER_PASSED), 7);
	assert_int_equal(f.seen[0].samples, 3);
}

static void one_pipeline_of_a_route_that_accepts_is_sufficient(void **state)
{
	(void)state;
	add_route(0, 2);
	f.refuses[0] = true;
	assert_true(run(&forwards, true));
	assert_true(f.request.incomplete);
	f.request.incomplete = false;
	f.refuses[1] = true;
	ledger_bring(f.from.row, LEDGER_IN, LEDGER_PROCESSING, 7);
	assert_false(run(&forwards, false));
	assert_int_equal(why.kind, ERROR_INVALID);
	assert_false(f.request.incomplete);
}

static void a_request_of_which_only_some_routes_took_their_part_is_incomplete(void **state)
{
	(void)state;
	add_route(0, 1);
	add_route(1, 1);
	f.chosen[1] = 1;
	f.refuses[1] = true;
	assert_false(run(&chooses, true));
	assert_true(f.request.incomplete);
}

static void each_route_must_accept_its_part_and_a_full_one_is_busy(void **state)
{
	(void)state;
	add_route(0, 1);
	add_route(1, 1);
	f.chosen[1] = 1;
	f.refuses[0] = f.full[1] = true;
	assert_false(run(&chooses, true));
	assert_int_equal(why.kind, ERROR_BUSY);
	assert_false(f.request.incomplete);
	assert_null(f.seen[1].tables);
	assert_int_equal(ledger_get(f.paths[1].row, LEDGER_REFUSED), 4);
}

static void it_has_room_if_any_route_has(void **state)
{
	(void)state;
	add_route(0, 1);
	add_route(1, 2);
	f.full[0] = f.full[1] = true;
	assert_true(connection_has_room(&f.connection));
	f.best_effort[2] = true; /* does not count beside one that is required */
	assert_false(connection_has_room(&f.connection));
	assert_true(connection_is_required(&f.connection));
	assert_int_equal(connection_batches(&f.connection), 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_pipeline_but_the_last_gets_a_charged_copy),
		TEST(tables_that_are_needed_again_are_not_changed),
		TEST(a_copy_that_does_not_fit_is_refused),
		TEST(a_route_sees_only_what_takes_it),
		TEST(what_takes_no_route_is_dropped),
		TEST(one_pipeline_of_a_route_that_accepts_is_sufficient),
		TEST(a_request_of_which_only_some_routes_took_their_part_is_incomplete),
		TEST(each_route_must_accept_its_part_and_a_full_one_is_busy),
		TEST(it_has_room_if_any_route_has),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
