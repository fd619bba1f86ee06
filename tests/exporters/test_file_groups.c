/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/exporters/file_exporter.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>

/* The file exporter with group_by: what is planned, and where it is written. */

/* A packet of resources with one sample each, of a function with this name, or the value of `group`
 * if that is NULL. A value may be NULL: no attribute. */
static struct packet *packet_for(const char *function, const char *const *values)
{
	struct profiles p = { 0 };
	struct collect *collect = collect_new(&collecting_wide);
	struct collect_added added;
	open_begin(&p, NULL);
	for (int i = 0; values[i] || values[i + 1]; i++) {
		const char *value = values[i];
		uint32_t group = value ? open_attribute(&p, "group", value) : 0;
		open_resource(&p, value ? open_list(&p, group, OPEN_END) : NONE);
		open_scope(&p, "");
		open_profile(&p, "cpu", "ns")->time = 1000 + (uint64_t)i;
		open_value(&p,
			   open_frame(&p, function ? function
					  : value  ? value
						   : "none"),
			   NONE, 7);
	}
	assert_int_equal(collect_add(collect, &p, false, &added, NULL), COLLECT_ADDED);
	struct packet *packet = collect_seal(collect);
	collect_unref(&collect);
	profiles_fini(&p);
	return packet;
}

#define PACKET(...) packet_for(NULL, (const char *const[]){ __VA_ARGS__, NULL, NULL })

static struct parts plan(struct packet *packet)
{
	struct parts parts = { 0 };
	const struct part whole = { .packet = packet, .samples = packet->samples };
	const struct limits limits = { 0 };
	assert_true(file_exporter.exporter->plans(e.self));
	if (!file_exporter.exporter->plan(e.self, &whole, &limits, &parts, &e.err))
		fail_msg("%s", e.err.text);
	packet_unref(&packet);
	return parts;
}

/* Plans and sends; the outcome of the last part. */
static struct send_result send_parts(struct packet *packet)
{
	struct send_result result = { 0 };
	struct parts parts = plan(packet);
	for (uint32_t i = 0; i < parts.count; i++)
		result = exporter_send(packet_ref(parts.at[i].packet));
	parts_fini(&parts);
	return result;
}

static void send_all_ok(struct packet *packet)
{
	assert_int_equal(send_parts(packet).outcome, SEND_OK);
}

static void assert_lines(const char *path, int lines)
{
	struct bytes b = content_of(path);
	int found = 0;
	for (size_t i = 0; i < b.len; i++)
		found += b.at[i] == '\n';
	if (found != lines)
		fail_msg("%s: %d instead of %d lines", path, found, lines);
	bytes_fini(&b);
}

static void assert_has(const char *path, const char *text, bool has)
{
	struct bytes b = content_of(path);
	if (contains(bytes_view(&b), text) != has)
		fail_msg("%s and %s", path, text);
	bytes_fini(&b);
}

static int64_t ungrouped(const char *reason)
{
	const struct metric metric = { "otelcol_exporter_ungrouped_resources", METRIC_COUNTER,
				       "{resources}", "" };
	const struct metric_label labels[] = { { "exporter", "file" },
					       { "reason", reason },
					       { 0 } };
	return metric_get(metrics_series(e.host.metrics, &metric, labels));
}

#define GROUPED(path, more) \
	"{path: " path ", group_by: {enabled: true, resource_attribute: group" more "}"

static void each_value_has_a_file_of_its_own(void **state)
{
	(void)state;
	start(GROUPED("out/*.jsonl", "") "}");
	send_all_ok(PACKET("red", "blue/sky", "red"));
	send_all_ok(PACKET("blue/sky"));
	assert_lines("out/red.jsonl", 1);
	assert_lines("out/blue/sky.jsonl", 2);
	assert_has("out/red.jsonl", "sky", false);
	assert_has("out/blue/sky.jsonl", "red", false);
}

