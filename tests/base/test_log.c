/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"

static char path[64];
static const char *paths[] = { path, NULL };
static char text[1 << 18];

/* The contents of the log file. */
static const char *logged(void)
{
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	size_t len = fread(text, 1, sizeof text - 1, file);
	text[len] = '\0';
	fclose(file);
	return text;
}

static void configure(struct log_config config)
{
	struct error err;
	unlink(path);
	config.output_paths = paths;
	assert_true(log_configure(&config, &err));
}

static const struct log otlp = { .component_kind = "receiver", .component_id = "otlp" };

/* The line from its level on, because the time changes. */
static const char *without_time(const char *line)
{
	const char *tab = strchr(line, '\t');
	assert_non_null(tab);
	return tab + 1;
}

static void console_lines_are_tab_separated(void **state)
{
	(void)state;
	configure((struct log_config){ .level = LOG_INFO });
	log_write(&otlp, LOG_INFO, "net/grpc_server.c", 12, "Starting GRPC server",
		  (struct log_field[]){ log_text("endpoint", "a:1"), log_number("n", -3),
					log_bool("tls", true) },
		  3);
	assert_string_equal(without_time(logged()),
			    "info\tnet/grpc_server.c:12\tStarting GRPC "
			    "server\t{\"otelcol.component.id\": \"otlp\", "
			    "\"otelcol.component.kind\": \"receiver\", \"endpoint\": \"a:1\", "
			    "\"n\": -3, \"tls\": true}\n");
}

static void a_line_without_fields_ends_at_its_message(void **state)
{
	(void)state;
	configure((struct log_config){ .level = LOG_INFO });
	log_write(NULL, LOG_WARN, "a.c", 1, "Careful", NULL, 0);
	assert_string_equal(without_time(logged()), "warn\ta.c:1\tCareful\n");
}

static void json_lines_carry_resource_and_initial_fields(void **state)
{
	(void)state;
	const struct log_field initial[] = { log_text("site", "x"), { 0 } };
	const struct log_field resource[] = { log_text("service.name", "gate"),
					      log_text("service.version", "1"),
					      { 0 } };
	configure((struct log_config){
		.level = LOG_INFO, .json = true, .initial_fields = initial, .resource = resource });
	log_write(&otlp, LOG_ERROR, "/build/root/net/tls.c", 7, "Bad \"thing\"\n",
		  (struct log_field[]){
			  { 0 }, log_text("error", "a\tb\x01\xff"), log_text("none", NULL) },
		  3);
	const char *line = logged();
	assert_memory_equal(line, "{\"level\":\"error\",\"ts\":\"20", 24);
	assert_string_equal(
		strstr(line, "\",\"caller\":"),
		"\",\"caller\":\"net/tls.c:7\",\"msg\":\"Bad \\\"thing\\\"\\n\",\"resource\":"
		"{\"service.name\":\"gate\",\"service.version\":\"1\"},\"site\":\"x\","
		"\"otelcol.component.id\":\"otlp\",\"otelcol.component.kind\":\"receiver\","
		"\"error\":\"a\\tb\\u0001\\ufffd\"}\n");
}

static void times_are_iso_8601_with_zone(void **state)
{
	(void)state;
	static const char *const zones[][2] = { { "UTC0", "Z" },
						{ "EAST-5:30", "+0530" },
						{ "WEST3", "-0300" } };
	for (size_t i = 0; i < sizeof zones / sizeof zones[0]; i++) {
		setenv("TZ", zones[i][0], 1);
		tzset();
		configure((struct log_config){ .level = LOG_INFO });
		log_info(NULL, "Now");
		const char *line = logged();
		static const char shape[] = "dddd-dd-ddTdd:dd:dd.ddd";
		for (size_t k = 0; shape[k]; k++)
			assert_true(shape[k] == 'd' ? line[k] >= '0' && line[k] <= '9'
						    : line[k] == shape[k]);
		size_t len = strcspn(line, "\t") - (sizeof shape - 1);
		assert_int_equal(len, strlen(zones[i][1]));
		assert_memory_equal(line + sizeof shape - 1, zones[i][1], len);
	}
}

static void the_macro_names_this_file(void **state)
{
	(void)state;
	configure((struct log_config){ .level = LOG_DEBUG });
	log_debug(&otlp, "Here", log_text("k", "v"));
	assert_memory_equal(without_time(logged()), "debug\tbase/test_log.c:", 22);
	configure((struct log_config){ .level = LOG_DEBUG, .disable_caller = true });
	log_debug(NULL, "Here", log_text("k", "v"));
	assert_string_equal(without_time(logged()), "debug\tHere\t{\"k\": \"v\"}\n");
}

static void lower_levels_are_left_out(void **state)
{
	(void)state;
	configure((struct log_config){ .level = LOG_WARN });
	log_debug(NULL, "one");
	log_info(NULL, "two");
	log_warn(NULL, "three");
	assert_false(log_enabled(LOG_INFO));
	assert_true(log_enabled(LOG_ERROR));
	assert_null(strstr(logged(), "two"));
	assert_non_null(strstr(logged(), "three"));
}

static int count_lines(const char *needle)
{
	int count = 0;
	for (const char *at = logged(); (at = strstr(at, needle)); at++)
		count++;
	return count;
}

