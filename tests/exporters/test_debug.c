/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/exporters/exporter.h"

extern const struct component_factory debug_exporter;

static void log_to(const char *path)
{
	const char *paths[] = { path, NULL };
	const struct log_config config = { .level = LOG_INFO, .json = true, .output_paths = paths };
	assert_true(log_configure(&config, NULL));
}

static void start(const char *yaml)
{
	log_to("log");
	exporter_start(&debug_exporter, yaml);
}

static void send_ok(struct packet *packet)
{
	assert_int_equal(exporter_send(packet).outcome, SEND_OK);
}

static int count(const char *path, const char *text)
{
	struct bytes b = content_of(path);
	int found = 0;
	bytes_add_byte(&b, '\0');
	for (const char *at = (char *)b.at; (at = strstr(at, text)); at += strlen(text))
		found++;
	bytes_fini(&b);
	return found;
}

static void basic_logs_one_line_of_counts(void **state)
{
	(void)state;
	start("{verbosity: basic, output_paths: [out]}");
	send_ok(packet_of("canary", 3));
	assert_int_equal(count("log", "\"Profiles\""), 1);
	assert_int_equal(count("log", "\"resource profiles\":1,\"sample records\":3"), 1);
	assert_int_equal(count("log", "\n"), 1);
	assert_int_equal(count("log", "canary"), 0);
	assert_int_equal(count("out", "\n"), 0);
}

static void normal_prints_a_line_for_each_profile(void **state)
{
	(void)state;
	start("{verbosity: normal, output_paths: [out, too]}");
	send_ok(packet_of("canary", 3));
	assert_int_equal(count("out", "profile: samples 1, time 100"), 3);
	assert_int_equal(count("too", "\n"), 3);
	assert_int_equal(count("out", "canary"), 0);
}

static void detailed_prints_the_request_but_never_into_the_log(void **state)
{
	(void)state;
	start("{verbosity: detailed, output_paths: [out]}");
	send_ok(packet_of("permitted", 1));
	assert_int_equal(count("out", "permitted"), 1);
	assert_int_equal(count("log", "permitted"), 0);
	assert_int_equal(count("log", "\n"), 1);
}

static void counts_go_to_the_outputs_without_the_logger(void **state)
{
	(void)state;
	start("{use_internal_logger: false, output_paths: [out]}");
	send_ok(packet_of("f", 2));
	assert_int_equal(count("out", "Profiles: resource profiles 1, sample records 2\n"), 1);
	assert_int_equal(count("log", "\n"), 0);
}

static void sampling_shows_the_first_and_then_every_nth(void **state)
{
	(void)state;
	start("{use_internal_logger: false, output_paths: [out], sampling_initial: 1, "
	      "sampling_thereafter: 0}");
	for (int i = 0; i < 50; i++)
		send_ok(packet_of("f", 1));
	int shown = count("out", "\n");
	assert_true(shown >= 1 && shown < 50);
}

static void an_output_that_fails_is_counted(void **state)
{
	(void)state;
	start("{use_internal_logger: false, output_paths: [/dev/full]}");
	struct send_result result = exporter_send(packet_of("f", 1));
	assert_int_equal(result.outcome, SEND_PERMANENT);
	assert_string_equal(result.reason, "output");
}

static void an_output_that_cannot_be_opened_is_the_operators(void **state)
{
	(void)state;
	assert_false(exporter_begin(&debug_exporter, "{output_paths: [stdout, none/out]}"));
	assert_int_equal(e.err.kind, ERROR_CONFIG);
	assert_string_equal(e.err.text,
			    "output_paths[1]: cannot open none/out: No such file or directory");
	exporter_stop();
	assert_int_equal(symlink("elsewhere", "out"), 0);
	assert_false(exporter_begin(&debug_exporter, "{output_paths: [stdout, out]}"));
	assert_string_equal(e.err.text, "output_paths[1]: cannot open out: it is a symbolic "
					"link, which outputs do not follow");
}

static void reload_opens_the_outputs_again(void **state)
{
	(void)state;
	start("{use_internal_logger: false, output_paths: [out, too, stderr]}");
	send_ok(packet_of("f", 1));
	rename("out", "moved");
	send_ok(packet_of("f", 1));
	assert_true(debug_exporter.reopen(e.self, &e.err));
	assert_true(debug_exporter.reopen(e.self, &e.err));
	send_ok(packet_of("f", 1));
	assert_int_equal(count("moved", "\n"), 2);
	assert_int_equal(count("out", "\n"), 1);
	assert_int_equal(count("too", "\n"), 3);
}

static void a_reload_that_fails_keeps_the_output(void **state)
{
	(void)state;
	mkdir("x", 0755);
	start("{use_internal_logger: false, output_paths: [x/out, too]}");
	rename("x", "y");
	rename("too", "moved");
	assert_false(debug_exporter.reopen(e.self, &e.err));
	assert_string_equal(e.err.text,
			    "output_paths[0]: cannot open x/out: No such file or directory");
	send_ok(packet_of("f", 1));
	assert_int_equal(count("y/out", "\n"), 1);
	assert_int_equal(count("too", "\n"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(basic_logs_one_line_of_counts),
		TEST(normal_prints_a_line_for_each_profile),
		TEST(detailed_prints_the_request_but_never_into_the_log),
		TEST(counts_go_to_the_outputs_without_the_logger),
		TEST(sampling_shows_the_first_and_then_every_nth),
		TEST(an_output_that_fails_is_counted),
		TEST(an_output_that_cannot_be_opened_is_the_operators),
		TEST(reload_opens_the_outputs_again),
		TEST(a_reload_that_fails_keeps_the_output),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
