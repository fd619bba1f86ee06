/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <errno.h>
#include <lmdb.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "pipeline/storage/guard.h"
#include "pipeline/storage/storage_private.h"
#include "tests/pipeline/storage/storage_fixture.h"

/* What happens when a healthy database cannot be written for some time. */

/* ---- a disk that fails writes to the database: the functions that LMDB writes with */

enum { META_END = 2 * 4096 };
static _Atomic bool no_write; /* no write succeeds */
static _Atomic int no_meta;   /* number of writes to the first two pages that fail */
static _Atomic(struct storage *) watched;
static _Atomic int closed, closed_unlocked;

static bool fails(off_t at)
{
	bool bad = no_write || (at < META_END && no_meta > 0);
	if (bad && !no_write)
		no_meta--;
	errno = bad ? EIO : errno;
	return bad;
}

#define REPLACES __attribute__((visibility("default")))

REPLACES ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
	return fails(at) ? -1 : syscall(SYS_pwrite64, fd, data, len, at);
}

REPLACES ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at)
{
	return pwrite(fd, data, len, at);
}

REPLACES ssize_t writev(int fd, const struct iovec *parts, int count)
{
	return fails(META_END) ? -1 : syscall(SYS_writev, fd, parts, count);
}

/* Who opens a queue has storage.owners, and may use the database. */
REPLACES void mdb_env_close(MDB_env *env)
{
	void (*real)(MDB_env *) = (void (*)(MDB_env *))dlsym(RTLD_NEXT, "mdb_env_close");
	struct storage *s = watched;
	closed += s != NULL;
	if (s && pthread_mutex_trylock(&s->owners) == 0) {
		closed_unlocked++;
		pthread_mutex_unlock(&s->owners);
	}
	real(env);
}

static int setup_sound(void **state)
{
	no_write = false;
	no_meta = 0;
	return setup(state);
}

/* ---- */

struct other {
	struct storage_queue *queue;
	_Atomic int attached;
};

static void other_attached(void *context, struct storage_queue *queue, uint64_t records)
{
	(void)queue;
	(void)records;
	((struct other *)context)->attached++;
}

static void other_changed(void *context)
{
	(void)context;
}

static void open_other(struct fixture *f, struct other *o)
{
	struct error err;
	const struct storage_owner owner = { o, other_attached, other_changed };
	*o = (struct other){ 0 };
	error_clear(&err);
	o->queue = storage_queue_open(f->storage, "new", &owner, &err);
	assert_non_null(o->queue);
}

static void wait_until_takes(const struct fixture *f)
{
	for (int i = 0; i < 20000 && !storage_takes(f->storage); i++)
		usleep(1000);
	assert_true(storage_takes(f->storage));
}

static void wait_until_available(struct fixture *f, int64_t available)
{
	for (int i = 0; i < 20000 && value_of(f, "otelcol_storage_available") != available; i++)
		usleep(1000);
	assert_int_equal(value_of(f, "otelcol_storage_available"), available);
}

static void a_queue_that_the_disk_does_not_allow_costs_no_other_queue_its_records(void **state)
{
	struct fixture *f = *state;
	struct other other;
	struct record *r[3];
	begin(f);
	for (int i = 0; i < 3; i++)
		r[i] = append(f, i + 1);
	wait_settled(f);
	no_write = true;
	open_other(f, &other);
	wait_until_available(f, 0);
	assert_false(storage_takes(f->storage));
	assert_int_equal(other.attached, 0);
	assert_null(append(f, 4));
	assert_string_equal(contents(f), "1 2 3 ");
	no_write = false;
	wait_until_takes(f);
	assert_int_equal(other.attached, 1);
	assert_string_equal(contents(f), "1 2 3 ");
	assert_int_equal(f->attached, 1000000);
	assert_int_equal(count_files(f, "queue.mdb.2"), 0);
	assert_int_equal(value_of(f, "otelcol_storage_databases_set_aside"), 0);
	storage_queue_close(&other.queue);
	end(f);
	for (int i = 0; i < 3; i++)
		forget(r[i]);
}

