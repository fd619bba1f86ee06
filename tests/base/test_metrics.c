/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <pthread.h>

#include "base/metrics.h"

static const struct metric sent = { "otelcol_sent", METRIC_COUNTER, "{samples}",
				    "Sent \\ and\nmore." };
static const struct metric size = { "otelcol_size", METRIC_GAUGE, "By", "Size." };
static const struct metric early = { "otelcol_early", METRIC_GAUGE, "1", "First." };

static const struct metric_label none[] = { { 0 } };

static void expect(struct metrics *m, const char *text)
{
	struct bytes out;
	bytes_init(&out, 1 << 20);
	metrics_write(m, &out);
	bytes_add_byte(&out, '\0');
	assert_string_equal((char *)out.at, text);
	bytes_fini(&out);
}

static void output_is_sorted_and_escaped(void **state)
{
	(void)state;
	struct metrics *m = metrics_new();
	metric_set(metrics_series(m, &size, none), -5);
	metric_add(metrics_series(m, &sent, (struct metric_label[]){ { "x", "2" }, { 0 } }), 2);
	metric_add(metrics_series(m, &sent,
				  (struct metric_label[]){
					  { "x", "1" }, { "a", "q\"\\\n" }, { 0 } }),
		   3);
	metric_add(metrics_series(m, &early, NULL), 1);
	expect(m, "# HELP otelcol_early First.\n"
		  "# TYPE otelcol_early gauge\n"
		  "otelcol_early 1\n"
		  "# HELP otelcol_sent Sent \\\\ and\\nmore.\n"
		  "# TYPE otelcol_sent counter\n"
		  "otelcol_sent{a=\"q\\\"\\\\\\n\",x=\"1\"} 3\n"
		  "otelcol_sent{x=\"2\"} 2\n"
		  "# HELP otelcol_size Size.\n"
		  "# TYPE otelcol_size gauge\n"
		  "otelcol_size -5\n");
	metrics_unref(&m);
	assert_null(m);
	metrics_unref(&m);
}

static void decimals_move_the_point(void **state)
{
	static const struct metric seconds = { "otelcol_seconds", METRIC_COUNTER, "s", "Seconds.",
					       .decimals = 3 };
	static const char head[] = "# HELP otelcol_seconds Seconds.\n# TYPE otelcol_seconds "
				   "counter\n";
	static const struct {
		int64_t value;
		const char *text;
	} cases[] = { { 0, "0.000" },
		      { 42, "0.042" },
		      { 12345, "12.345" },
		      { -7, "-0.007" },
		      { INT64_MIN, "-9223372036854775.808" } };
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct metrics *m = metrics_new();
		char text[200];
		metric_set(metrics_series(m, &seconds, none), cases[i].value);
		snprintf(text, sizeof text, "%sotelcol_seconds %s\n", head, cases[i].text);
		expect(m, text);
		metrics_unref(&m);
	}
}

static void the_same_labels_are_the_same_series(void **state)
{
	(void)state;
	struct metrics *m = metrics_new();
	struct metric_series *one =
		metrics_series(m, &sent,
			       (struct metric_label[]){ { "a", "1" }, { "b", "2" }, { 0 } });
	struct metric_series *two =
		metrics_series(m, &sent,
			       (struct metric_label[]){ { "b", "2" }, { "a", "1" }, { 0 } });
	struct metric_series *other =
		metrics_series(m, &sent, (struct metric_label[]){ { "a", "1" }, { 0 } });
	assert_ptr_equal(one, two);
	assert_ptr_not_equal(one, other);
	metrics_unref(&m);
}

static void a_full_buffer_ends_with_a_whole_line(void **state)
{
	(void)state;
	struct metrics *m = metrics_new();
	metric_set(metrics_series(m, &early, none), 1);
	metric_set(metrics_series(m, &size, none), 1);
	for (size_t max = 0; max < 130; max++) {
		struct bytes out;
		bytes_init(&out, max);
		metrics_write(m, &out);
		assert_true(out.len == 0 || out.at[out.len - 1] == '\n');
		bytes_fini(&out);
	}
	metrics_unref(&m);
}

struct refreshed {
	struct metrics *metrics;
	int calls;
};

