/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/pipeline/delivery/durable_fixture.h"

#include "pipeline/storage/database.h"

/* The totals of tenants, over restarts. */
static void enqueue_of(struct fixture *f, const char *tenant, uint64_t samples)
{
	static const struct metadatum none;
	struct packet *packet = packet_new(10, 0);
	packet->otlp.len = 10;
	packet->origin = origin_new(tenant, tenant, &none);
	packet->samples = samples;
	assert_true(hand_over(f->ledger, f->delivery, packet, ENTRY_IF_FITS));
	packet_unref(&packet);
}

static int64_t of_tenant(struct fixture *f, const char *column, const char *tenant)
{
	char line[150];
	snprintf(line, sizeof line, "otelcol_ledger_tenant_%s_samples{tenant=\"%s\"} ", column,
		 tenant);
	return read_metric(f, line);
}

/* One consumer: `count` sends succeed, in the order of the queue, and all others fail. */
static void succeed_first(struct fixture *f, int count)
{
	fail_all(f);
	memset(f->script, 0, (size_t)count * sizeof *f->script);
}

/* Whichever limits there are, a record leaves the account that it was counted in. */
static void tenants_beyond_the_limit_continue_after_restarts(void **state)
{
	struct fixture *f = *state;
	f->config.sending_queue.num_consumers = 1;
	succeed_first(f, 0);
	ledger_limit_tenants(f->ledger, 2);
	start(f);
	enqueue_of(f, "a", 3);
	enqueue_of(f, "b", 5);
	enqueue_of(f, "c", 7);
	enqueue_of(f, "d", 9);
	assert_int_equal(of_tenant(f, "queued", "other"), 16);
	run_until_sends(f, 1);
	close_storage();

	succeed_first(f, 2);
	restart_with(f, 1);
	assert_int_equal(of_tenant(f, "restored", "a"), 3);
	assert_int_equal(of_tenant(f, "restored", "b"), 0);
	assert_int_equal(of_tenant(f, "restored", "other"), 21);
	ledger_limit_tenants(f->ledger, 100); /* as a reload does it */
	enqueue_of(f, "b", 11);
	enqueue_of(f, "e", 13);
	run_until_sends(f, 3);
	assert_int_equal(of_tenant(f, "out", "a"), 3);
	assert_int_equal(of_tenant(f, "out", "other"), 5);
	assert_int_equal(of_tenant(f, "queued", "other"), 27);
	assert_int_equal(of_tenant(f, "queued", "e"), 13);
	close_storage();

	/* c is in the shared account, and has one of its own from now on */
	succeed_first(f, 1);
	restart_with(f, 100);
	assert_int_equal(of_tenant(f, "restored", "a"), 0);
	assert_int_equal(of_tenant(f, "restored", "b"), 0);
	assert_int_equal(of_tenant(f, "restored", "e"), 13);
	assert_int_equal(of_tenant(f, "restored", "other"), 27);
	enqueue_of(f, "c", 7);
	run_until_sends(f, 2);
	assert_int_equal(of_tenant(f, "out", "other"), 7);
	assert_int_equal(of_tenant(f, "queued", "c"), 7);
	close_storage();

	succeed(f);
	restart_with(f, 100);
	assert_int_equal(of_tenant(f, "restored", "c"), 7);
	assert_int_equal(of_tenant(f, "restored", "other"), 20);
	run_until_sends(f, 4);
	assert_int_equal(of_tenant(f, "out", "c"), 7);
	assert_int_equal(of_tenant(f, "out", "e"), 13);
	assert_int_equal(of_tenant(f, "out", "other"), 20);
	assert_int_equal(read_metric(f, DROPPED("corrupt")), 0);
	assert_int_equal(read_metric(f, USED), 0);
}

enum { NAMES = LEDGER_TENANTS_MAX + 200 };

/* Each run adds other tenants, as a sender can choose them. */
static void accounts_are_bounded(void **state)
{
	struct fixture *f = *state;
	char name[32];
	f->config.sending_queue.queue_size = 10 * NAMES;
	fail_all(f);
	close_storage();
	for (int run = 0; run < 3; run++) {
		restart_with(f, LEDGER_TENANTS_MAX);
		assert_int_equal(read_metric(f, RESTORED), run * NAMES);
		for (int i = 0; i < NAMES; i++) {
			snprintf(name, sizeof name, "run-%d-%d", run, i);
			enqueue_of(f, name, 1);
		}
		int accounts = 0;
		for (const struct storage_account *a =
			     storage_queue_accounts(f->delivery->durable.queue);
		     a; a = a->next)
			accounts++;
		assert_int_equal(accounts, LEDGER_TENANTS_MAX + 1);
		assert_int_equal(of_tenant(f, "queued", "other"),
				 NAMES - LEDGER_TENANTS_MAX + run * NAMES);
		run_until_sends(f, 1);
		close_storage();
	}
	open_storage(f, STORAGE_REFUSE, 64 << 20);
}

static void damage_totals(void)
{
	char path[128];
	struct database *db = NULL;
	struct error err;
	snprintf(path, sizeof path, "%s/queue.mdb", directory);
	const struct database_options options = { .path = path, .max_bytes = 64 << 20 };
	assert_int_equal(database_open(&db, &options, &err), DATABASE_OK);
	assert_int_equal(database_begin(db, &err), DATABASE_OK);
	assert_int_equal(database_set(db, "queue fake", view_of("damaged"), &err), DATABASE_OK);
	assert_int_equal(database_commit(db, &err), DATABASE_OK);
	database_close(&db);
}

/* What no total has is not taken off one when it leaves. */
static void records_without_totals_leave_the_totals_of_others_right(void **state)
{
	struct fixture *f = *state;
	f->config.sending_queue.num_consumers = 1;
	fail_all(f);
	start(f);
	enqueue(f, 3);
	enqueue(f, 5);
	run_until_sends(f, 1);
	close_storage();
	damage_totals();
	succeed_first(f, 1);
	restart_with(f, 0);
	assert_int_equal(read_metric(f, RESTORED), 0);
	enqueue(f, 2);
	run_until_sends(f, 2);
	assert_int_equal(read_metric(f, OUT), 3);
	succeed(f);
	restart(f);
	assert_int_equal(read_metric(f, RESTORED), 2);
	run_until_sends(f, 2);
	assert_int_equal(read_metric(f, RESTORED), 7);
	assert_int_equal(read_metric(f, OUT), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DURABLE(tenants_beyond_the_limit_continue_after_restarts),
		DURABLE(accounts_are_bounded),
		DURABLE(records_without_totals_leave_the_totals_of_others_right),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