/* The owner has entries of what it appended, and of what it read. */
static void an_owner_learns_nothing_new_when_the_same_database_is_opened_again(void **state)
{
	struct fixture *f = *state;
	struct record *r[5];
	begin(f);
	for (int i = 0; i < 4; i++)
		r[i] = append(f, i + 1);
	wait_settled(f);
	assert_int_equal(f->attached, 1000000);
	watched = f->storage;
	closed = closed_unlocked = 0;
	no_meta = 1;
	struct record *lost = append(f, 5);
	wait_settled(f);
	assert_int_equal(f->failed, 1);
	storage_remove(&lost->entry);
	for (int i = 0; i < 20000 && !closed; i++)
		usleep(1000);
	assert_int_equal(closed, 1);
	wait_until_takes(f);
	watched = NULL;
	assert_int_equal(closed_unlocked, 0);
	assert_int_equal(f->attached, 1000000);
	assert_int_equal(value_of(f, "otelcol_storage_databases_set_aside"), 0);
	storage_remove(&r[0]->entry);
	r[4] = append(f, 6);
	wait_settled(f);
	assert_string_equal(contents(f), "2 3 4 6 ");
	const struct storage_account *a = storage_queue_accounts(f->queue);
	assert_int_equal(a->committed.records, 4);
	assert_int_equal(a->committed.samples, 40);
	end(f);
	for (int i = 1; i < 5; i++)
		forget(r[i]);
}

static void damage(void *context, uint64_t sequence, struct view record)
{
	(void)context;
	(void)sequence;
	(void)record;
	guard_fail();
}

__attribute__((unused)) static void an_owner_learns_when_its_database_was_replaced(void **state)
{
	struct fixture *f = *state;
	begin(f);
	struct record *r = append(f, 1);
	wait_settled(f);
	assert_int_equal(storage_read(f->queue, 0, damage, NULL), STORAGE_UNREADABLE);
	for (int i = 0; i < 20000 && f->attached < 2000000; i++)
		usleep(1000);
	assert_int_equal(f->attached, 2000000);
	assert_int_equal(count_files(f, "queue.mdb.2"), 1);
	wait_until_takes(f);
	storage_remove(&r->entry);
	wait_settled(f);
	end(f);
}

static void a_name_that_no_table_can_have_is_an_error(void **state)
{
	struct fixture *f = *state;
	struct other other;
	struct error err;
	const struct storage_owner owner = { &other, other_attached, other_changed };
	char name[DATABASE_NAME_MAX + 1] = { 0 };
	memset(name, 'a', DATABASE_NAME_MAX - strlen("records "));
	begin(f);
	other.queue = storage_queue_open(f->storage, name, &owner, &err);
	assert_non_null(other.queue);
	storage_queue_close(&other.queue);
	name[strlen(name)] = 'a';
	error_clear(&err);
	assert_null(storage_queue_open(f->storage, name, &owner, &err));
	assert_int_equal(err.kind, ERROR_CONFIG);
	assert_non_null(strstr(err.text, "at most 503 bytes"));
	assert_int_equal(value_of(f, "otelcol_storage_databases_set_aside"), 0);
	end(f);
}

/* LMDB keeps the tables of queues that were closed until the database is closed. */
static void more_queues_than_tables_one_after_the_other_are_no_damage(void **state)
{
	struct fixture *f = *state;
	struct error err;
	struct other other = { 0 };
	const struct storage_owner owner = { &other, other_attached, other_changed };
	f->options.sync = false;
	begin(f);
	struct record *r = append(f, 1);
	wait_settled(f);
	for (int i = 0; i < DATABASE_TABLES + 20; i++) {
		char name[32];
		snprintf(name, sizeof name, "exporter %d", i);
		other.queue = storage_queue_open(f->storage, name, &owner, &err);
		assert_non_null(other.queue);
		for (int n = 0; n < 20000 && other.attached <= i; n++)
			usleep(1000);
		assert_int_equal(other.attached, i + 1);
		storage_queue_close(&other.queue);
	}
	wait_until_takes(f);
	assert_string_equal(contents(f), "1 ");
	assert_int_equal(value_of(f, "otelcol_storage_databases_set_aside"), 0);
	end(f);
	forget(r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_sound, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_queue_that_the_disk_does_not_allow_costs_no_other_queue_its_records),
		TEST(an_owner_learns_nothing_new_when_the_same_database_is_opened_again),
		TEST(a_name_that_no_table_can_have_is_an_error),
		TEST(more_queues_than_tables_one_after_the_other_are_no_damage),
#ifndef __SANITIZE_THREAD__ /* which does not know a jump out of a fault */
		TEST(an_owner_learns_when_its_database_was_replaced),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