static void what_has_no_file_is_in_no_part(void **state)
{
	(void)state;
	start(GROUPED("out/*.jsonl", "") "}");
	struct parts parts = plan(PACKET("a", "..", NULL, "b\n", "a"));
	assert_int_equal(parts.count, 1);
	assert_int_equal(parts.at[0].samples, 2);
	assert_int_equal(ungrouped("missing"), 1);
	assert_int_equal(ungrouped("invalid"), 2);
	parts_fini(&parts);
	parts = plan(PACKET("."));
	assert_int_equal(parts.count, 0);
	parts_fini(&parts);
}

/* Parts may come from the queue on disk of another configuration. */
static void a_part_without_a_file_is_refused(void **state)
{
	(void)state;
	start(GROUPED("out/*.jsonl", "") "}");
	struct send_result result = exporter_send(PACKET("../.."));
	assert_int_equal(result.outcome, SEND_PERMANENT);
	assert_string_equal(result.reason, "no_group");
	assert_int_equal(count_files("out", NULL), 0);
}

static void the_number_of_files_is_bounded(void **state)
{
	(void)state;
	start(GROUPED("out/*.jsonl", ", max_files: 2") "}");
	send_all_ok(PACKET("a", "b"));
	struct send_result result = send_parts(PACKET("c"));
	assert_int_equal(result.outcome, SEND_PERMANENT);
	assert_string_equal(result.reason, "too_many_files");
	assert_int_equal(ungrouped("too_many_files"), 1);
	send_all_ok(PACKET("a"));
	assert_lines("out/a.jsonl", 2);
	assert_int_equal(count_files("out", NULL), 2);
}

static int descriptors(void)
{
	return count_files("/proc/self/fd", NULL);
}

/* The Collector empties a file that it opens again. */
static void a_file_that_was_closed_to_open_another_is_continued(void **state)
{
	(void)state;
	int before = descriptors();
	start(GROUPED("out/*.jsonl", ", max_open_files: 2") "}");
	for (int i = 0; i < 3; i++)
		send_all_ok(PACKET("a", "b", "c", "d"));
	assert_int_equal(descriptors(), before + 2);
	assert_lines("out/a.jsonl", 3);
	assert_lines("out/d.jsonl", 3);
	exporter_stop();
	assert_int_equal(descriptors(), before);
}

static void a_start_empties_files_when_their_first_record_comes(void **state)
{
	(void)state;
	static const char *const yaml[] = { GROUPED("out/*.jsonl", "") "}",
					    GROUPED("out/*.jsonl", "") ", append: true}" };
	for (int i = 0; i < 2; i++) {
		start(yaml[i]);
		send_all_ok(PACKET("a", "b"));
		exporter_stop();
		start(yaml[i]);
		send_all_ok(PACKET("a"));
		assert_lines("out/a.jsonl", 1 + 2 * i);
		assert_lines("out/b.jsonl", 1 + i);
		exporter_stop();
	}
}

static void each_file_is_rotated_by_itself(void **state)
{
	(void)state;
	start(GROUPED("out/*.jsonl",
		      ", max_open_files: 1") ", rotation: {max_megabytes: 1, max_backups: 2}}");
	char *text = memory_new(700001);
	memset(text, 'x', 700000);
	for (int i = 0; i < 5; i++) {
		send_all_ok(PACKET("small"));
		send_all_ok(packet_for(text, (const char *const[]){ "large", NULL, NULL }));
	}
	memory_free(text);
	assert_int_equal(count_files("out", NULL), 1 + 3);
	assert_lines("out/small.jsonl", 5);
}

/* SIGHUP after logrotate */
static void reopening_reaches_every_file(void **state)
{
	(void)state;
	start(GROUPED("out/*.jsonl", "") "}");
	send_all_ok(PACKET("a", "b"));
	rename("out", "moved");
	send_all_ok(PACKET("a"));
	assert_true(file_exporter.reopen(e.self, &e.err));
	send_all_ok(PACKET("a", "b"));
	assert_lines("moved/a.jsonl", 2);
	assert_lines("out/a.jsonl", 1);
	assert_lines("out/b.jsonl", 1);
}

/* The star may be in the name of a folder. Before the first record, there is none below the part
 * that all files have in common. */
