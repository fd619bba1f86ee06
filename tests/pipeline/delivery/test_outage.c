/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/delivery/outage.h"

#define MS UINT64_C(1000000)
#define HOUR (3600000 * MS)

/* The outage alone, with a log in a file. */
static struct scene {
	struct loop *loop;
	struct metrics *metrics;
	struct log log;
	struct outage outage;
	struct outage_view view;
	char path[64];
} scene;

static const struct send_result refused = { .outcome = SEND_RETRY,
					    .retry_after_ms = -1,
					    .reason = "unavailable",
					    .cause = { CAUSE_REFUSED, 111 },
					    .grpc_status = 14 };
static const struct send_result rejected = {
	.outcome = SEND_PERMANENT, .retry_after_ms = -1, .reason = "invalid", .http_status = 400
};

static void look(void *context, struct outage_view *view)
{
	(void)context;
	*view = scene.view;
}

static void begin(uint64_t line_ns)
{
	memset(&scene, 0, sizeof scene);
	snprintf(scene.path, sizeof scene.path, "/tmp/outage-XXXXXX");
	close(mkstemp(scene.path));
	const char *const paths[] = { scene.path, NULL };
	log_configure(&(struct log_config){ .level = LOG_INFO, .output_paths = paths }, NULL);
	scene.loop = loop_new(NULL);
	scene.metrics = metrics_new();
	outage_init(&scene.outage, &(struct outage_options){ .loop = scene.loop,
							     .log = &scene.log,
							     .metrics = scene.metrics,
							     .id = "x",
							     .endpoint = "host:1",
							     .look = look,
							     .line_ns = line_ns });
}

static void end(void)
{
	outage_fini(&scene.outage);
	loop_unref(&scene.loop);
	metrics_unref(&scene.metrics);
	log_close();
	unlink(scene.path);
}

/* The number of lines with this text. */
static int lines_with(const char *text)
{
	char line[4096];
	int count = 0;
	FILE *file = fopen(scene.path, "r");
	while (fgets(line, sizeof line, file))
		count += strstr(line, text) != NULL;
	fclose(file);
	return count;
}

static void refuse(void)
{
	outage_failed(&scene.outage, &refused, NULL);
	outage_retries(&scene.outage, 1, 5000 * MS);
}

static void reject(void)
{
	outage_failed(&scene.outage, &rejected, NULL);
	scene.view.dropped += 7;
	outage_drops(&scene.outage, &(struct outage_loss){ "permanent", 7, 2, false });
}

static void stop_loop(void *argument)
{
	(void)argument;
	loop_stop(scene.loop);
}

static void run_for(uint64_t ns)
{
	struct loop_timer *timer = loop_timer_new(scene.loop, stop_loop, NULL);
	loop_timer_start(timer, ns);
	loop_run(scene.loop);
	loop_timer_unref(&timer);
}

static int64_t text_metric(const char *name)
{
	struct bytes text;
	bytes_init(&text, 1 << 20);
	metrics_write(scene.metrics, &text);
	bytes_add_byte(&text, 0);
	char *at = strstr((char *)text.at, name);
	int64_t value = at ? strtoll(at + strlen(name), NULL, 10) : -1;
	bytes_fini(&text);
	return value;
}

static int64_t read_metric(const char *name)
{
	outage_refresh(&scene.outage);
	return text_metric(name);
}

static void an_outage_has_a_line_at_its_begin_and_at_its_end(void **state)
{
	(void)state;
	begin(HOUR);
	scene.view = (struct outage_view){ .waiting = 50, .queue_percent = 12 };
	for (int i = 0; i < 20; i++)
		refuse();
	assert_int_equal(lines_with(""), 1);
	assert_int_equal(
		lines_with("Exporting failed. Will retry the request after interval.\t"
			   "{\"endpoint\": \"host:1\", \"error\": \"unavailable\", "
			   "\"cause\": \"connection refused\", \"stage\": \"connect\", "
			   "\"errno\": \"ECONNREFUSED\", \"grpc_status\": 14, \"attempts\": 1, "
			   "\"interval_ms\": 5000, \"waiting_items\": 50, "
			   "\"queue_percent\": 12}"),
		1);
	assert_int_equal(read_metric("otelcol_exporter_up{exporter=\"x\"} "), 0);
	scene.view.dropped = 30;
	outage_succeeded(&scene.outage, true);
	outage_succeeded(&scene.outage, true);
	assert_int_equal(lines_with(""), 2);
	assert_int_equal(lines_with("Exporting works again.\t{\"endpoint\": \"host:1\", "
				    "\"failed_for_s\": 0, \"failed_attempts\": 20, "
				    "\"waiting_items\": 50, \"queue_percent\": 12, "
				    "\"dropped_items\": 30}"),
			 1);
	assert_int_equal(read_metric("otelcol_exporter_up{exporter=\"x\"} "), 1);
	end();
}

