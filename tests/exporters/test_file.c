/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/exporters/file_exporter.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "net/compress.h"

static void assert_lines(const char *path, int lines)
{
	struct bytes b = content_of(path);
	int found = 0;
	for (size_t i = 0; i < b.len; i++)
		found += b.at[i] == '\n';
	assert_int_equal(found, lines);
	assert_true(!b.len || (b.at[0] == '{' && b.at[b.len - 1] == '\n'));
	bytes_fini(&b);
}

/* The formats of one file */

static void json_is_one_request_per_line(void **state)
{
	(void)state;
	start("{path: out/a.jsonl, format: json}");
	send_ok(packet_of("first", 1));
	send_ok(packet_of("second", 2));
	assert_lines("out/a.jsonl", 2);
	struct bytes b = content_of("out/a.jsonl");
	assert_true(contains(bytes_view(&b), "first") && contains(bytes_view(&b), "second"));
	bytes_fini(&b);
}

static void proto_is_behind_its_length(void **state)
{
	(void)state;
	start("{path: a.pb, format: proto}");
	struct packet *packet = packet_of("f", 1);
	size_t len = packet->otlp.len;
	send_ok(packet_ref(packet));
	send_ok(packet);
	struct bytes b = content_of("a.pb");
	assert_int_equal(b.len, 2 * (len + 4));
	assert_int_equal(b.at[0] << 24 | b.at[1] << 16 | b.at[2] << 8 | b.at[3], len);
	assert_null(oracle_breach((struct view){ b.at + len + 8, len }));
	bytes_fini(&b);
}

static void zstd_compresses_each_request(void **state)
{
	(void)state;
	start("{path: a.zst, format: proto, compression: zstd, compression_params: {level: 3}}");
	send_ok(packet_of("f", 1));
	struct bytes b = content_of("a.zst"), whole;
	bytes_init(&whole, 1 << 20);
	assert_true(
		compress_inflate(CODING_ZSTD, (struct view){ b.at + 4, b.len - 4 }, &whole, NULL));
	assert_null(oracle_breach(bytes_view(&whole)));
	bytes_fini(&whole);
	bytes_fini(&b);
}

/* As in the Collector: lengths, also around JSON. */
static void compressed_json_is_behind_its_length(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		start("{path: a.zst, compression: zstd, append: true}");
		send_ok(packet_of("f", 1));
		exporter_stop();
	}
	struct bytes b = content_of("a.zst");
	size_t at = 0, records = 0;
	for (; at < b.len; records++) {
		const uint8_t *head = b.at + at;
		size_t len = (size_t)(head[0] << 24 | head[1] << 16 | head[2] << 8 | head[3]);
		struct bytes json;
		bytes_init(&json, 1 << 20);
		assert_true(
			compress_inflate(CODING_ZSTD, (struct view){ head + 4, len }, &json, NULL));
		assert_true(json.at[0] == '{' && json.at[json.len - 1] == '}');
		bytes_fini(&json);
		at += 4 + len;
	}
	assert_int_equal(at, b.len);
	assert_int_equal(records, 2);
	bytes_fini(&b);
}

static void a_start_empties_the_file_unless_told_to_append(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		start(i == 1 ? "{path: a.jsonl, append: true}" : "{path: a.jsonl}");
		send_ok(packet_of("f", 1));
		exporter_stop();
		assert_lines("a.jsonl", i == 1 ? 2 : 1);
	}
}

