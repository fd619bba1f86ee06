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

/* The files of dead letters, and their directory. */
static char directory[] = "/tmp/portcullis-letters-XXXXXX";

/* Replaces the C library's. */
static const char *unreadable;

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
				.destination = "otlp_grpc/a",
				.pipeline = "profiles",
				.reason = "permanent",
				.error = "invalid",
				.made_for = "parca",
				.samples = 42,
				.attempts = 3,
				.dropped = clock_wall() };
}

static enum letter_result add(struct letter_box *box)
{
	struct packet *packet = make_packet();
	const struct letter letter = letter_of(packet);
	struct error err;
	enum letter_result result = letter_box_add(box, &letter, &err);
	packet_unref(&packet);
	return result;
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
	struct letter_box box = { .path = directory, .max_bytes = 1 << 20, .max_letters = 10 };
	struct letter_names names;
	struct letter_content c;
	struct error err;
	assert_true(letter_box_open(&box, &err));
	assert_int_equal(add(&box), LETTER_WRITTEN);
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
	struct error err;
	struct letter_box box = { .path = directory, .max_bytes = 1 << 20, .max_letters = 2 };
	assert_true(letter_box_open(&box, &err));
	assert_int_equal(add(&box), LETTER_WRITTEN);
	assert_int_equal(add(&box), LETTER_WRITTEN);
	assert_int_equal(add(&box), LETTER_FULL);
	assert_int_equal(count_files(false), 4);
	struct letter_box other = { .path = directory, .max_bytes = box.bytes, .max_letters = 9 };
	assert_true(letter_box_open(&other, &err));
	assert_int_equal(other.letters, 0);
	letter_box_look(&other);
	assert_int_equal(other.letters, 2);
	assert_int_equal(other.bytes, box.bytes);
	assert_int_equal(add(&other), LETTER_FULL);
	other.max_bytes *= 2;
	assert_int_equal(add(&other), LETTER_WRITTEN);
}

/* Others may remove letters; a look is due once per second. */
static void a_full_box_looks_again(void **state)
{
	(void)state;
	struct error err;
	struct letter_box box = { .path = directory, .max_bytes = 1 << 20, .max_letters = 1 };
	assert_true(letter_box_open(&box, &err));
	assert_int_equal(add(&box), LETTER_WRITTEN);
	count_files(true);
	assert_int_equal(add(&box), LETTER_FULL);
	box.looked = 0;
	assert_int_equal(add(&box), LETTER_WRITTEN);
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
	struct letter_box box = { .path = directory, .max_bytes = 1 << 20, .max_letters = 9 };
	letter_box_look(&box);
	assert_int_equal(count_files(false), 4);
	assert_int_equal(box.letters, 2);
	assert_int_equal(box.bytes, 3);
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
	struct letter_box box = { .path = directory, .max_bytes = 1 << 20, .max_letters = 9 };
	make_file("20260102T150405.123456789-000005.otlp", 3600);
	make_file("20260102T150405.123456789-000005.json", 3600);
	unreadable = "20260102T150405.123456789-000005.json";
	letter_box_look(&box);
	unreadable = "20260102T150405.123456789-000005.otlp";
	letter_box_look(&box);
	unreadable = NULL;
	assert_int_equal(count_files(false), 2);
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
	struct letter_box box = { .path = directory, .max_bytes = 1 << 20, .max_letters = 9 };
	chmod(directory, 0720);
	assert_false(letter_box_open(&box, &err));
	assert_int_equal(add(&box), LETTER_FAILED);
	chmod(directory, 0700);
	assert_int_equal(add(&box), LETTER_WRITTEN);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_letter_comes_back_as_it_was),
		TEST(nothing_torn_or_changed_is_read),
		TEST(a_box_is_bounded_by_number_and_by_bytes),
		TEST(a_full_box_looks_again),
		TEST(what_a_crash_leaves_is_removed_later),
		TEST(an_error_removes_nothing),
		TEST(names_sort_by_age),
		TEST(others_must_not_write_to_the_directory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
