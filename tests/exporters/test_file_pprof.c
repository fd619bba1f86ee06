/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/exporters/file_exporter.h"

#include <signal.h>
#include <stdio.h>

#include "net/compress.h"
#include "profile/pprof/decode_pprof.h"

/* The file exporter with format pprof: a directory of files. */

static void each_pprof_is_a_file_named_by_time_and_counter(void **state)
{
	(void)state;
	start("{directory: out/pprof, format: pprof}");
	send_ok(packet_of("canary", 2));
	char last[256];
	assert_int_equal(count_files("out/pprof", last), 2);
	unsigned number = 0;
	char end = 0;
	assert_int_equal(sscanf(last, "%*8[0-9]T%*6[0-9].%*9[0-9]-%6u.pb.g%c", &number, &end), 2);
	assert_int_equal(number, 2);
	assert_int_equal(end, 'z');

	char path[300];
	snprintf(path, sizeof path, "out/pprof/%s", last);
	struct bytes b = content_of(path), body;
	struct profiles p = { 0 };
	bytes_init(&body, 1 << 20);
	assert_true(compress_inflate(CODING_GZIP, bytes_view(&b), &body, NULL));
	profiles_reset(&p, NULL, bytes_view(&body), 1 << 20);
	assert_true(decode_pprof(&p, p.input, NULL, NULL));
	assert_int_equal(p.profiles.at[0].time, 1001);
	assert_true(string_is(&p, p.functions.at[1].name, "canary"));
	profiles_fini(&p);
	bytes_fini(&body);
	bytes_fini(&b);
}