static void reopening_makes_no_folder_of_the_star(void **state)
{
	(void)state;
	start(GROUPED("out/in-*/all.jsonl", "") "}");
	assert_true(file_exporter.reopen(e.self, &e.err));
	assert_int_equal(count_files("out", NULL), 0);
	send_all_ok(PACKET("a"));
	assert_true(file_exporter.reopen(e.self, &e.err));
	assert_int_equal(count_files("out", NULL), 1);
	assert_lines("out/in-a/all.jsonl", 1);
}

static void *reopen_often(void *done)
{
	for (int i = 0; i < 300; i++)
		if (!file_exporter.reopen(e.self, NULL))
			abort();
	atomic_store((_Atomic bool *)done, true);
	return NULL;
}

static void reopening_and_sending_meet(void **state)
{
	(void)state;
	_Atomic bool done = false;
	pthread_t thread;
	int sent = 0;
	start(GROUPED("out/*.jsonl", "") "}");
	assert_int_equal(pthread_create(&thread, NULL, reopen_often, &done), 0);
	do {
		send_all_ok(PACKET("a", "b"));
		sent++;
	} while (!atomic_load(&done));
	pthread_join(thread, NULL);
	assert_lines("out/a.jsonl", sent);
	assert_lines("out/b.jsonl", sent);
}