/* To both ends, to where it is, and to what another series has. */
static void a_series_gets_other_labels(void **state)
{
	static const char *const labels[] = { "z", "a", "a", "m", "b" };
	struct metric_series *series[3], *moved;
	struct metrics *m = metrics_new();
	(void)state;
	for (int i = 0; i < 3; i++) {
		char text[] = { (char)('a' + i), '\0' };
		series[i] =
			metrics_series(m, &size, (struct metric_label[]){ { "x", text }, { 0 } });
		metric_set(series[i], i);
	}
	metrics_relabel(m, &size, series[0], (struct metric_label[]){ { "x", "0" }, { 0 } });
	for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
		struct metric_label other[] = { { "x", labels[i] }, { 0 } };
		moved = metrics_relabel(m, &size, series[2], other);
		assert_ptr_equal(moved, i < 4 ? series[2] : series[1]);
	}
	expect(m, "# HELP otelcol_size Size.\n"
		  "# TYPE otelcol_size gauge\n"
		  "otelcol_size{x=\"0\"} 0\n"
		  "otelcol_size{x=\"b\"} 1\n"
		  "otelcol_size{x=\"m\"} 2\n");
	metrics_unref(&m);
}

static void refresh(void *context)
{
	struct refreshed *r = context;
	metric_set(metrics_series(r->metrics, &size, none), ++r->calls);
}

static void callbacks_run_before_writing_until_taken_off(void **state)
{
	(void)state;
	struct metrics *m = metrics_new();
	struct refreshed r = { m, 0 };
	metrics_on_scrape(m, refresh, &r);
	expect(m, "# HELP otelcol_size Size.\n# TYPE otelcol_size gauge\notelcol_size 1\n");
	expect(m, "# HELP otelcol_size Size.\n# TYPE otelcol_size gauge\notelcol_size 2\n");
	metrics_off_scrape(m, &r);
	expect(m, "# HELP otelcol_size Size.\n# TYPE otelcol_size gauge\notelcol_size 2\n");
	metrics_unref(&m);
}

static void *count(void *context)
{
	for (int i = 0; i < 1000; i++) {
		char value[] = { (char)('a' + i % 10), '\0' };
		metric_add(metrics_series(context, &sent,
					  (struct metric_label[]){ { "v", value }, { 0 } }),
			   1);
	}
	return NULL;
}

static void threads_count_together(void **state)
{
	(void)state;
	struct metrics *m = metrics_new();
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, count, m);
	struct bytes out;
	bytes_init(&out, 1 << 16);
	metrics_write(m, &out);
	bytes_fini(&out);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	struct metric_series *s =
		metrics_series(m, &sent, (struct metric_label[]){ { "v", "c" }, { 0 } });
	assert_int_equal(metric_get(s), 400);
	metrics_unref(&m);
}

static void names_and_labels_can_be_those_of_other_exporters(void **state)
{
	static const struct metric seconds = { "otelcol_cpu_seconds", METRIC_COUNTER, "s", "CPU." };
	static const struct metric target = { "target_info", METRIC_GAUGE, "1", "Target." };
	struct metrics *m = metrics_new();
	(void)state;
	metric_set(metrics_series(m, &early, none), 1);
	metric_set(metrics_series(m, &seconds, none), 2);
	metric_set(metrics_series(m, &sent, (struct metric_label[]){ { "x", "1" }, { 0 } }), 3);
	metric_set(metrics_series(m, &size, none), 4);
	metric_set(metrics_series(m, &target, none), 1);
	metrics_set_style(m, &(struct metrics_style){
				     .units = true, .type_suffix = true, .scope = "scope=\"s\"" });
	expect(m, "# HELP otelcol_cpu_seconds_total CPU.\n"
		  "# TYPE otelcol_cpu_seconds_total counter\n"
		  "otelcol_cpu_seconds_total{scope=\"s\"} 2\n"
		  "# HELP otelcol_early_ratio First.\n"
		  "# TYPE otelcol_early_ratio gauge\n"
		  "otelcol_early_ratio{scope=\"s\"} 1\n"
		  "# HELP otelcol_sent_total Sent \\\\ and\\nmore.\n"
		  "# TYPE otelcol_sent_total counter\n"
		  "otelcol_sent_total{scope=\"s\",x=\"1\"} 3\n"
		  "# HELP otelcol_size_bytes Size.\n"
		  "# TYPE otelcol_size_bytes gauge\n"
		  "otelcol_size_bytes{scope=\"s\"} 4\n"
		  "# HELP target_info Target.\n"
		  "# TYPE target_info gauge\n"
		  "target_info 1\n");
	metrics_unref(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_is_sorted_and_escaped),
		cmocka_unit_test(decimals_move_the_point),
		cmocka_unit_test(the_same_labels_are_the_same_series),
		cmocka_unit_test(a_full_buffer_ends_with_a_whole_line),
		cmocka_unit_test(a_series_gets_other_labels),
		cmocka_unit_test(callbacks_run_before_writing_until_taken_off),
		cmocka_unit_test(threads_count_together),
		cmocka_unit_test(names_and_labels_can_be_those_of_other_exporters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
