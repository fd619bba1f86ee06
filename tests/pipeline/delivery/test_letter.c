/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "pipeline/delivery/letter_box.h"
#include "pipeline/delivery/letter_files.h"

/* The files of dead letters, and their directory. */
static char directory[] = "/tmp/portcullis-letters-XXXXXX";

/* Replace the C library's. */
static const char *unreadable;
static int syncs, bad_sync; /* the number of the one that fails; 0: none */

int fsync(int fd)
{
	if (++syncs != bad_sync)
		return (int)syscall(SYS_fsync, fd);
	errno = EIO;
	return -1;
}

int fstatat(int at, const char *restrict name, struct stat *restrict is, int flags)
{
	if (!unreadable || strcmp(name, unreadable) != 0)
		return (int)syscall(SYS_newfstatat, at, name, is, flags);
	errno = EIO;
	return -1;
}

static int setup(void **state)
{
	(void)state;
	snprintf(directory, sizeof directory, "/tmp/portcullis-letters-XXXXXX");
	return mkdtemp(directory) ? 0 : -1;
}

static int count_files(bool remove)
{
	int count = 0;
	char path[512];
	DIR *dir = opendir(directory);
	for (struct dirent *file; dir && (file = readdir(dir));) {
		if (!strcmp(file->d_name, ".") || !strcmp(file->d_name, ".."))
			continue;
		snprintf(path, sizeof path, "%s/%s", directory, file->d_name);
		if (remove)
			unlink(path);
		count++;
	}
	if (dir)
		closedir(dir);
	return count;
}

static int teardown(void **state)
{
	(void)state;
	count_files(true);
	return rmdir(directory);
}

static struct packet *make_packet(void)
{
	static const struct metadatum metadata[] = { { "x-scope", "a\xff" }, { 0 } };
	struct packet *p = packet_new(1000, 0);
	memset(p->otlp.at, 7, 1000);
	p->otlp.len = 1000;
	p->origin = origin_new("key", "ac\"me\xff", metadata);
	p->oldest_arrival = clock_now();
	p->samples = 42;
	return p;
}

static struct letter letter_of(struct packet *packet)
{
	return (struct letter){ .packet = packet,
				.origin = packet->origin,
				.destination = "otlp_grpc/a",
				.pipeline = "profiles",
				.reason = "permanent",
				.error = "invalid",
				.made_for = "parca",
				.samples = 42,
				.attempts = 3,
				.dropped = clock_wall() };
}

static void add_group(struct letter_box *box, uint32_t count, enum letter_result *results)
{
	struct packet *packet = make_packet();
	struct letter letters[LETTER_GROUP_MAX];
	struct error err;
	for (uint32_t i = 0; i < count; i++)
		letters[i] = letter_of(packet);
	letter_box_add(box, letters, count, results, &err);
	packet_unref(&packet);
}

static enum letter_result add(struct letter_box *box)
{
	enum letter_result result;
	add_group(box, 1, &result);
	return result;
}

static struct letter_box *open_box(uint64_t max_bytes, uint64_t max_letters)
{
	struct error err;
	struct letter_box *box = letter_box_open(directory, max_bytes, max_letters, &err);
	assert_non_null(box);
	return box;
}

static int open_directory(void)
{
	struct error err;
	int fd = letter_directory(directory, &err);
	assert_true(fd >= 0);
	return fd;
}

static void a_letter_comes_back_as_it_was(void **state)
{
	(void)state;
	struct letter_box *box = open_box(1 << 20, 10);
	struct letter_names names;
	struct letter_content c;
	struct error err;
	assert_int_equal(add(box), LETTER_WRITTEN);
	letter_box_unref(&box);
	int fd = open_directory();
	assert_true(letter_list(fd, false, &names, &err));
	assert_int_equal(names.count, 1);
	assert_int_equal(names.others, 0);
	assert_true(letter_read(fd, names.at[0], &c, &err));
	assert_string_equal(c.reason, "permanent");
	assert_string_equal(c.made_for, "parca");
	assert_int_equal(c.packet->otlp.len, 1000);
	assert_int_equal(c.packet->otlp.at[999], 7);
	assert_int_equal(c.packet->samples, 42);
	assert_string_equal(c.packet->origin->tenant, "ac\"me\xff");
	assert_string_equal(c.packet->origin->metadata[0].value, "a\xff");
	letter_content_fini(&c);
	letter_remove(fd, names.at[0]);
	letter_names_fini(&names);
	close(fd);
	assert_int_equal(count_files(false), 0);
}

