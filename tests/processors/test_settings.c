/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/system.h"
#include "tests/support/policy.h"

/* `batch` and `memory_limiter` only contribute settings to their path. */
extern const struct component_factory batch_processor, memory_limiter_processor;

static struct path_settings settle(const struct component_factory *factory, const char *yaml)
{
	struct policy policy;
	struct path_settings settings = { 0 };
	policy_must_open(&policy, factory, yaml);
	factory->processor->settle(policy.self, &settings);
	assert_true(settings.batch.metadata_keys.count < 3);
	for (size_t i = 0; i < settings.batch.metadata_keys.count; i++)
		assert_string_equal(settings.batch.metadata_keys.at[i], i ? "other" : "X-Tenant");
	policy_close(&policy);
	return settings;
}

static void refused(const struct component_factory *factory, const char *yaml, const char *text)
{
	struct policy policy;
	assert_false(policy_open(&policy, factory, yaml));
	if (!strstr(policy.err.text, text))
		fail_msg("%s: %s", yaml, policy.err.text);
	policy_close(&policy);
}

static void batch_has_the_collectors_defaults(void **state)
{
	(void)state;
	struct path_settings s = settle(&batch_processor, "{}");
	assert_true(s.batch.on);
	assert_int_equal(s.batch.timeout.ns, 200000000);
	assert_int_equal(s.batch.size, 8192);
	assert_int_equal(s.batch.max_size, 0);
	assert_int_equal(s.batch.max_bytes, 3 << 20);
	assert_int_equal(s.batch.metadata_limit, 1000);
	assert_int_equal(s.batch.metadata_keys.count, 0);
}

static void batch_takes_its_keys(void **state)
{
	(void)state;
	struct path_settings s =
		settle(&batch_processor, "{timeout: 1s, send_batch_size: 10, send_batch_max_size: "
					 "20, metadata_keys: [X-Tenant, other], "
					 "send_batch_max_bytes: 5, metadata_cardinality_limit: 7}");
	assert_int_equal(s.batch.timeout.ns, 1000000000);
	assert_int_equal(s.batch.size, 10);
	assert_int_equal(s.batch.max_size, 20);
	assert_int_equal(s.batch.max_bytes, 5);
	assert_int_equal(s.batch.metadata_limit, 7);
	assert_int_equal(s.batch.metadata_keys.count, 2);
}

static void batch_refuses_what_the_collector_refuses(void **state)
{
	(void)state;
	refused(&batch_processor, "{send_batch_size: 10, send_batch_max_size: 5}",
		"send_batch_max_size must be greater or equal to send_batch_size");
	refused(&batch_processor, "metadata_keys: [A, a]",
		"duplicate entry in metadata_keys[1] (case-insensitive)");
	refused(&batch_processor, "timeout: -1s", "timeout must be greater or equal to 0");
	refused(&batch_processor, "send_batch_size: -1", "send_batch_size");
}

static void memory_limits_are_bytes_with_a_fifth_for_spikes(void **state)
{
	(void)state;
	struct path_settings s =
		settle(&memory_limiter_processor, "{check_interval: 1s, limit_mib: 512}");
	assert_int_equal(s.memory_limit, 512u << 20);
	assert_int_equal(s.memory_spike, (512u << 20) / 100 * 20);
	assert_int_equal(s.memory_check_interval.ns, 1000000000);
	s = settle(&memory_limiter_processor, "{check_interval: 1s, limit_mib: 512, "
					      "spike_limit_mib: 128, limit_percentage: 10, "
					      "min_gc_interval_when_soft_limited: 20s}");
	assert_int_equal(s.memory_limit, 512u << 20);
	assert_int_equal(s.memory_spike, 128u << 20);
	s = settle(&memory_limiter_processor,
		   "{check_interval: 1s, limit_percentage: 50, spike_limit_percentage: 10}");
	assert_int_equal(s.memory_limit, system_memory() / 100 * 50);
	assert_int_equal(s.memory_spike, system_memory() / 100 * 10);
}

static void memory_limiter_refuses_what_the_collector_refuses(void **state)
{
	(void)state;
	static const struct {
		const char *yaml, *text;
	} rows[] = {
		{ "limit_mib: 5", "'check_interval' must be greater than zero" },
		{ "check_interval: 1s",
		  "'limit_mib' or 'limit_percentage' must be greater than zero" },
		{ "{check_interval: 1s, limit_mib: 5, spike_limit_mib: 5}",
		  "'spike_limit_mib' must be smaller than 'limit_mib'" },
		{ "{check_interval: 1s, limit_percentage: 5, spike_limit_percentage: 5}",
		  "'spike_limit_percentage' must be smaller than 'limit_percentage'" },
		{ "{check_interval: 1s, limit_percentage: 101}",
		  "'limit_percentage' and 'spike_limit_percentage' must be greater than zero and "
		  "less than or equal to hundred" },
		{ "{check_interval: 1s, limit_mib: 5, min_gc_interval_when_soft_limited: 1s, "
		  "min_gc_interval_when_hard_limited: 2s}",
		  "'min_gc_interval_when_soft_limited' should be larger than "
		  "'min_gc_interval_when_hard_limited'" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		refused(&memory_limiter_processor, rows[i].yaml, rows[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batch_has_the_collectors_defaults),
		cmocka_unit_test(batch_takes_its_keys),
		cmocka_unit_test(batch_refuses_what_the_collector_refuses),
		cmocka_unit_test(memory_limits_are_bytes_with_a_fifth_for_spikes),
		cmocka_unit_test(memory_limiter_refuses_what_the_collector_refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
