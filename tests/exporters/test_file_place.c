/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/file_place.h"
#include "tests/support/collecting.h"

#include <string.h>

static struct file_place place_of(const char *path)
{
	struct file_place place = { 0 };
	struct error err = { 0 };
	if (!file_place_check(path, &err))
		fail_msg("%s: %s", path, err.text);
	file_place_init(&place, path, "group");
	return place;
}

/* NULL: the value names no file. */
static void assert_place(const char *path, struct view value, const char *expected)
{
	struct file_place place = place_of(path);
	struct bytes found = { 0 };
	bool ok = file_place_of_value(&place, value, &found) == FILE_PLACE_OK;
	if (ok != !!expected || (ok && strcmp((const char *)found.at, expected) != 0))
		fail_msg("%s with %.*s: %s", path, (int)value.len, (const char *)value.at,
			 ok ? (const char *)found.at : "invalid");
	bytes_fini(&found);
	file_place_fini(&place);
}

/* As the Collector's file exporter 0.161 names them. */
static void values_name_files_as_in_the_collector(void **state)
{
	static const char *const cases[][3] = {
		{ "/data/*.json", "checkout", "/data/checkout.json" },
		{ "/data/*.json", "a/b", "/data/a/b.json" },
		{ "/data/*.json", "../etc/my_config", "/data/etc/my_config.json" },
		{ "/data/*.json", "./x", "/data/x.json" },
		{ "/data/*.json", "/etc/passwd", "/data/etc/passwd.json" },
		{ "/data/*.json", "../../../x", "/data/x.json" },
		{ "/data/*.json", "a/../../b", "/data/b.json" },
		{ "/data/*.json", "a//b/./c", "/data/a/b/c.json" },
		{ "/data/svc-*.json", "x", "/data/svc-x.json" },
		{ "/data/*/profiles.json", "x", "/data/x/profiles.json" },
		{ "/data/*/x", "box/y", "/data/box/y/x" },
		{ "data/*", "x", "data/x" },
		{ "data-*", "x y", "data-x y" },
		{ "/data/*.json", "caf\xc3\xa9", "/data/caf\xc3\xa9.json" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_place(cases[i][0], view_of(cases[i][1]), cases[i][2]);
}

static void hostile_values_name_no_file(void **state)
{
	static const char *const values[] = {
		"",
		".",
		"..",
		"/",
		"../..",
		"a/..",
		"a\nb",
		"a\x1b[2J",
		"\x7f",
		"a\xc2\x9b"
		"b",
		"1/2/3/4/5/6/7/8/9",
		/* the file of "a" cannot be a folder of this one */
		"a.json/b",
		"x/a.json/b",
		/* the rotated file of "a" */
		"a-2026-01-02T15-04-05.000",
		"x/a-2026-01-02T15-04-05.000",
		"a-2026-01-02T15-04-05.000.x",
	};
	(void)state;
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		assert_place("/data/*.json", view_of(values[i]), NULL);
	assert_place("/data/*.json", (struct view){ (const uint8_t *)"a\0b", 3 }, NULL);
	assert_place("/data/*", view_of("a/b"), NULL);             /* "a" is a file there */
	assert_place("/data/*/p.json", view_of("x/p.json"), NULL); /* the file of "x" */
	assert_place("/data/*/p.json", view_of("x/p.json/y"), NULL);
	assert_place("/data/*/p.json", view_of(".."), NULL);
}

static void long_values_name_no_file(void **state)
{
	char value[600], expected[700];
	(void)state;
	memset(value, 'x', sizeof value);
	snprintf(expected, sizeof expected, "/data/%.195s.json", value);
	assert_place("/data/*.json", (struct view){ (const uint8_t *)value, 195 }, expected);
	assert_place("/data/*.json", (struct view){ (const uint8_t *)value, 196 }, NULL);
	for (size_t i = 100; i < sizeof value; i += 101)
		value[i] = '/';
	assert_place("/data/*.json", (struct view){ (const uint8_t *)value, 513 }, NULL);
}

/* No value whatever leaves the directory, or has a name that a file system refuses. */
static void no_value_leaves_the_directory(void **state)
{
	static const char alphabet[] = "..//ab-0T\n\x80";
	struct file_place place = place_of("base/*.json");
	struct bytes path = { 0 };
	uint32_t seed = 1;
	int found = 0;
	(void)state;
	for (int round = 0; round < 200000; round++) {
		uint8_t value[24];
		size_t len = 0;
		for (uint32_t x = seed = seed * 1664525 + 1013904223; len < (x >> 27); len++) {
			seed = seed * 1664525 + 1013904223;
			value[len] = (uint8_t)alphabet[(seed >> 16) % (sizeof alphabet - 1)];
			if (len == sizeof value - 1)
				break;
		}
		if (file_place_of_value(&place, (struct view){ value, len }, &path) !=
		    FILE_PLACE_OK)
			continue;
		const char *at = (const char *)path.at;
		found++;
		if (strncmp(at, "base/", 5) != 0 || strstr(at, "/../") || strstr(at, "/./") ||
		    strstr(at, "//") || strcmp(at + strlen(at) - 5, ".json") != 0)
			fail_msg("%s", at);
	}
	assert_true(found > 10000);
	bytes_fini(&path);
	file_place_fini(&place);
}

static void the_directory_is_the_operators_part(void **state)
{
	static const char *const cases[][2] = { { "/data/*.json", "/data" },
						{ "/data/a-*.json", "/data" },
						{ "a-*", "." },
						{ "/a*", "/" },
						{ "x/y/*/z", "x/y" } };
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct file_place place = place_of(cases[i][0]);
		char *directory = file_place_directory(&place);
		assert_string_equal(directory, cases[i][1]);
		memory_free(directory);
		file_place_fini(&place);
	}
}

static void resources_with_equal_paths_become_neighbours(void **state)
{
	struct fixture *f = *state;
	struct file_place place = place_of("d/*.json");
	uint64_t faults[FILE_PLACE_FAULTS] = { 0 };
	static const char *const values[] = { "b", "a", "x/../b", "", "a", "b" };
	static const uint32_t groups[] = { 1, 1, 1, 2, 2 };
	static const int places[] = { 0, 2, 5, 1, 4 };
	for (size_t i = 0; i < 6; i++) {
		open_resource(&f->p, LIST(open_attribute(&f->p, "group", values[i])));
		f->p.resources.at[i].dropped_attributes = (uint32_t)i;
	}
	open_resource(&f->p, LIST(open_integer(&f->p, "group", 7, "")));
	open_resource(&f->p, NONE);
	uint32_t *found = file_place_sort(&place, &f->p, faults);
	assert_int_equal(f->p.resources.count, 5);
	assert_memory_equal(found, groups, sizeof groups);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(f->p.resources.at[i].dropped_attributes, places[i]);
	assert_int_equal(faults[FILE_PLACE_MISSING], 2);
	assert_int_equal(faults[FILE_PLACE_INVALID], 1);
	memory_free(found);
	file_place_fini(&place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(values_name_files_as_in_the_collector),
		TEST(hostile_values_name_no_file),
		TEST(long_values_name_no_file),
		TEST(no_value_leaves_the_directory),
		TEST(the_directory_is_the_operators_part),
		TEST(resources_with_equal_paths_become_neighbours),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