static void the_directory_of_pprofs_is_made_again(void **state)
{
	(void)state;
	start("{directory: out/pprof, format: pprof}");
	assert_int_equal(nftw("out", remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
	send_ok(packet_of("f", 1));
	assert_int_equal(count_files("out/pprof", NULL), 1);
}

static void the_oldest_pprofs_go_those_of_earlier_runs_first(void **state)
{
	(void)state;
	char first[256], last[256];
	start("{directory: out, format: pprof}");
	send_ok(packet_of("f", 3));
	count_files("out", first);
	exporter_stop();
	start("{directory: out, format: pprof, rotation: {max_backups: 4}}");
	send_ok(packet_of("f", 3));
	assert_int_equal(count_files("out", last), 4);
	assert_string_not_equal(first, last);
	send_ok(packet_of("f", 9));
	assert_int_equal(count_files("out", NULL), 4);
}

static void half_written_pprofs_of_earlier_runs_are_removed(void **state)
{
	(void)state;
	mkdir("out", 0755);
	fclose(fopen("out/.20260102T150405.123456789-000001.pb.gz.part", "w"));
	fclose(fopen("out/notes", "w"));
	start("{directory: out, format: pprof}");
	assert_int_equal(count_files("out", NULL), 1);
}

static void put_old_pprof(int number, off_t bytes)
{
	char path[80];
	mkdir("out", 0755);
	snprintf(path, sizeof path, "out/20260102T150405.123456789-%06d.pb.gz", number);
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(ftruncate(fd, bytes), 0); /* sparse */
	close(fd);
}

static int64_t removed(const char *limit)
{
	static const struct metric metric = { "otelcol_exporter_removed_files", METRIC_COUNTER, "",
					      "" };
	return metric_get(metrics_series(e.host.metrics, &metric,
					 (const struct metric_label[]){ { "exporter", "file" },
									{ "limit", limit },
									{ 0 } }));
}

static void pprofs_have_a_bound_in_bytes_by_default(void **state)
{
	(void)state;
	char last[256];
	for (int i = 0; i < 5; i++)
		put_old_pprof(i, 400 << 20);
	start("{directory: out, format: pprof}");
	assert_int_equal(count_files("out", last), 2);
	assert_non_null(strstr(last, "-000004.pb.gz"));
	assert_int_equal(removed("max_total_megabytes"), 3);
	exporter_stop();
	for (int i = 0; i < 5; i++)
		put_old_pprof(i, 400 << 20);
	start("{directory: out, format: pprof, rotation: {max_backups: 0, max_total_megabytes: "
	      "0}}");
	assert_int_equal(count_files("out", NULL), 5);
}

static void the_oldest_pprofs_go_when_a_new_one_passes_the_bound(void **state)
{
	(void)state;
	char last[256];
	for (int i = 0; i < 16; i++)
		put_old_pprof(i, 64 << 10); /* 1 MiB */
	fclose(fopen("out/notes", "w"));
	start("{directory: out, format: pprof, rotation: {max_total_megabytes: 1}}");
	assert_int_equal(removed("max_total_megabytes"), 0);
	send_ok(packet_of("f", 1));
	/* notes, the new file, and the files that fit into the limit minus a sixteenth */
	assert_int_equal(count_files("out", last), 16);
	assert_true(strcmp(last, "notes") == 0 &&
		    access("out/20260102T150405.123456789-000001.pb.gz", F_OK) != 0);
	assert_int_equal(access("out/20260102T150405.123456789-000002.pb.gz", F_OK), 0);
	assert_int_equal(removed("max_total_megabytes"), 2);
	send_ok(packet_of("f", 3)); /* there is room again */
	assert_int_equal(count_files("out", NULL), 19);
	assert_int_equal(removed("max_total_megabytes"), 2);
}

static void the_newest_pprof_stays_whatever_its_size(void **state)
{
	(void)state;
	put_old_pprof(1, 1000);
	put_old_pprof(2, 4 << 20);
	start("{directory: out, format: pprof, rotation: {max_total_megabytes: 1}}");
	assert_int_equal(count_files("out", NULL), 1);
	send_ok(packet_of("f", 1));
	assert_int_equal(count_files("out", NULL), 1);
	assert_int_equal(access("out/20260102T150405.123456789-000002.pb.gz", F_OK), -1);
}

static void each_limit_counts_what_it_removes(void **state)
{
	(void)state;
	start("{directory: out, format: pprof, rotation: {max_backups: 2, max_days: 1}}");
	send_ok(packet_of("f", 5));
	assert_int_equal(removed("max_backups"), 3);
	put_old_pprof(1, 10);
	assert_int_equal(utimensat(AT_FDCWD, "out/20260102T150405.123456789-000001.pb.gz",
				   (const struct timespec[2]){ { 1, 0 }, { 1, 0 } }, 0),
			 0);
	exporter_stop();
	start("{directory: out, format: pprof, rotation: {max_days: 1}}");
	assert_int_equal(count_files("out", NULL), 2);
	assert_int_equal(removed("max_days"), 1);
}

static void a_packet_of_pprofs_is_written_whole_or_not_at_all(void **state)
{
	(void)state;
	start("{directory: out, format: pprof}");
	limit_files(20);
	assert_int_equal(exporter_send(packet_of("f", 3)).outcome, SEND_RETRY);
	limit_files(RLIM_INFINITY);
	assert_int_equal(count_files("out", NULL), 0);
	send_ok(packet_of("f", 3));
	assert_int_equal(count_files("out", NULL), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_packet_of_pprofs_is_written_whole_or_not_at_all),
		TEST(each_pprof_is_a_file_named_by_time_and_counter),
		TEST(the_directory_of_pprofs_is_made_again),
		TEST(the_oldest_pprofs_go_those_of_earlier_runs_first),
		TEST(half_written_pprofs_of_earlier_runs_are_removed),
		TEST(pprofs_have_a_bound_in_bytes_by_default),
		TEST(the_oldest_pprofs_go_when_a_new_one_passes_the_bound),
		TEST(the_newest_pprof_stays_whatever_its_size),
		TEST(each_limit_counts_what_it_removes),
	};
	signal(SIGXFSZ, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
