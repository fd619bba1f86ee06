/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "config/load.h"
#include "pipeline/delivery/delivery.h"

/* The last words of the error; "" if the section is valid. The result is valid until the next
 * call. */
static const char *bind(const struct config_table *table, const char *yaml)
{
	static struct error err;
	char config[256] = { 0 };
	assert_true(table->size <= sizeof config);
	error_clear(&err);
	struct node *node = config_parse("test", yaml, strlen(yaml), &err);
	assert_non_null(node);
	bool ok = config_bind(table, node, "section", config, &err);
	config_release(table, config);
	node_unref(&node);
	const char *path = strstr(err.text, "section"), *last = path ? strstr(path, ": ") : NULL;
	return ok ? "" : last ? last + strlen(": ") : err.text;
}

static void a_queue_is_checked_in_the_collectors_words(void **state)
{
	(void)state;
	assert_string_equal(bind(&queue_table, "{num_consumers: 0}"),
			    "`num_consumers` must be positive");
	assert_string_equal(bind(&queue_table, "{num_consumers: -1}"),
			    "`num_consumers` must be positive");
	assert_string_equal(bind(&queue_table, "{queue_size: 0}"), "`queue_size` must be positive");
	assert_string_equal(bind(&queue_table, "{queue_size: 9223372036854775807, sizer: bytes}"),
			    "");
	assert_string_equal(bind(&queue_table, "{num_consumers: 10000}"), "");
	assert_string_equal(bind(&queue_table, "{num_consumers: 10001}"),
			    "`num_consumers` must be at most 10000");
}

static void what_is_wrong_in_a_queue_that_is_off_does_not_matter(void **state)
{
	(void)state;
	assert_string_equal(bind(&queue_table, "{enabled: false, queue_size: 0}"), "");
	assert_string_equal(bind(&retry_table, "{enabled: false, initial_interval: -5s}"), "");
}

static void a_batch_of_the_queue_is_checked_in_the_collectors_words(void **state)
{
	static const char *const cases[][2] = {
		{ "batch:", "" },
		{ "{batch: {}}", "" },
		{ "{batch: {enabled: false, flush_timeout: -1s}}", "" },
		{ "{batch: {flush_timeout: 0s}}", "`flush_timeout` must be positive" },
		{ "{batch: {min_size: -1}}", "`min_size` must be non-negative" },
		{ "{batch: {max_size: -1}}", "`max_size` must be non-negative" },
		{ "{batch: {max_size: 100}}", "`max_size` must be greater or equal to `min_size`" },
		{ "{batch: {min_size: 100, max_size: 100}}", "" },
		{ "{sizer: items, batch: {}}",
		  "`min_size` must be less than or equal to `queue_size`" },
		{ "{sizer: items, queue_size: 8192, batch: {}}", "" },
		{ "{sizer: bytes, batch: {sizer: items}}", "" },
		{ "{sizer: bytes, batch: {}}",
		  "`min_size` must be less than or equal to `queue_size`" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(bind(&queue_table, cases[i][0]), cases[i][1]);
	assert_string_equal(bind(&queue_table, "{batch: {partition: {metadata_keys: [X-a, x-A]}}}"),
			    "duplicate entry in metadata_keys[1] (case-insensitive)");
	assert_string_not_equal(bind(&queue_table, "{batch: {sizer: requests}}"), "");
	assert_string_not_equal(bind(&queue_table, "{batch: {partition: {keys: [a]}}}"), "");
}

static struct batch_settings batching(const char *yaml)
{
	struct queue_config config = { 0 };
	struct error err;
	struct node *node = config_parse("test", yaml, strlen(yaml), &err);
	assert_true(config_bind(&queue_table, node, "section", &config, &err));
	struct batch_settings settings = queue_batching(&config);
	config_release(&queue_table, &config);
	node_unref(&node);
	return settings;
}

static void a_batch_of_the_queue_has_the_collectors_defaults(void **state)
{
	(void)state;
	struct batch_settings s = batching("{batch: {}}");
	assert_true(s.on);
	assert_int_equal(s.timeout.ns, 200000000);
	assert_int_equal(s.size, 8192);
	assert_int_equal(s.bytes, 0);
	assert_int_equal(s.max_size, 0);
	assert_int_equal(s.max_bytes, 3 << 20);
	assert_int_equal(s.metadata_limit, 10000);
	assert_false(batching("{}").on);
	assert_false(batching("{enabled: false, batch: {}}").on);
	assert_false(batching("{batch: {enabled: false}}").on);
}

static void a_batch_is_counted_in_what_its_sizer_says_or_the_queues(void **state)
{
	(void)state;
	struct batch_settings s = batching("{batch: {min_size: 10, max_size: 20, sizer: bytes}}");
	assert_int_equal(s.bytes, 10);
	assert_int_equal(s.max_bytes, 20);
	assert_int_equal(s.max_size, 0);
	s = batching("{sizer: bytes, queue_size: 100000000, batch: {min_size: 5000000}}");
	assert_int_equal(s.bytes, 5000000);
	assert_int_equal(s.max_bytes, 0);
	s = batching("{sizer: bytes, batch: {min_size: 10, max_size: 20, sizer: items}}");
	assert_int_equal(s.bytes, 0);
	assert_int_equal(s.size, 10);
	assert_int_equal(s.max_size, 20);
}

static void retries_are_checked_in_the_collectors_words(void **state)
{
	static const char *const cases[][2] = {
		{ "{initial_interval: -5s}", "'initial_interval' must be non-negative" },
		{ "{randomization_factor: 1.5}", "'randomization_factor' must be within [0, 1]" },
		{ "{multiplier: -1}", "'multiplier' must be non-negative" },
		{ "{max_interval: -1ns}", "'max_interval' must be non-negative" },
		{ "{max_elapsed_time: -1h}", "'max_elapsed_time' must be non-negative" },
		{ "{max_elapsed_time: 1s}",
		  "'max_elapsed_time' must not be less than 'initial_interval'" },
		{ "{max_elapsed_time: 6s}",
		  "'max_elapsed_time' must not be less than 'max_interval'" },
		{ "{max_elapsed_time: 0s}", "" },
		{ "{initial_interval: 0s, multiplier: 1, max_interval: 0s}", "" },
		{ "{max_interval: 2562047h, max_elapsed_time: 0s}", "" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(bind(&retry_table, cases[i][0]), cases[i][1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_queue_is_checked_in_the_collectors_words),
		cmocka_unit_test(what_is_wrong_in_a_queue_that_is_off_does_not_matter),
		cmocka_unit_test(a_batch_of_the_queue_is_checked_in_the_collectors_words),
		cmocka_unit_test(a_batch_of_the_queue_has_the_collectors_defaults),
		cmocka_unit_test(a_batch_is_counted_in_what_its_sizer_says_or_the_queues),
		cmocka_unit_test(retries_are_checked_in_the_collectors_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