/* Reads a reason file and a body that may be spoiled. */
static bool reads(struct view reason, struct view body)
{
	struct letter_content c;
	struct error err;
	error_clear(&err);
	bool ok = letter_parse(reason, &c, &err) && bytes_add(&c.record, body.at, body.len) &&
		  letter_open(&c, &err);
	assert_true(ok == !err.kind);
	letter_content_fini(&c);
	return ok;
}

static void nothing_torn_or_changed_is_read(void **state)
{
	(void)state;
	struct packet *packet = make_packet();
	const struct letter letter = letter_of(packet);
	struct bytes reason;
	bytes_init(&reason, LETTER_REASON_MAX);
	assert_true(letter_encode(&letter, &reason));
	struct view text = bytes_view(&reason), body = bytes_view(&packet->otlp);
	assert_true(reads(text, body));
	for (size_t len = 0; len + 2 < text.len; len++)
		assert_false(reads((struct view){ text.at, len }, body));
	for (size_t len = 0; len < body.len; len += 100)
		assert_false(reads(text, (struct view){ body.at, len }));
	for (size_t i = 0; i < body.len; i += 37) {
		packet->otlp.at[i] ^= 1;
		assert_false(reads(text, body));
		packet->otlp.at[i] ^= 1;
	}
	bytes_fini(&reason);
	packet_unref(&packet);
}

static void a_box_is_bounded_by_number_and_by_bytes(void **state)
{
	(void)state;
	struct letter_box *box = open_box(1 << 20, 2);
	assert_int_equal(add(box), LETTER_WRITTEN);
	assert_int_equal(add(box), LETTER_WRITTEN);
	assert_int_equal(add(box), LETTER_FULL);
	assert_int_equal(count_files(false), 4);
	uint64_t bytes = box->bytes;
	letter_box_unref(&box);
	box = open_box(bytes, 9);
	assert_int_equal(box->letters, 0);
	letter_box_look(box);
	assert_int_equal(box->letters, 2);
	assert_int_equal(box->bytes, bytes);
	assert_int_equal(add(box), LETTER_FULL);
	box->max_bytes *= 2;
	assert_int_equal(add(box), LETTER_WRITTEN);
	letter_box_unref(&box);
}

/* Of a group, as many are written as have room. */
static void a_group_that_does_not_fit_is_written_in_part(void **state)
{
	(void)state;
	enum letter_result results[3];
	struct letter_box *box = open_box(1 << 20, 2);
	add_group(box, 3, results);
	assert_int_equal(results[0], LETTER_WRITTEN);
	assert_int_equal(results[1], LETTER_WRITTEN);
	assert_int_equal(results[2], LETTER_FULL);
	assert_int_equal(box->letters, 2);
	assert_int_equal(count_files(false), 4);
	letter_box_unref(&box);
}

/* Two for each letter, and one for the directory. */
static void a_group_syncs_the_directory_once(void **state)
{
	(void)state;
	enum letter_result results[LETTER_GROUP_MAX];
	struct letter_box *box = open_box(1 << 20, 100);
	syncs = 0;
	add_group(box, LETTER_GROUP_MAX, results);
	assert_int_equal(syncs, 2 * LETTER_GROUP_MAX + 1);
	assert_int_equal(count_files(false), 2 * LETTER_GROUP_MAX);
	letter_box_unref(&box);
}

/* The third sync is that of the second letter's request, the last one that of the directory. */
static void what_was_not_synced_is_not_there(void **state)
{
	(void)state;
	struct letter_box *box = open_box(1 << 20, 100);
	for (int last = 0; last < 2; last++) {
		enum letter_result results[3];
		count_files(true);
		box->looked = 0;
		syncs = 0;
		bad_sync = last ? 7 : 3;
		add_group(box, 3, results);
		bad_sync = 0;
		for (int i = 0; i < 3; i++)
			assert_int_equal(results[i],
					 last || i == 1 ? LETTER_FAILED : LETTER_WRITTEN);
		assert_int_equal(count_files(false), last ? 0 : 4);
		assert_int_equal(box->letters, last ? 0 : 2);
		assert_true(last ? !box->bytes : box->bytes > 2000);
	}
	letter_box_unref(&box);
}

/* An exporter and its successor after a reload, which may spell the path differently. */
static void users_of_a_directory_share_its_bounds(void **state)
{
	(void)state;
	char spelled[sizeof directory + 2];
	struct error err;
	struct letter_box *one = open_box(1 << 20, 2);
	snprintf(spelled, sizeof spelled, "%s/.", directory);
	struct letter_box *two = letter_box_open(spelled, 1 << 20, 3, &err);
	letter_box_look(one);
	letter_box_look(two);
	assert_int_equal(add(one), LETTER_WRITTEN);
	assert_int_equal(add(two), LETTER_WRITTEN);
	assert_int_equal(add(one), LETTER_WRITTEN);
	assert_int_equal(add(two), LETTER_FULL);
	letter_box_unref(&one);
	assert_int_equal(add(two), LETTER_FULL);
	assert_int_equal(count_files(false), 6);
	letter_box_unref(&two);
}