static void repeats_are_sampled(void **state)
{
	(void)state;
	configure((struct log_config){ .level = LOG_INFO,
				       .sampling = true,
				       .sampling_initial = 10,
				       .sampling_thereafter = 100,
				       .sampling_tick_ns = UINT64_MAX });
	for (int i = 0; i < 310; i++) {
		log_info(NULL, "often");
		if (i < 5)
			log_info(NULL, "seldom");
	}
	assert_int_equal(count_lines("often"), 13);
	assert_int_equal(count_lines("seldom"), 5);
	configure((struct log_config){ .level = LOG_INFO,
				       .sampling = true,
				       .sampling_initial = 2,
				       .sampling_tick_ns = UINT64_MAX });
	for (int i = 0; i < 50; i++)
		log_info(NULL, "often");
	assert_int_equal(count_lines("often"), 2);
}

static void each_component_is_sampled_by_itself(void **state)
{
	(void)state;
	static const struct log speakers[] = {
		{ .component_kind = "exporter", .component_id = "file/1" },
		{ .component_kind = "exporter", .component_id = "file/2" },
		{ .component_kind = "extension", .component_id = "file/2" },
		{ .component_kind = "processor",
		  .component_id = "file/2",
		  .pipeline_id = "profiles" },
	};
	enum { SPEAKERS = sizeof speakers / sizeof *speakers };
	configure((struct log_config){ .level = LOG_INFO,
				       .sampling = true,
				       .sampling_initial = 1,
				       .sampling_tick_ns = UINT64_MAX });
	for (int i = 0; i < 3 * SPEAKERS; i++)
		log_warn(&speakers[i % SPEAKERS], "failed");
	assert_int_equal(count_lines("failed"), SPEAKERS);
}

static void a_full_line_stays_whole(void **state)
{
	(void)state;
	char *huge = memory_new(100001);
	memset(huge, 1, 100000);
	configure((struct log_config){ .level = LOG_INFO, .json = true });
	const struct log_field f = log_text("k", huge), last = log_text("last", "x");
	log_write(NULL, LOG_INFO, "a.c", 1, huge, (struct log_field[]){ f, f, f, last }, 4);
	const char *line = logged();
	size_t len = strlen(line);
	assert_true(len < 65536);
	assert_string_equal(line + len - 13, ",\"last\":\"x\"}\n");
	assert_non_null(strstr(line, "\\u0001...\""));
	memory_free(huge);
}

static void reopening_follows_the_path(void **state)
{
	(void)state;
	struct error err;
	char moved[80];
	snprintf(moved, sizeof moved, "%s.1", path);
	configure((struct log_config){ .level = LOG_INFO });
	log_info(NULL, "before");
	assert_int_equal(rename(path, moved), 0);
	log_info(NULL, "between");
	assert_true(log_reopen(NULL, &err));
	log_info(NULL, "after");
	assert_null(strstr(logged(), "between"));
	assert_non_null(strstr(logged(), "after"));
	unlink(moved);
}

static void a_bad_path_is_an_error_and_changes_nothing(void **state)
{
	(void)state;
	struct error err;
	configure((struct log_config){ .level = LOG_INFO });
	const char *const bad[] = { path, "/nonexistent/x.log", NULL };
	assert_false(log_configure(&(struct log_config){ .level = LOG_ERROR, .output_paths = bad },
				   &err));
	assert_string_equal(err.text,
			    "the log: cannot open /nonexistent/x.log: No such file or directory");
	log_info(NULL, "still here");
	assert_non_null(strstr(logged(), "still here"));
}

static void *write_lines(void *context)
{
	for (int i = 0; i < 200; i++)
		log_info(context, "line", log_number("i", i));
	return NULL;
}

static void threads_write_whole_lines(void **state)
{
	(void)state;
	pthread_t threads[4];
	configure((struct log_config){ .level = LOG_INFO, .json = true });
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, write_lines, (void *)&otlp);
	log_reopen(NULL, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(count_lines("\"msg\":\"line\""), 800);
	assert_int_equal(count_lines("}\n"), 801); /* and that the file was opened again */
}

static int make_file(void **state)
{
	(void)state;
	snprintf(path, sizeof path,
		 "/tmp/portcullis-log-"
		 "XXXXXX");
	int fd = mkstemp(path);
	return fd < 0 || close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	log_close();
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(console_lines_are_tab_separated),
		cmocka_unit_test(a_line_without_fields_ends_at_its_message),
		cmocka_unit_test(json_lines_carry_resource_and_initial_fields),
		cmocka_unit_test(times_are_iso_8601_with_zone),
		cmocka_unit_test(the_macro_names_this_file),
		cmocka_unit_test(lower_levels_are_left_out),
		cmocka_unit_test(repeats_are_sampled),
		cmocka_unit_test(each_component_is_sampled_by_itself),
		cmocka_unit_test(a_full_line_stays_whole),
		cmocka_unit_test(reopening_follows_the_path),
		cmocka_unit_test(a_bad_path_is_an_error_and_changes_nothing),
		cmocka_unit_test(threads_write_whole_lines),
	};
	return cmocka_run_group_tests(tests, make_file, remove_file);
}
