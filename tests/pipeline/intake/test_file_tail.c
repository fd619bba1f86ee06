/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "pipeline/intake/file_tail.h"

static char place[] = "/tmp/file_tail.XXXXXX";
static char *pattern;
static struct strings include = { &pattern, 1 };

static char *path_of(const char *name)
{
	static char path[100];
	snprintf(path, sizeof path, "%s/%s", place, name);
	return path;
}

static void write_file(const char *name, const char *mode, const char *text)
{
	FILE *file = fopen(path_of(name), mode);
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	fclose(file);
}

static struct file_tail *open_tail(bool from_start, size_t line_max)
{
	return file_tail_new(&(struct file_tail_options){ .include = &include,
							  .files_max = 4,
							  .fingerprint = 100,
							  .line_max = line_max,
							  .from_start = from_start });
}

/* Everything that can be read, each line in angle brackets. */
static const char *read_rest(struct file_tail *tail)
{
	static char seen[10000];
	struct bytes line;
	enum file_tail_more more;
	size_t len = 0;
	bytes_init(&line, 100000);
	seen[0] = '\0';
	while ((more = file_tail_read(tail, &line)) != FILE_TAIL_NONE) {
		len += (size_t)snprintf(seen + len, sizeof seen - len, "<%.*s>",
					more == FILE_TAIL_LINE ? (int)line.len : 4,
					more == FILE_TAIL_LINE ? (char *)line.at : "LONG");
		if (more == FILE_TAIL_LINE)
			file_tail_accept(tail);
	}
	bytes_fini(&line);
	return seen;
}

static const char *read_all(struct file_tail *tail)
{
	assert_true(file_tail_poll(tail));
	return read_rest(tail);
}

static int set_up(void **state)
{
	(void)state;
	memcpy(place + strlen(place) - 6, "XXXXXX", 6);
	assert_non_null(mkdtemp(place));
	memory_free(pattern);
	pattern = memory_text(path_of("*.log"));
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = { "a.log", "b.log", "c.log", "d.log", "e.log", "a.old" };
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unlink(path_of(names[i]));
	return rmdir(place);
}

static void lines_are_read_once(void **state)
{
	(void)state;
	struct file_tail *tail = open_tail(true, 100);
	write_file("a.log", "w", "one\ntwo\n\n \t\r\nthr");
	write_file("b.log", "w", "four\n");
	assert_string_equal(read_all(tail), "<one><two><four>");
	assert_string_equal(read_all(tail), "");
	write_file("a.log", "a", "ee\n");
	assert_string_equal(read_all(tail), "<three>");
	file_tail_free(&tail);
}

static void a_line_that_was_not_accepted_comes_again(void **state)
{
	(void)state;
	struct file_tail *tail = open_tail(true, 100);
	struct bytes line;
	write_file("a.log", "w", "one\ntwo\n");
	assert_true(file_tail_poll(tail));
	for (int i = 0; i < 3; i++) {
		bytes_init(&line, 100);
		assert_int_equal(file_tail_read(tail, &line), FILE_TAIL_LINE);
		assert_true(view_is(bytes_view(&line), "one"));
		assert_int_equal(file_tail_offset(tail), 0);
		bytes_fini(&line);
	}
	file_tail_accept(tail);
	assert_string_equal(read_all(tail), "<two>");
	file_tail_free(&tail);
}

static void a_line_that_finds_no_room_can_be_skipped(void **state)
{
	(void)state;
	struct file_tail *tail = open_tail(true, 100);
	struct bytes line;
	write_file("a.log", "w", "long line\nnext\n");
	assert_true(file_tail_poll(tail));
	bytes_init(&line, 5);
	assert_int_equal(file_tail_read(tail, &line), FILE_TAIL_FULL);
	assert_int_equal(file_tail_read(tail, &line), FILE_TAIL_FULL);
	file_tail_skip(tail);
	assert_int_equal(file_tail_read(tail, &line), FILE_TAIL_LINE);
	assert_true(view_is(bytes_view(&line), "next"));
	assert_int_equal(file_tail_offset(tail), 10);
	bytes_fini(&line);
	file_tail_free(&tail);
}

