/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/pyroscope_answer.h"
#include "pipeline/delivery/store_limits.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pipeline/delivery/http_sender.h"

#define MESSAGE(text) "{\"code\":\"invalid_argument\",\"message\":\"" text "\"}"
#define SIZE(labels, limit) \
	MESSAGE("the profile with labels '" labels \
		"' exceeds the size limit (max_profile_size_byte, actual: 9, limit: " limit ")")
#define SHOWN(limit) MESSAGE("uncompressed profile payload size exceeds limit of " limit)
#define LARGE SEND_TOO_LARGE

/* The messages are those of Pyroscope 1.12 and 1.21. The parts that stand for labels were chosen by
 * a sender. */
static const struct row {
	int status;
	enum send_outcome outcome;
	const char *text;
	uint64_t bytes, samples;
} rows[] = {
	{ 413, LARGE, "", 0, 0 },
	{ 400, LARGE, SIZE("{a=\\\"b\\\"}", "4194304"), 4194304, 0 },
	{ 400, LARGE, SIZE("{a=\\\" exceeds the size limit (x, limit: 16385)\\\"}", "60000"), 60000,
	  0 },
	{ 400, LARGE, SIZE("", ""), 0, 0 },
	{ 400, LARGE, SIZE("", "99999999999999999999999999"), 999999999999999, 0 },
	{ 400, LARGE,
	  MESSAGE("the profile with labels '{}' exceeds the samples count limit "
		  "(max, actual: 99999, limit: 16000)"),
	  0, 16000 },
	{ 400, SEND_PERMANENT,
	  MESSAGE("the profile with labels '{}' exceeds the sample labels "
		  "limit (x, actual: 2, limit: 1)"),
	  0, 0 },
	{ 400, LARGE, SHOWN("4.2 MB"), 4150000, 0 },
	{ 400, LARGE, SHOWN("12 MB"), 11450000, 0 },
	{ 400, LARGE, SHOWN("60 kB"), 59450, 0 },
	{ 400, LARGE, SHOWN("1.0 GB"), 950000000, 0 },
	{ 400, LARGE, SHOWN("512 B"), 512, 0 },
	{ 400, LARGE, SHOWN("999999999999999 GB"), 0, 0 },
	{ 400, LARGE, SHOWN("none"), 0, 0 },
	{ 400, LARGE,
	  MESSAGE("uncompressed batched profile payload size exceeds "
		  "limit of 256 MB"),
	  255450000, 0 },
	{ 400, SEND_PERMANENT,
	  MESSAGE("invalid labels '{a=\\\"payload size exceeds "
		  "limit of 1 kB\\\"}'"),
	  0, 0 },
	{ 400, SEND_PERMANENT,
	  MESSAGE("invalid labels '{a=\\\"the profile with labels ' exceeds the size "
		  "limit (x, limit: 16385)\\\"}'"),
	  0, 0 },
	{ 400, SEND_PERMANENT, "the profile with labels '", 0, 0 },
	{ 400, SEND_PERMANENT, "", 0, 0 },
	{ 429, SEND_RETRY, MESSAGE("push rate limit (4.0 MiB) exceeded"), 0, 0 },
};

static struct send_result judge(const struct http_result *result, uint64_t bytes)
{
	struct send_result verdict = http_sender_judge(result);
	pyroscope_judge(result, bytes, &verdict);
	return verdict;
}

static void what_is_too_large_is_known_by_the_stores_own_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct http_result result = { .status = rows[i].status,
						    .body = view_of(rows[i].text) };
		struct send_result verdict = judge(&result, 1000);
		if (verdict.outcome != rows[i].outcome || verdict.stated_bytes != rows[i].bytes ||
		    verdict.stated_samples != rows[i].samples)
			fail_msg("%s: %d, %llu bytes, %llu samples", rows[i].text, verdict.outcome,
				 (unsigned long long)verdict.stated_bytes,
				 (unsigned long long)verdict.stated_samples);
	}
}

static void a_429_over_the_burst_is_a_matter_of_size(void **state)
{
	(void)state;
	const struct http_result result = { .status = 429,
					    .body = view_of("push rate limit "
							    "(4.0 MiB) exceeded") };
	assert_int_equal(judge(&result, STORE_PYROSCOPE_BURST).outcome, SEND_RETRY);
	struct send_result verdict = judge(&result, STORE_PYROSCOPE_BURST + 1);
	assert_int_equal(verdict.outcome, SEND_TOO_LARGE);
	assert_int_equal(verdict.stated_bytes, STORE_PYROSCOPE_BURST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_too_large_is_known_by_the_stores_own_words),
		cmocka_unit_test(a_429_over_the_burst_is_a_matter_of_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