/* Others may remove letters; a look is due once per second. */
static void a_full_box_looks_again(void **state)
{
	(void)state;
	struct letter_box *box = open_box(1 << 20, 1);
	assert_int_equal(add(box), LETTER_WRITTEN);
	count_files(true);
	assert_int_equal(add(box), LETTER_FULL);
	box->looked = 0;
	assert_int_equal(add(box), LETTER_WRITTEN);
	letter_box_unref(&box);
}

static void make_file(const char *name, time_t age)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	const struct timespec then = { (time_t)(clock_wall() / 1000000000) - age, 0 };
	assert_int_equal(write(fd, "x", 1), 1);
	futimens(fd, (const struct timespec[]){ then, then });
	close(fd);
}

static void what_a_crash_leaves_is_removed_later(void **state)
{
	(void)state;
	struct error err;
	struct letter_names names;
	make_file("20260102T150405.123456789-000001.otlp", 3600);
	make_file(".20260102T150405.123456789-000002.otlp.part", 3600);
	make_file(".20260102T150405.123456789-000002.json.part", 3600);
	make_file("20260102T150405.123456789-000003.json", 3600);
	make_file("20260102T150405.123456789-000004.otlp", 0);
	make_file("20260102T150405.123456789-000005.otlp", 3600);
	make_file("20260102T150405.123456789-000005.json", 3600);
	make_file("notes.otlp", 3600);
	struct letter_box *box = open_box(1 << 20, 9);
	letter_box_look(box);
	assert_int_equal(count_files(false), 4);
	assert_int_equal(box->letters, 2);
	assert_int_equal(box->bytes, 3);
	letter_box_unref(&box);
	int fd = open_directory();
	make_file("20260102T150405.123456789-000006.json", 0);
	for (int tidy = 0; tidy < 2; tidy++) {
		assert_true(letter_list(fd, tidy, &names, &err));
		assert_int_equal(names.count, 1);
		assert_int_equal(names.others, tidy ? 2 : 3);
		letter_names_fini(&names);
	}
	assert_int_equal(count_files(false), 4);
	close(fd);
}

/* The other file of a letter cannot be looked at now: that does not mean that it is not there. */
static void an_error_removes_nothing(void **state)
{
	(void)state;
	struct letter_box *box = open_box(1 << 20, 9);
	make_file("20260102T150405.123456789-000005.otlp", 3600);
	make_file("20260102T150405.123456789-000005.json", 3600);
	unreadable = "20260102T150405.123456789-000005.json";
	letter_box_look(box);
	box->looked = 0;
	unreadable = "20260102T150405.123456789-000005.otlp";
	letter_box_look(box);
	unreadable = NULL;
	letter_box_unref(&box);
	assert_int_equal(count_files(false), 2);
}

/* ---- replacing */

static void write_one(char name[LETTER_NAME])
{
	enum letter_result result;
	struct letter_names names;
	struct error err;
	struct letter_box *box = open_box(1 << 20, 100);
	add_group(box, 1, &result);
	letter_box_unref(&box);
	int fd = open_directory();
	assert_true(letter_list(fd, false, &names, &err));
	assert_int_equal(names.count, 1);
	memcpy(name, names.at[0], LETTER_NAME);
	letter_names_fini(&names);
	close(fd);
}

/* The number of letters, without the one of this name. */
static size_t count_others(int fd, bool tidy, const char *name)
{
	struct letter_names names;
	struct error err;
	size_t others = 0;
	assert_true(letter_list(fd, tidy, &names, &err));
	for (size_t i = 0; i < names.count; i++)
		others += strcmp(names.at[i], name) != 0;
	letter_names_fini(&names);
	return others;
}

static bool replace(int fd, const char *name, size_t count)
{
	struct packet *packet = make_packet();
	struct letter letters[40];
	struct error err;
	for (size_t i = 0; i < count; i++)
		letters[i] = letter_of(packet);
	bool ok = letter_replace(fd, name, letters, count, &err);
	packet_unref(&packet);
	return ok;
}

static void a_letter_is_replaced_by_others(void **state)
{
	(void)state;
	char name[LETTER_NAME];
	write_one(name);
	int fd = open_directory();
	assert_true(replace(fd, name, 40));
	assert_int_equal(count_files(false), 80);
	assert_int_equal(count_others(fd, false, name), 40);
	close(fd);
}

