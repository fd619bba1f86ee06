/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "pipeline/delivery/http_sender.h"
#include "pipeline/delivery/otlp_answer.h"

#include <stdlib.h>
#include <string.h>

/*
 * The response of an OTLP/HTTP server. Its first byte selects the status, the second one the media
 * type. Whatever the body says, the verdict is one of the status, or "too large", its reason is one
 * of our words, and no more Profiles are rejected than were sent.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { PROFILES = 100 };

static void must(bool ok)
{
	if (!ok)
		abort();
}

static bool is_word(const char *reason)
{
	size_t len = strlen(reason);
	return len && len < 30 && strspn(reason, "abcdefghijklmnopqrstuvwxyz_") == len;
}

static void judge(const struct http_result *result)
{
	const struct log log = { 0 };
	struct send_result verdict = http_sender_judge(result);
	enum send_outcome by_status = verdict.outcome;
	otlp_answer_judge(&log, result, PROFILES, &verdict);
	must(verdict.outcome == by_status ||
	     (by_status != SEND_OK && verdict.outcome == SEND_TOO_LARGE));
	must(is_word(verdict.reason) && verdict.rejected_profiles <= PROFILES);
	must(!verdict.rejected_profiles || verdict.outcome == SEND_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const int statuses[] = { 200, 200, 400, 413, 429, 500, 503, 301 };
	static const char *const types[] = { "application/x-protobuf", "application/json",
					     "application/json; charset=utf-8", "text/html", NULL };
	struct bytes body;
	if (len < 2 || len > HTTP_ANSWER_MAX)
		return 0;
	bytes_init(&body, HTTP_ANSWER_MAX);
	must(bytes_add(&body, data + 2, len - 2));
	judge(&(struct http_result){ .status = statuses[data[0] % 8],
				     .content_type = types[data[1] % 5],
				     .body = bytes_view(&body),
				     .retry_after_ms = data[0] & 8 ? 1000 : -1 });
	bytes_fini(&body);
	return 0;
}
