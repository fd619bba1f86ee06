/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/pipeline/storage/storage_fixture.h"

static void what_was_appended_is_there_in_order_after_a_restart(void **state)
{
	struct fixture *f = *state;
	struct record *r[3];
	begin(f);
	for (int i = 0; i < 3; i++)
		r[i] = append(f, i + 1);
	wait_settled(f);
	assert_int_equal(f->done, 3);
	assert_string_equal(contents(f), "1 2 3 ");
	end(f);
	begin(f);
	assert_int_equal(f->attached, 2000003);
	assert_string_equal(contents(f), "1 2 3 ");
	const struct storage_account *a = storage_queue_accounts(f->queue);
	assert_string_equal(a->name, "profiles");
	assert_int_equal(a->committed.records, 3);
	assert_int_equal(a->committed.samples, 30);
	assert_int_equal(a->committed.bytes, 9);
	end(f);
	for (int i = 0; i < 3; i++)
		forget(r[i]);
}

static void what_was_removed_is_gone_and_leaves_no_totals(void **state)
{
	struct fixture *f = *state;
	begin(f);
	struct record *one = append(f, 1), *two = append_large(f, 2, 100000);
	wait_settled(f);
	assert_true(value_of(f, "otelcol_storage_used_bytes") > 100000);
	storage_remove(&one->entry);
	storage_remove(&two->entry);
	wait_settled(f);
	assert_int_equal(f->released, 2);
	assert_string_equal(contents(f), "");
	assert_int_equal(value_of(f, "otelcol_storage_used_bytes"), 0);
	end(f);
	begin(f);
	assert_int_equal(f->attached, 2000000);
	assert_null(storage_queue_accounts(f->queue));
	end(f);
}

/* The first commit is under way while the others arrive. */
static void what_is_removed_before_it_is_written_is_never_written(void **state)
{
	struct fixture *f = *state;
	begin(f);
	for (int i = 0; i < 500; i++) {
		struct record *r = append(f, i);
		storage_remove(&r->entry);
	}
	wait_settled(f);
	assert_int_equal(f->released, 500);
	assert_string_equal(contents(f), "");
	assert_true(f->done < 500);
	end(f);
}

static void many_appends_share_commits(void **state)
{
	struct fixture *f = *state;
	struct record *r[2000];
	begin(f);
	for (int i = 0; i < 2000; i++)
		r[i] = append(f, i);
	wait_settled(f);
	assert_int_equal(f->done, 2000);
	assert_true(value_of(f, "otelcol_storage_commits") < 1000);
	end(f);
	for (int i = 0; i < 2000; i++)
		forget(r[i]);
}

static void a_second_process_is_refused(void **state)
{
	struct fixture *f = *state;
	struct error err;
	begin(f);
	struct storages *others = storages_new(f->metrics);
	struct storage *other = storages_get(others, &f->options);
	error_clear(&err);
	assert_false(storage_open(other, &err));
	assert_non_null(strstr(err.text, "in use by another process"));
	storage_unref(&other);
	storages_unref(&others);
	end(f);
}

static void a_queue_has_one_owner(void **state)
{
	struct fixture *f = *state;
	struct error err;
	const struct storage_owner owner = { f, attached, changed };
	begin(f);
	assert_null(storage_queue_open(f->storage, "otlp", &owner, &err));
	assert_int_equal(err.kind, ERROR_BUSY);
	end(f);
}

static void files_are_private(void **state)
{
	struct fixture *f = *state;
	struct stat is;
	static const char *const names[] = { "queue.mdb", "queue.mdb-lock", "portcullis.lock" };
	umask(0);
	begin(f);
	for (size_t i = 0; i < 3; i++) {
		char path[128];
		snprintf(path, sizeof path, "%s/%s", f->directory, names[i]);
		assert_int_equal(stat(path, &is), 0);
		assert_int_equal(is.st_mode & 0777, 0600);
	}
	end(f);
}

static void a_directory_that_others_can_write_to_is_refused(void **state)
{
	struct fixture *f = *state;
	struct error err;
	chmod(f->directory, 0770);
	assert_false(begin_error(f, &err));
	assert_non_null(strstr(err.text, "writable by other users"));
	end(f);
}

static void a_missing_directory_is_an_error_unless_it_is_created(void **state)
{
	struct fixture *f = *state;
	struct error err;
	char path[128];
	snprintf(path, sizeof path, "%s/a/b", f->directory);
	f->options.directory = path;
	assert_false(begin_error(f, &err));
	assert_non_null(strstr(err.text, "directory must exist"));
	end(f);
	f->options.create_directory = true;
	begin(f);
	end(f);
}

