/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/memory.h"
#include "pipeline/storage/database.h"
#include "tests/support/shell.h"

enum { RECORDS = 1500, SIZE = 60000, PER_COMMIT = 50, MORE_KB = 24 << 10 };

/* Resident memory of mapped files. */
static long resident_of_files(void)
{
	char line[256];
	long kb = -1;
	FILE *file = fopen("/proc/self/status", "re");
	assert_non_null(file);
	while (fgets(line, sizeof line, file))
		sscanf(line, "RssFile: %ld", &kb);
	fclose(file);
	return kb;
}

static struct database *open_again(const char *directory, uint64_t max_bytes, unsigned *table)
{
	char path[64];
	struct database *db;
	struct error err;
	error_clear(&err);
	snprintf(path, sizeof path, "%s/queue.mdb", directory);
	const struct database_options options = { .path = path, .max_bytes = max_bytes };
	assert_int_equal(database_open(&db, &options, &err), DATABASE_OK);
	assert_int_equal(database_table(db, "queue", table, &err), DATABASE_OK);
	return db;
}

/* With one table. The directory is a template for mkdtemp. */
static struct database *begin(char *directory, uint64_t max_bytes, unsigned *table)
{
	assert_non_null(mkdtemp(directory));
	return open_again(directory, max_bytes, table);
}

static void append(struct database *db, unsigned table, uint64_t number)
{
	struct error err;
	uint8_t *room;
	error_clear(&err);
	assert_int_equal(database_append(db, table, number, SIZE, &room, &err), DATABASE_OK);
	memset(room, (int)number, SIZE);
}

static void read_whole(void *context, uint64_t number, struct view record)
{
	uint64_t *sum = context;
	for (size_t i = 0; i < record.len; i++)
		*sum += record.at[i];
	*sum += number;
}

static void read_and_check(struct database *db, unsigned table, uint64_t number)
{
	struct error err;
	uint64_t sum = 0;
	error_clear(&err);
	assert_int_equal(database_read(db, table, number, read_whole, &sum, &err), DATABASE_OK);
	assert_int_equal(sum, number + SIZE * (number & 255));
}

static void remove_one(struct database *db, unsigned table, uint64_t number)
{
	struct error err;
	error_clear(&err);
	assert_int_equal(database_remove(db, table, number, &err), DATABASE_OK);
}

/* Calls it for all records, some in each transaction. Returns the most that was resident. */
static long for_all(struct database *db, unsigned table,
		    void (*change)(struct database *db, unsigned table, uint64_t number))
{
	struct error err;
	long most = 0;
	error_clear(&err);
	for (uint64_t i = 0; i < RECORDS; i++) {
		if (i % PER_COMMIT == 0)
			assert_int_equal(database_begin(db, &err), DATABASE_OK);
		change(db, table, i + 1);
		if (i % PER_COMMIT < PER_COMMIT - 1)
			continue;
		assert_int_equal(database_commit(db, &err), DATABASE_OK);
		long now = resident_of_files();
		most = now > most ? now : most;
	}
	return most;
}

static void what_was_read_or_removed_does_not_stay_in_memory(void **state)
{
	char directory[] = "/tmp/portcullis-database-XXXXXX";
	unsigned table;
	(void)state;
	struct database *db = begin(directory, 256 << 20, &table);
	const long before = resident_of_files();
	assert_in_range(for_all(db, table, append), 0, before + MORE_KB);
	assert_in_range(for_all(db, table, read_and_check), 0, before + MORE_KB);
	assert_in_range(for_all(db, table, remove_one), 0, before + MORE_KB);
	database_close(&db);
	assert_int_equal(shell("rm -rf %s", directory), 0);
}

/* Takes the file out of the page cache; where it is only there (tmpfs), that has no effect. */
static void forget_pages(const char *directory)
{
	char path[64];
	snprintf(path, sizeof path, "%s/queue.mdb", directory);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fdatasync(fd), 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	close(fd);
}

static long major_faults(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_majflt;
}

/* A fault for each page would be 15 a record, and as many reads of the disk. */
static void a_backlog_is_read_from_disk_in_large_pieces(void **state)
{
	char directory[] = "/tmp/portcullis-database-XXXXXX";
	unsigned table;
	(void)state;
	struct database *db = begin(directory, 256 << 20, &table);
	for_all(db, table, append);
	database_close(&db);
	forget_pages(directory);
	db = open_again(directory, 256 << 20, &table);
	long before = major_faults();
	for_all(db, table, read_and_check);
	assert_in_range(major_faults() - before, 0, RECORDS);
	database_close(&db);
	assert_int_equal(shell("rm -rf %s", directory), 0);
}

static void note(void *context, uint64_t number, struct view record)
{
	(void)record;
	*(uint64_t *)context = number;
}

/* The number of the record that is found; 0: none. */
static uint64_t found(struct database *db, unsigned table, uint64_t number, bool back)
{
	struct error err;
	uint64_t seen = 0;
	error_clear(&err);
	enum database_result result =
		(back ? database_read_back : database_read)(db, table, number, note, &seen, &err);
	assert_int_equal(result, seen ? DATABASE_OK : DATABASE_NONE);
	return seen;
}

static void records_are_found_from_either_side(void **state)
{
	char directory[] = "/tmp/portcullis-database-XXXXXX";
	struct error err;
	unsigned table;
	(void)state;
	error_clear(&err);
	struct database *db = begin(directory, 1 << 20, &table);
	assert_int_equal(found(db, table, 1, false), 0);
	assert_int_equal(found(db, table, UINT64_MAX, true), 0);
	assert_int_equal(database_begin(db, &err), DATABASE_OK);
	append(db, table, 3);
	append(db, table, 300);
	append(db, table, 301);
	assert_int_equal(database_commit(db, &err), DATABASE_OK);
	const uint64_t at[] = { 0, 3, 4, 300, 301, 302, UINT64_MAX };
	const uint64_t after[] = { 3, 3, 300, 300, 301, 0, 0 };
	const uint64_t before[] = { 0, 3, 3, 300, 301, 301, 301 };
	for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
		assert_int_equal(found(db, table, at[i], false), after[i]);
		assert_int_equal(found(db, table, at[i], true), before[i]);
	}
	database_close(&db);
	assert_int_equal(shell("rm -rf %s", directory), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_read_or_removed_does_not_stay_in_memory),
		cmocka_unit_test(a_backlog_is_read_from_disk_in_large_pieces),
		cmocka_unit_test(records_are_found_from_either_side),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