static void a_loss_has_a_line_of_its_own(void **state)
{
	(void)state;
	begin(HOUR);
	refuse();
	reject();
	reject();
	assert_int_equal(lines_with("Exporting failed. Will retry"), 1);
	assert_int_equal(lines_with("Exporting failed. Dropping data.\t{\"reason\": \"permanent\", "
				    "\"endpoint\": \"host:1\", \"error\": \"invalid\", "
				    "\"http_status\": 400, \"attempts\": 2, \"dropped_items\": 7, "
				    "\"dead_letters\": false, "),
			 1);
	outage_succeeded(&scene.outage, true);
	assert_int_equal(lines_with("\"dropped_items\": 14}"), 1);
	end();
}

static void while_it_lasts_there_is_a_line_for_each_interval(void **state)
{
	(void)state;
	begin(20 * MS);
	refuse();
	while (lines_with("Exporting still fails.") < 3)
		run_for(20 * MS);
	assert_int_equal(lines_with("Exporting failed."), 1);
	outage_succeeded(&scene.outage, true);
	assert_int_equal(lines_with("Exporting works again."), 1);
	int all = lines_with("");
	run_for(100 * MS);
	assert_int_equal(lines_with(""), all);
	end();
}

/* Each change would have a line otherwise. */
static void a_destination_that_flaps_has_few_lines(void **state)
{
	(void)state;
	begin(HOUR);
	for (int i = 0; i < 1000; i++) {
		refuse();
		outage_succeeded(&scene.outage, true);
		reject();
		outage_succeeded(&scene.outage, true);
	}
	assert_int_equal(lines_with("Exporting failed. Will retry"), 1);
	assert_int_equal(lines_with("Exporting failed. Dropping data."), 1);
	assert_int_equal(lines_with(""), 4);
	assert_int_equal(
		read_metric("otelcol_exporter_failed_attempts{error=\"invalid\",exporter=\"x\"} "),
		1000);
	end();
}

static void what_was_not_logged_is_summed_up(void **state)
{
	(void)state;
	begin(50 * MS);
	for (int i = 0; i < 10; i++) {
		refuse();
		outage_succeeded(&scene.outage, true);
	}
	while (!lines_with("Exporting failed from time to time."))
		run_for(50 * MS);
	assert_int_equal(lines_with("\"outages\": 9, \"failed_attempts\": 9"), 1);
	assert_int_equal(lines_with(""), 3);
	end();
}

static void the_last_error_is_a_series(void **state)
{
	static const char last[] = "otelcol_exporter_last_error{cause=\"%s\",error=\"%s\","
				   "exporter=\"x\"} ";
	char name[256];
	(void)state;
	begin(HOUR);
	refuse();
	snprintf(name, sizeof name, last, "connection refused", "unavailable");
	assert_int_equal(read_metric(name), 1);
	reject();
	assert_int_equal(read_metric(name), 0);
	snprintf(name, sizeof name, last, "", "invalid");
	assert_int_equal(read_metric(name), 1);
	outage_succeeded(&scene.outage, true);
	assert_int_equal(read_metric(name), 1);
	assert_int_equal(
		read_metric("otelcol_exporter_failed_attempts{error=\"invalid\",exporter=\"x\"} "),
		1);
	end();
}

/* A reload has removed it, or put another one in its place. */
static void an_exporter_that_is_gone_alarms_nobody(void **state)
{
	static const char up[] = "otelcol_exporter_up{exporter=\"x\"} ";
	static const char last[] = "otelcol_exporter_last_error{cause=\"connection refused\","
				   "error=\"unavailable\",exporter=\"x\"} ";
	struct outage next;
	(void)state;
	begin(HOUR);
	refuse();
	outage_init(&next, &scene.outage.options);
	outage_failed(&next, &refused, NULL);
	outage_refresh(&next);
	outage_fini(&scene.outage);
	assert_int_equal(text_metric(up), 1);
	outage_refresh(&next);
	assert_int_equal(text_metric(up), 0);
	assert_int_equal(text_metric(last), 1);
	scene.outage = next;
	outage_fini(&scene.outage);
	assert_int_equal(text_metric(up), 1);
	assert_int_equal(text_metric(last), 0);
	outage_init(&scene.outage, &next.options);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_outage_has_a_line_at_its_begin_and_at_its_end),
		cmocka_unit_test(a_loss_has_a_line_of_its_own),
		cmocka_unit_test(while_it_lasts_there_is_a_line_for_each_interval),
		cmocka_unit_test(a_destination_that_flaps_has_few_lines),
		cmocka_unit_test(what_was_not_logged_is_summed_up),
		cmocka_unit_test(the_last_error_is_a_series),
		cmocka_unit_test(an_exporter_that_is_gone_alarms_nobody),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