/* Each sync fails once. */
static void a_replacement_that_fails_changes_nothing(void **state)
{
	(void)state;
	char name[LETTER_NAME];
	write_one(name);
	int fd = open_directory();
	for (int i = 1; i <= 6; i++) {
		syncs = 0;
		bad_sync = i;
		assert_false(replace(fd, name, 2));
		bad_sync = 0;
		assert_int_equal(count_files(false), 2);
		assert_int_equal(count_others(fd, true, name), 0);
	}
	close(fd);
}

static void move(const char *from, const char *to)
{
	char old[512], new[512];
	snprintf(old, sizeof old, "%s/%s", directory, from);
	snprintf(new, sizeof new, "%s/%s", directory, to);
	assert_int_equal(rename(old, new), 0);
}

/* A process that is killed leaves the letter and a directory, which is complete if it has its
 * name. */
static void a_replacement_is_completed_or_undone(void **state)
{
	(void)state;
	for (int complete = 0; complete < 2; complete++) {
		char name[LETTER_NAME], file[64], inside[128], path[512];
		const char *format = complete ? "%s.rest" : ".%s.rest.part";
		write_one(name);
		int fd = open_directory();
		snprintf(inside, sizeof inside, format, name);
		snprintf(path, sizeof path, "%s/%s", directory, inside);
		assert_int_equal(mkdir(path, 0700), 0);
		static const char *const suffixes[] = { "otlp", "json" };
		for (int i = 0; i < 2; i++) {
			snprintf(file, sizeof file, "20260102T150405.123456789-000007.%s",
				 suffixes[i]);
			make_file(file, 0);
			snprintf(path, sizeof path, "%s/%s", inside, file);
			move(file, path);
		}
		assert_int_equal(count_others(fd, false, name), 0);
		assert_int_equal(count_others(fd, true, name), complete);
		assert_int_equal(count_files(false), 2);
		struct stat is;
		snprintf(file, sizeof file, "%s.otlp", name);
		assert_int_equal(fstatat(fd, file, &is, 0) == 0, !complete);
		close(fd);
		count_files(true);
	}
}

/* A file of that name is not ours. */
static void only_a_directory_replaces(void **state)
{
	(void)state;
	char name[LETTER_NAME], file[64];
	write_one(name);
	snprintf(file, sizeof file, "%s.rest", name);
	make_file(file, 0);
	int fd = open_directory();
	assert_int_equal(count_others(fd, true, name), 0);
	assert_int_equal(count_files(false), 3);
	close(fd);
}

static void names_sort_by_age(void **state)
{
	(void)state;
	char one[LETTER_NAME], two[LETTER_NAME], whole[LETTER_NAME + 8];
	letter_name(one);
	letter_name(two);
	assert_true(strcmp(one, two) < 0);
	snprintf(whole, sizeof whole, "%s.json", one);
	assert_true(letter_name_fits(whole, ".json"));
	assert_false(letter_name_fits(whole, ".otlp"));
	assert_false(letter_name_fits(one, ".json"));
	assert_false(letter_name_fits("", ""));
	whole[0] = '/';
	assert_false(letter_name_fits(whole, ".json"));
}

static void others_must_not_write_to_the_directory(void **state)
{
	(void)state;
	struct error err;
	struct letter_box *box = open_box(1 << 20, 9);
	chmod(directory, 0720);
	assert_null(letter_box_open(directory, 1 << 20, 9, &err));
	assert_int_equal(add(box), LETTER_FAILED);
	chmod(directory, 0700);
	assert_int_equal(add(box), LETTER_WRITTEN);
	letter_box_unref(&box);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_letter_comes_back_as_it_was),
		TEST(nothing_torn_or_changed_is_read),
		TEST(a_box_is_bounded_by_number_and_by_bytes),
		TEST(a_group_that_does_not_fit_is_written_in_part),
		TEST(a_group_syncs_the_directory_once),
		TEST(what_was_not_synced_is_not_there),
		TEST(users_of_a_directory_share_its_bounds),
		TEST(a_full_box_looks_again),
		TEST(what_a_crash_leaves_is_removed_later),
		TEST(an_error_removes_nothing),
		TEST(a_letter_is_replaced_by_others),
		TEST(a_replacement_that_fails_changes_nothing),
		TEST(a_replacement_is_completed_or_undone),
		TEST(only_a_directory_replaces),
		TEST(names_sort_by_age),
		TEST(others_must_not_write_to_the_directory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