static void overwrite(struct fixture *f, const char *name, long at, const void *data, size_t len)
{
	char path[128];
	snprintf(path, sizeof path, "%s/%s", f->directory, name);
	FILE *file = fopen(path, at < 0 ? "we" : "r+e");
	assert_non_null(file);
	fseek(file, at < 0 ? 0 : at, SEEK_SET);
	assert_int_equal(fwrite(data, 1, len, file), len);
	fclose(file);
}

static void a_foreign_file_is_set_aside(void **state)
{
	struct fixture *f = *state;
	static const char text[9000] = "this is no database";
	overwrite(f, "queue.mdb", -1, text, sizeof text);
	begin(f);
	struct record *r = append(f, 1);
	wait_settled(f);
	assert_string_equal(contents(f), "1 ");
	end(f);
	forget(r);
	assert_int_equal(count_files(f, "queue.mdb.2"), 1);
	assert_int_equal(value_of(f, "otelcol_storage_databases_set_aside"), 1);
}

static void a_link_in_place_of_the_database_is_not_followed(void **state)
{
	struct fixture *f = *state;
	char path[128];
	snprintf(path, sizeof path, "%s/queue.mdb", f->directory);
	assert_int_equal(symlink("/tmp/portcullis-elsewhere.mdb", path), 0);
	begin(f);
	end(f);
	assert_int_not_equal(access("/tmp/portcullis-elsewhere.mdb", F_OK), 0);
	assert_int_equal(count_files(f, "queue.mdb.2"), 1);
}

static void fill(struct fixture *f, int records)
{
	struct record **r = memory_array((size_t)records, sizeof *r);
	begin(f);
	for (int i = 0; i < records; i++)
		r[i] = append_large(f, i, 500);
	wait_settled(f);
	end(f);
	for (int i = 0; i < records; i++)
		forget(r[i]);
	memory_free(r);
}

/* Whatever page is damaged: the start succeeds, and the queue works. */
__attribute__((unused)) static void damaged_pages_never_stop_it(void **state)
{
	struct fixture *f = *state;
	uint8_t noise[4096];
	memset(noise, 0xA5, sizeof noise);
	for (long page = 0; page < 20; page++) {
		fill(f, 40);
		overwrite(f, "queue.mdb", page * 4096, noise, sizeof noise);
		begin(f);
		contents(f);
		for (int i = 0; i < 2000 && !storage_takes(f->storage); i++)
			usleep(1000);
		struct record *r = append(f, 1000);
		wait_settled(f);
		bool stored = f->done > f->failed;
		assert_true(stored);
		end(f);
		forget(r);
		f->failed = 0;
	}
}

__attribute__((unused)) static void a_truncated_database_never_stops_it(void **state)
{
	struct fixture *f = *state;
	char path[128];
	snprintf(path, sizeof path, "%s/queue.mdb", f->directory);
	for (long size = 20000; size >= 0; size -= 5000) {
		fill(f, 100);
		assert_int_equal(truncate(path, size), 0);
		begin(f);
		contents(f);
		for (int i = 0; i < 2000 && !storage_takes(f->storage); i++)
			usleep(1000);
		struct record *r = append(f, 1000);
		wait_settled(f);
		end(f);
		forget(r);
	}
}

static void bytes_have_a_bound(void **state)
{
	struct fixture *f = *state;
	f->options.max_bytes = 1 << 20;
	begin(f);
	struct record *large = append_large(f, 1, 900000);
	assert_non_null(large);
	assert_null(append_large(f, 2, 900000));
	wait_settled(f);
	storage_remove(&large->entry);
	wait_settled(f);
	large = append_large(f, 3, 900000);
	assert_non_null(large);
	wait_settled(f);
	end(f);
	forget(large);
}

static _Atomic bool entered, released, took;

static void hold(struct storage_entry *entry, bool stored)
{
	on_done(entry, stored);
	entered = true;
	while (!released)
		usleep(1000);
}

static void ask(struct storage_entry *entry, bool stored)
{
	took = storage_takes(record_of(entry)->f->storage);
	on_done(entry, stored);
}

static struct record *append_done(struct fixture *f, int number,
				  void (*done)(struct storage_entry *entry, bool stored))
{
	struct record *r = record_new(f, number, 6000);
	r->entry.done = done;
	assert_true(storage_append(f->queue, &r->entry));
	return r;
}