static void what_was_removed_is_made_again(void **state)
{
	(void)state;
	start(GROUPED("out/*.jsonl", "") "}");
	send_all_ok(PACKET("x/a"));
	assert_int_equal(nftw("out", remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
	send_all_ok(PACKET("x/a"));
	assert_lines("out/x/a.jsonl", 1);
}

static void a_directory_is_left_to_the_operator_on_request(void **state)
{
	(void)state;
	assert_false(exporter_begin(&file_exporter,
				    GROUPED("out/*.jsonl", "") ", create_directory: false}"));
	assert_string_equal(e.err.text,
			    "path: cannot open the directory out: No such file or directory");
	exporter_stop();
	mkdir("out", 0755);
	start(GROUPED("out/*.jsonl", "") ", create_directory: false}");
	send_all_ok(PACKET("x/a")); /* folders of values are ours */
	assert_lines("out/x/a.jsonl", 1);
}

/* A sender that chooses such a path must not delay the others. */
static void a_path_that_is_no_file_concerns_its_group_alone(void **state)
{
	(void)state;
	start(GROUPED("out/*.jsonl", "") "}");
	mkdir("out/a.jsonl", 0755);
	assert_int_equal(symlink("/etc", "out/link"), 0);
	fclose(fopen("out/file", "w"));
	static const char *const values[] = { "a", "file/b" };
	for (int i = 0; i < 2; i++) {
		struct send_result result = send_parts(PACKET(values[i]));
		assert_int_equal(result.outcome, SEND_PERMANENT);
		assert_string_equal(result.reason, "unusable_file");
	}
	assert_int_equal(ungrouped("unusable"), 2);
	send_all_ok(PACKET("b"));
}

static int64_t files(void)
{
	const struct metric metric = { "otelcol_exporter_file_groups", METRIC_GAUGE, "{files}",
				       "" };
	const struct metric_label labels[] = { { "exporter", "file" }, { 0 } };
	return metric_get(metrics_series(e.host.metrics, &metric, labels));
}

static void a_path_that_is_no_file_takes_no_place_of_one(void **state)
{
	(void)state;
	start(GROUPED("out/*.jsonl", ", max_files: 2") "}");
	fclose(fopen("out/file", "w"));
	static const char *const values[] = { "file/a", "file/b", "file/c", "file/a" };
	for (int i = 0; i < 4; i++)
		assert_string_equal(send_parts(PACKET(values[i])).reason, "unusable_file");
	assert_int_equal(files(), 0);
	send_all_ok(PACKET("a", "b"));
	assert_int_equal(files(), 2);
	assert_string_equal(send_parts(PACKET("c")).reason, "too_many_files");
	remove("out/file");
	assert_string_equal(send_parts(PACKET("file/a")).reason, "too_many_files");
}

static void folders_are_bounded_even_if_their_files_cannot_be_opened(void **state)
{
	(void)state;
	struct rlimit usual, none;
	start(GROUPED("out/*.jsonl", ", max_files: 1") "}");
	getrlimit(RLIMIT_NOFILE, &usual);
	none = (struct rlimit){ 0, usual.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	struct send_result result = send_parts(PACKET("x/a"));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
	assert_string_equal(result.reason, "disk");
	assert_string_equal(send_parts(PACKET("y/a")).reason, "too_many_files");
	assert_int_equal(access("out/y", F_OK), -1);
	send_all_ok(PACKET("x/a"));
}

/* In place of the C library's: of a file system that allows other names than most. */
static int reason_of_mkdir;

int mkdir(const char *path, mode_t mode)
{
	errno = strstr(path, "odd") ? reason_of_mkdir : 0;
	return errno ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

static void a_name_that_the_file_system_refuses_concerns_its_group_alone(void **state)
{
	static const int reasons[] = { ENAMETOOLONG, EINVAL, EILSEQ };
	(void)state;
	start(GROUPED("out/*.jsonl", "") "}");
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
		reason_of_mkdir = reasons[i];
		assert_int_equal(send_parts(PACKET("odd/a")).outcome, SEND_PERMANENT);
	}
	reason_of_mkdir = ENOSPC;
	assert_int_equal(send_parts(PACKET("odd/a")).outcome, SEND_RETRY);
	send_all_ok(PACKET("b/a"));
}

static void a_link_is_not_followed(void **state)
{
	(void)state;
	start(GROUPED("out/*.jsonl", "") "}");
	fclose(fopen("others", "w"));
	assert_int_equal(symlink("../others", "out/a.jsonl"), 0);
	assert_int_equal(send_parts(PACKET("a")).outcome, SEND_PERMANENT);
	assert_lines("others", 0);
}

static void a_directory_that_is_gone_is_like_a_full_disk(void **state)
{
	(void)state;
	start(GROUPED("out/*.jsonl", "") "}");
	send_all_ok(PACKET("a"));
	assert_int_equal(nftw("out", remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
	fclose(fopen("out", "w"));
	static const char *const values[] = { "a", "b" }; /* open, and not */
	for (int i = 0; i < 2; i++) {
		struct send_result result = send_parts(PACKET(values[i]));
		assert_int_equal(result.outcome, SEND_RETRY);
		assert_string_equal(result.reason, "disk");
	}
	remove("out");
	send_all_ok(PACKET("a", "b"));
	assert_lines("out/a.jsonl", 1);
}

static void a_torn_record_is_cut_off_in_its_file(void **state)
{
	(void)state;
	start(GROUPED("out/*.jsonl", ", max_open_files: 1") "}");
	send_all_ok(PACKET("a"));
	struct stat st;
	stat("out/a.jsonl", &st);
	limit_files((rlim_t)st.st_size + 5);
	struct send_result result = send_parts(PACKET("a"));
	limit_files(RLIM_INFINITY);
	assert_int_equal(result.outcome, SEND_RETRY);
	assert_string_equal(result.reason, "disk");
	assert_lines("out/a.jsonl", 1);
	send_all_ok(PACKET("b"));
	send_all_ok(PACKET("a"));
	assert_lines("out/a.jsonl", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_value_has_a_file_of_its_own),
		TEST(what_has_no_file_is_in_no_part),
		TEST(a_part_without_a_file_is_refused),
		TEST(the_number_of_files_is_bounded),
		TEST(a_file_that_was_closed_to_open_another_is_continued),
		TEST(a_start_empties_files_when_their_first_record_comes),
		TEST(each_file_is_rotated_by_itself),
		TEST(reopening_reaches_every_file),
		TEST(reopening_makes_no_folder_of_the_star),
		TEST(reopening_and_sending_meet),
		TEST(what_was_removed_is_made_again),
		TEST(a_directory_is_left_to_the_operator_on_request),
		TEST(a_path_that_is_no_file_concerns_its_group_alone),
		TEST(a_path_that_is_no_file_takes_no_place_of_one),
		TEST(folders_are_bounded_even_if_their_files_cannot_be_opened),
		TEST(a_name_that_the_file_system_refuses_concerns_its_group_alone),
		TEST(a_link_is_not_followed),
		TEST(a_directory_that_is_gone_is_like_a_full_disk),
		TEST(a_torn_record_is_cut_off_in_its_file),
	};
	signal(SIGXFSZ, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