static void long_lines_are_reported_once(void **state)
{
	(void)state;
	struct file_tail *tail = open_tail(true, 5);
	write_file("a.log", "w", "12345\n123456\nok\n1234567");
	assert_string_equal(read_all(tail), "<12345><LONG><ok><LONG>");
	assert_string_equal(read_all(tail), "");
	write_file("a.log", "a", "89012345678\nend\n");
	assert_string_equal(read_all(tail), "<end>");
	file_tail_free(&tail);
}

static void lines_longer_than_a_block_are_whole(void **state)
{
	(void)state;
	struct file_tail *tail = open_tail(true, 300000);
	struct bytes text, line;
	bytes_init(&text, 300000);
	bytes_format(&text, "%0200000d\nx\n", 7);
	bytes_add_byte(&text, 0);
	write_file("a.log", "w", (char *)text.at);
	assert_true(file_tail_poll(tail));
	bytes_init(&line, 300000);
	assert_int_equal(file_tail_read(tail, &line), FILE_TAIL_LINE);
	assert_int_equal(line.len, 200000);
	assert_memory_equal(line.at, text.at, line.len);
	file_tail_accept(tail);
	assert_string_equal(read_all(tail), "<x>");
	bytes_fini(&text);
	bytes_fini(&line);
	file_tail_free(&tail);
}

static void the_end_is_where_a_line_begins(void **state)
{
	(void)state;
	struct file_tail *tail = open_tail(false, 100);
	write_file("a.log", "w", "old\nhalf");
	write_file("b.log", "w", "old\n");
	assert_string_equal(read_all(tail), "");
	write_file("a.log", "a", " more\nnew\n");
	write_file("b.log", "a", "two\n");
	write_file("c.log", "w", "later file\n");
	assert_string_equal(read_all(tail), "<new><two><later file>");
	file_tail_free(&tail);
}

static void rotation_loses_and_repeats_nothing(void **state)
{
	(void)state;
	struct file_tail *tail = open_tail(true, 100);
	char old[100];
	write_file("a.log", "w", "one\n");
	assert_string_equal(read_all(tail), "<one>");
	write_file("a.log", "a", "two\n");
	snprintf(old, sizeof old, "%s", path_of("a.log"));
	assert_int_equal(rename(old, path_of("a.old")), 0);
	write_file("a.log", "w", "three\n");
	assert_string_equal(read_all(tail), "<two><three>");
	write_file("a.log", "w", "4\n");
	assert_string_equal(read_all(tail), "<4>");
	write_file("a.log", "w", "5\n");
	assert_string_equal(read_all(tail), "<5>");
	write_file("a.log", "w", "six is longer\n");
	assert_string_equal(read_all(tail), "<six is longer>");
	file_tail_free(&tail);
}

static void the_number_of_files_has_a_limit(void **state)
{
	(void)state;
	struct file_tail *tail = open_tail(true, 100);
	static const char *const names[] = { "a.log", "b.log", "c.log", "d.log", "e.log" };
	for (size_t i = 0; i < 5; i++)
		write_file(names[i], "w", "x\n");
	assert_false(file_tail_poll(tail));
	assert_string_equal(read_rest(tail), "<x><x><x><x>");
	unlink(path_of("a.log"));
	assert_string_equal(read_all(tail), "<x>");
	file_tail_free(&tail);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lines_are_read_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_line_that_was_not_accepted_comes_again, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_line_that_finds_no_room_can_be_skipped, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(long_lines_are_reported_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lines_longer_than_a_block_are_whole, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_end_is_where_a_line_begins, set_up, tear_down),
		cmocka_unit_test_setup_teardown(rotation_loses_and_repeats_nothing, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_number_of_files_has_a_limit, set_up, tear_down),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	memory_free(pattern);
	return failed;
}