/* While the first of ten records in one commit is reported, nine others are pending no more. */
static void a_record_counts_once_when_it_is_committed(void **state)
{
	struct fixture *f = *state;
	struct record *records[11];
	f->options.max_bytes = 100000;
	begin(f);
	records[0] = append_done(f, 0, hold);
	while (!entered)
		usleep(1000);
	records[1] = append_done(f, 1, ask);
	for (int i = 2; i < 11; i++)
		records[i] = append_done(f, i, on_done);
	assert_true(storage_takes(f->storage));
	released = true;
	wait_settled(f);
	assert_true(took);
	assert_int_equal(value_of(f, "otelcol_storage_commits"), 2);
	end(f);
	for (int i = 0; i < 11; i++)
		forget(records[i]);
}

/* A limit of the size of files stands for a full disk, in a process of its own. */
static void full_disk(struct fixture *f)
{
	begin(f);
	struct record *first = append_large(f, 1, 100000);
	wait_settled(f);
	struct rlimit limit;
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = 200000;
	setrlimit(RLIMIT_FSIZE, &limit);
	signal(SIGXFSZ, SIG_IGN);
	struct record *second = append_large(f, 2, 500000);
	wait_settled(f);
	assert_int_equal(f->failed, 1);
	while (storage_takes(f->storage)) /* until the writer has said so */
		usleep(1000);
	assert_null(append(f, 3));
	assert_int_equal(value_of(f, "otelcol_storage_available"), 0);
	storage_remove(&second->entry);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_FSIZE, &limit);
	for (int i = 0; i < 5000 && !storage_takes(f->storage); i++)
		usleep(1000);
	struct record *last = append(f, 4);
	wait_settled(f);
	assert_string_equal(contents(f), "1 4 ");
	assert_int_equal(value_of(f, "otelcol_storage_available"), 1);
	end(f);
	forget(first);
	forget(last);
}

__attribute__((unused)) static void a_full_disk_is_reported_and_recovers(void **state)
{
	struct fixture *f = *state;
	pid_t child = fork();
	if (!child) {
		full_disk(f);
		_exit(0);
	}
	int status;
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

/* At any instant: what `done` has reported is there. */
static void append_until_killed(struct fixture *f, int out)
{
	begin(f);
	for (int i = 0;; i++) {
		int stored = f->done;
		if (!append(f, i) || write(out, &stored, sizeof stored) < 0)
			_exit(1);
	}
}

__attribute__((unused)) static void nothing_stored_is_lost_when_the_process_is_killed(void **state)
{
	struct fixture *f = *state;
	int stored = 0, pipes[2];
	f->options.max_bytes = 1 << 30;
	f->options.sync = false;
	assert_int_equal(pipe(pipes), 0);
	pid_t child = fork();
	if (!child)
		append_until_killed(f, pipes[1]);
	close(pipes[1]);
	for (int i = 0, at; read(pipes[0], &at, sizeof at) > 0; i++) {
		stored = at;
		if (i == 20000)
			kill(child, SIGKILL);
	}
	waitpid(child, NULL, 0);
	close(pipes[0]);
	begin(f);
	assert_true(f->attached % 1000000 >= (uint64_t)stored);
	assert_int_equal(storage_queue_accounts(f->queue)->committed.records,
			 f->attached % 1000000);
	end(f);
}

static void a_record_in_quarantine_is_out_of_the_queue(void **state)
{
	struct fixture *f = *state;
	begin(f);
	for (int i = 0; i < 70; i++) {
		struct record *r = append(f, i);
		wait_settled(f);
		r->entry.quarantine = "corrupt";
		storage_remove(&r->entry);
	}
	wait_settled(f);
	assert_string_equal(contents(f), "");
	assert_int_equal(value_of(f, "otelcol_storage_quarantined_records"), 70);
	end(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_appended_is_there_in_order_after_a_restart),
		TEST(what_was_removed_is_gone_and_leaves_no_totals),
		TEST(what_is_removed_before_it_is_written_is_never_written),
		TEST(many_appends_share_commits),
		TEST(a_second_process_is_refused),
		TEST(a_queue_has_one_owner),
		TEST(files_are_private),
		TEST(a_directory_that_others_can_write_to_is_refused),
		TEST(a_missing_directory_is_an_error_unless_it_is_created),
		TEST(a_foreign_file_is_set_aside),
		TEST(a_link_in_place_of_the_database_is_not_followed),
		TEST(bytes_have_a_bound),
		TEST(a_record_counts_once_when_it_is_committed),
		TEST(a_record_in_quarantine_is_out_of_the_queue),
#ifndef __SANITIZE_THREAD__ /* which knows neither a jump out of a fault nor threads after fork */
		TEST(damaged_pages_never_stop_it),
		TEST(a_truncated_database_never_stops_it),
		TEST(a_full_disk_is_reported_and_recovers),
		TEST(nothing_stored_is_lost_when_the_process_is_killed),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