static void directories_are_made(void **state)
{
	(void)state;
	struct stat st;
	umask(022);
	start("{path: x/y/a.jsonl, directory_permissions: \"0700\"}");
	assert_int_equal(stat("x/y", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(stat("x/y/a.jsonl", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
}

static void missing_directories_can_be_left_to_the_operator(void **state)
{
	(void)state;
	assert_false(exporter_begin(&file_exporter, "{path: x/a.jsonl, create_directory: false}"));
	assert_int_equal(e.err.kind, ERROR_CONFIG);
	assert_string_equal(e.err.text, "path: cannot open x/a.jsonl: No such file or directory");
}

/* Failing disks */

static void a_full_disk_is_retried(void **state)
{
	(void)state;
	start("{path: /dev/full}");
	struct send_result result = exporter_send(packet_of("f", 1));
	assert_int_equal(result.outcome, SEND_RETRY);
	assert_string_equal(result.reason, "disk");
}

/* What was synced is as if it was not; a device has nothing to sync. */
static void records_are_synced_on_request(void **state)
{
	(void)state;
	start("{path: x/a.jsonl, fsync: true, rotation: {max_megabytes: 1}}");
	send_ok(packet_of("f", 1));
	assert_lines("x/a.jsonl", 1);
	exporter_stop();
	start("{path: /dev/null, fsync: true}");
	send_ok(packet_of("f", 1));
}

static void a_torn_line_is_cut_off(void **state)
{
	(void)state;
	start("{path: a.jsonl}");
	send_ok(packet_of("f", 1));
	struct stat st;
	stat("a.jsonl", &st);
	limit_files((rlim_t)st.st_size + 5);
	assert_int_equal(exporter_send(packet_of("f", 1)).outcome, SEND_RETRY);
	limit_files(RLIM_INFINITY);
	assert_lines("a.jsonl", 1);
	send_ok(packet_of("f", 1));
	assert_lines("a.jsonl", 2);
}

/* The state after an interrupted run: half a record. */
static void a_torn_file_is_set_aside(void **state)
{
	(void)state;
	static const char *const yaml[] = {
		"{path: a.jsonl, append: true}",
		"{path: a.jsonl, rotation: {max_backups: 5}}",
		"{path: a.jsonl, format: proto, append: true}",
	};
	for (int i = 0; i < 3; i++) {
		FILE *file = fopen("a.jsonl", "w");
		fputs("{\"resource", file);
		fclose(file);
		start(yaml[i]);
		send_ok(packet_of("f", 1));
		exporter_stop();
		assert_int_equal(count_files(".", NULL), i + 2);
		if (i < 2)
			assert_lines("a.jsonl", 1);
	}
}

static void whole_files_are_added_to(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		start("{path: a.pb, format: proto, append: true}");
		send_ok(packet_of("f", 1));
		exporter_stop();
	}
	assert_int_equal(count_files(".", NULL), 1);
}

/* Rotation */

static char *text_of_length(size_t len)
{
	char *text = memory_new(len + 1);
	memset(text, 'x', len);
	return text;
}

static void files_rotate_by_size_and_old_ones_go(void **state)
{
	(void)state;
	start("{path: a.jsonl, rotation: {max_megabytes: 1, max_backups: 2}}");
	char *text = text_of_length(700000);
	for (int i = 1; i <= 5; i++) {
		send_ok(packet_of(text, 1));
		assert_int_equal(count_files(".", NULL), i < 3 ? i : 3);
		assert_lines("a.jsonl", 1);
	}
	memory_free(text);
}

static void names_that_are_not_ours_stay(void **state)
{
	(void)state;
	fclose(fopen("a-2026.jsonl", "w"));
	start("{path: a.jsonl, rotation: {max_megabytes: 1, max_backups: 1}}");
	char *text = text_of_length(700000);
	for (int i = 0; i < 4; i++)
		send_ok(packet_of(text, 1));
	memory_free(text);
	assert_int_equal(access("a-2026.jsonl", F_OK), 0);
	assert_int_equal(count_files(".", NULL), 3);
}

static void a_rotation_that_could_not_open_its_file_is_made_good(void **state)
{
	(void)state;
	struct rlimit usual, none;
	start("{path: a.jsonl, rotation: {max_megabytes: 1, max_backups: 5}}");
	char *text = text_of_length(700000);
	send_ok(packet_of(text, 1));
	getrlimit(RLIMIT_NOFILE, &usual);
	none = (struct rlimit){ 0, usual.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(exporter_send(packet_of(text, 1)).outcome, SEND_RETRY);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
	send_ok(packet_of(text, 1));
	memory_free(text);
	assert_lines("a.jsonl", 1);
	assert_int_equal(count_files(".", NULL), 2);
}

static void a_file_that_was_moved_away_needs_no_rotation(void **state)
{
	(void)state;
	start("{path: a.jsonl, rotation: {max_megabytes: 1, max_backups: 5}}");
	char *text = text_of_length(700000);
	send_ok(packet_of(text, 1));
	rename("a.jsonl", "moved.jsonl");
	send_ok(packet_of(text, 1));
	memory_free(text);
	assert_lines("moved.jsonl", 1);
	assert_lines("a.jsonl", 1);
}

static void reload_opens_a_file_that_was_moved_away(void **state)
{
	(void)state;
	start("{path: a.jsonl}");
	send_ok(packet_of("f", 1));
	rename("a.jsonl", "moved.jsonl");
	send_ok(packet_of("f", 1));
	assert_true(file_exporter.reopen(e.self, &e.err));
	assert_true(file_exporter.reopen(e.self, &e.err));
	send_ok(packet_of("f", 1));
	assert_lines("moved.jsonl", 2);
	assert_lines("a.jsonl", 1);
	assert_true(file_exporter.reopen(e.self, &e.err)); /* nothing is emptied */
	send_ok(packet_of("f", 1));
	assert_lines("a.jsonl", 2);
}

static void a_reload_that_fails_keeps_the_file(void **state)
{
	(void)state;
	mkdir("x", 0755);
	start("{path: x/a.jsonl, create_directory: false}");
	rename("x", "y");
	assert_false(file_exporter.reopen(e.self, &e.err));
	send_ok(packet_of("f", 1));
	assert_lines("y/a.jsonl", 1);
}

/* The link could point to a file of another user, and another user could have created it. */
static void a_symbolic_link_is_not_followed(void **state)
{
	(void)state;
	static const char *const yaml[] = { "{path: a.jsonl}", "{path: a.jsonl, append: true}",
					    "{path: a.jsonl, rotation: {max_backups: 1}}" };
	fclose(fopen("others", "w"));
	assert_int_equal(symlink("others", "a.jsonl"), 0);
	for (size_t i = 0; i < sizeof yaml / sizeof *yaml; i++) {
		assert_false(exporter_begin(&file_exporter, yaml[i]));
		assert_int_equal(e.err.kind, ERROR_CONFIG);
		assert_string_equal(e.err.text, "path: cannot open a.jsonl: it is a symbolic "
						"link, which outputs do not follow");
		exporter_stop();
	}
	assert_int_equal(count_files(".", NULL), 2);
}

static void a_symbolic_link_that_comes_later_is_not_followed(void **state)
{
	(void)state;
	start("{path: a.jsonl}");
	send_ok(packet_of("f", 1));
	rename("a.jsonl", "moved.jsonl");
	assert_int_equal(symlink("others", "a.jsonl"), 0);
	assert_false(file_exporter.reopen(e.self, &e.err));
	send_ok(packet_of("f", 1));
	assert_lines("moved.jsonl", 2);
	remove("moved.jsonl"); /* the exporter must open a new file, and cannot */
	struct send_result result = exporter_send(packet_of("f", 1));
	assert_int_equal(result.outcome, SEND_RETRY);
	assert_string_equal(result.reason, "disk");
	assert_int_equal(access("others", F_OK), -1);
	remove("a.jsonl");
	send_ok(packet_of("f", 1));
	assert_lines("a.jsonl", 1);
}

/* The reload runs on the loop thread, so it must not wait. */
static void a_pipe_that_nobody_reads_is_an_error(void **state)
{
	(void)state;
	mkfifo("pipe", 0600);
	assert_false(exporter_begin(&file_exporter, "{path: pipe}"));
	assert_string_equal(e.err.text, "path: cannot open pipe: No such device or address");
	exporter_stop();
	int reader = open("pipe", O_RDONLY | O_NONBLOCK);
	start("{path: pipe}");
	send_ok(packet_of("f", 1));
	close(reader);
	assert_false(file_exporter.reopen(e.self, &e.err));
}

static void what_was_removed_is_made_again(void **state)
{
	(void)state;
	start("{path: x/y/a.jsonl}");
	send_ok(packet_of("f", 1));
	assert_int_equal(nftw("x", remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
	send_ok(packet_of("f", 1));
	assert_lines("x/y/a.jsonl", 1);
	assert_int_equal(nftw("x", remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
	assert_true(file_exporter.reopen(e.self, &e.err));
	send_ok(packet_of("f", 1));
	assert_lines("x/y/a.jsonl", 1);
}

static void *reload_often(void *done)
{
	for (int i = 0; i < 300; i++)
		if (!file_exporter.reopen(e.self, NULL))
			abort();
	atomic_store((_Atomic bool *)done, true);
	return NULL;
}

static void reload_and_send_meet(void **state)
{
	(void)state;
	_Atomic bool done = false;
	pthread_t thread;
	int sent = 0;
	start("{path: a.jsonl}");
	assert_int_equal(pthread_create(&thread, NULL, reload_often, &done), 0);
	for (; !atomic_load(&done); sent++)
		send_ok(packet_of("f", 1));
	pthread_join(thread, NULL);
	assert_lines("a.jsonl", sent);
}

/* In place of the C library's: what else happens just before a file is renamed, and while one that
 * was opened is synced. Once. */
static void (*before_rename)(void), (*during_sync)(void);

static void call_once(void (**hook)(void))
{
	void (*call)(void) = *hook;
	*hook = NULL;
	if (call)
		call();
}

int rename(const char *from, const char *to)
{
	call_once(&before_rename);
	return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int fdatasync(int fd)
{
	call_once(&during_sync);
	return (int)syscall(SYS_fdatasync, fd);
}

static void reload(void)
{
	assert_true(file_exporter.reopen(e.self, &e.err));
}

static void send_large(void)
{
	char *text = text_of_length(700000);
	send_ok(packet_of(text, 1));
	memory_free(text);
}

/* What the reload has opened is the file that the rotation sets aside. */
static void a_reload_that_meets_a_rotation_adds_nothing_to_the_backup(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		start("{path: x/a.jsonl, fsync: true, rotation: {max_megabytes: 1}}");
		send_large();
		if (i == 0) {
			before_rename = reload;
			send_large();
		} else {
			during_sync = send_large;
			reload();
		}
		assert_null(before_rename);
		assert_null(during_sync);
		assert_lines("x/a.jsonl", 1);
		send_ok(packet_of("f", 1));
		assert_lines("x/a.jsonl", 2);
		assert_int_equal(count_files("x", NULL), 2);
		exporter_stop();
		assert_int_equal(nftw("x", remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
	}
}

/* Configuration */

static void configurations_that_cannot_be_kept_are_errors(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{ "{format: json}", "`path` must be non-empty with format json" },
		{ "{path: a, format: pprof}", "`path` requires `format: json` or `format: proto`" },
		{ "{path: a, directory: b}", "`directory` requires `format: pprof`" },
		{ "{directory: b}", "`directory` requires `format: pprof`" },
		{ "{path: a, directory: b, format: pprof}",
		  "`path` requires `format: json` or `format: proto`" },
		{ "{format: pprof}", "`directory` must be non-empty with format pprof" },
		{ "{path: a, encoding: otlp}", "encoding: encoding extensions are not supported" },
		{ "{path: a, group_by: {enabled: true}}", "path: must contain exactly one `*`" },
		{ "{path: a/*/*, group_by: {enabled: true}}", "must contain exactly one `*`" },
		{ "{path: \"*.json\", group_by: {enabled: true}}", "must not start with `*`" },
		{ "{path: a/*/, group_by: {enabled: true}}", "must not end with `/`" },
		{ "{path: a/*, group_by: {enabled: true, resource_attribute: \"\"}}",
		  "`group_by::resource_attribute` must be non-empty" },
		{ "{directory: a, format: pprof, group_by: {enabled: true}}",
		  "`group_by` is not supported with format pprof" },
		{ "{path: a, append: true, rotation: }", "`append` and `rotation` enabled" },
		{ "{directory: a, format: pprof, compression: zstd}",
		  "`append` and `compression` are not supported with format pprof" },
		{ "{path: a, directory_permissions: \"rwx\"}", "`directory_permissions` must be" },
		{ "{path: a, directory_permissions: \"1777\"}", "`directory_permissions` must be" },
		{ "{path: a, format: xml}", "xml" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_false(exporter_bind(&file_exporter, cases[i][0]));
		if (!strstr(e.err.text, cases[i][1]))
			fail_msg("%s: %s", cases[i][0], e.err.text);
		exporter_stop();
	}
}

static void the_collectors_keys_are_accepted(void **state)
{
	(void)state;
	start("{path: a.jsonl, format: json, compression: \"\", flush_interval: 5s, "
	      "group_by: {enabled: false, resource_attribute: x, max_open_files: 5}, "
	      "rotation: {max_megabytes: 10, max_days: 3, max_backups: 3, localtime: true}}");
	send_ok(packet_of("f", 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(json_is_one_request_per_line),
		TEST(proto_is_behind_its_length),
		TEST(zstd_compresses_each_request),
		TEST(compressed_json_is_behind_its_length),
		TEST(a_start_empties_the_file_unless_told_to_append),
		TEST(directories_are_made),
		TEST(missing_directories_can_be_left_to_the_operator),
		TEST(a_full_disk_is_retried),
		TEST(records_are_synced_on_request),
		TEST(a_torn_line_is_cut_off),
		TEST(a_torn_file_is_set_aside),
		TEST(whole_files_are_added_to),
		TEST(files_rotate_by_size_and_old_ones_go),
		TEST(names_that_are_not_ours_stay),
		TEST(a_rotation_that_could_not_open_its_file_is_made_good),
		TEST(a_file_that_was_moved_away_needs_no_rotation),
		TEST(reload_opens_a_file_that_was_moved_away),
		TEST(a_reload_that_fails_keeps_the_file),
		TEST(a_symbolic_link_is_not_followed),
		TEST(a_symbolic_link_that_comes_later_is_not_followed),
		TEST(a_pipe_that_nobody_reads_is_an_error),
		TEST(what_was_removed_is_made_again),
		TEST(reload_and_send_meet),
		TEST(a_reload_that_meets_a_rotation_adds_nothing_to_the_backup),
		TEST(configurations_that_cannot_be_kept_are_errors),
		TEST(the_collectors_keys_are_accepted),
	};
	signal(SIGXFSZ, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
