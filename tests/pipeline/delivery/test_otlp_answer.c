/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/otlp_answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/delivery/http_sender.h"

#define PROTO "application/x-protobuf"
#define JSON "application/json"
#define BODY(text) \
	{ \
		(const uint8_t *)(text), sizeof(text) - 1 \
	}

/* The expected bytes are written by hand, from the numbers of the fields. */
static const struct row {
	const char *what;
	int status;
	const char *type;
	struct view body;
	int64_t retry_after_ms;
	enum send_outcome outcome;
	const char *reason;
	uint64_t rejected, stated;
} rows[] = {
	/* accepted */
	{ "nothing", 200, PROTO, BODY(""), -1, SEND_OK, "ok", 0, 0 },
	{ "all", 200, PROTO, BODY("\x0a\x00"), -1, SEND_OK, "ok", 0, 0 },
	{ "some", 200, PROTO, BODY("\x0a\x02\x08\x03"), -1, SEND_OK, "ok", 3, 0 },
	{ "some, with a message", 200, PROTO, BODY("\x0a\x05\x08\x03\x12\x01x"), -1, SEND_OK, "ok",
	  3, 0 },
	{ "more than there were", 200, PROTO, BODY("\x0a\x03\x08\x90\x4e"), -1, SEND_OK, "ok", 100,
	  0 },
	{ "fewer than none", 200, PROTO,
	  BODY("\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), -1, SEND_OK, "ok", 0, 0 },
	{ "not protobuf", 200, PROTO, BODY("\xff\xff"), -1, SEND_OK, "ok", 0, 0 },
	{ "text", 200, "text/plain", BODY("\x0a\x02\x08\x03"), -1, SEND_OK, "ok", 0, 0 },
	{ "without a type", 200, NULL, BODY("\x0a\x02\x08\x03"), -1, SEND_OK, "ok", 0, 0 },
	{ "a number", 200, JSON, BODY("{\"partialSuccess\":{\"rejectedProfiles\":2}}"), -1, SEND_OK,
	  "ok", 2, 0 },
	{ "a string", 200, JSON "; charset=utf-8",
	  BODY("{\"partial_success\":{\"rejected_profiles\":\"2\",\"error_message\":\"x\"}}"), -1,
	  SEND_OK, "ok", 2, 0 },
	{ "a type that only begins so", 200, JSON "+x",
	  BODY("{\"partialSuccess\":{\"rejectedProfiles\":2}}"), -1, SEND_OK, "ok", 0, 0 },
	{ "not JSON", 200, JSON, BODY("{\"partialSuccess\":"), -1, SEND_OK, "ok", 0, 0 },
	{ "an empty object", 200, JSON, BODY("{}"), -1, SEND_OK, "ok", 0, 0 },

	/* rejected: the outcome is that of the status, the reason that of the code */
	{ "a code", 400, PROTO, BODY("\x08\x09"), -1, SEND_PERMANENT, "failed_precondition", 0, 0 },
	{ "a code that does not exist", 400, PROTO, BODY("\x08\x63"), -1, SEND_PERMANENT, "unknown",
	  0, 0 },
	{ "no code", 403, PROTO, BODY("\x12\x01x"), -1, SEND_PERMANENT, "permission_denied", 0, 0 },
	{ "a code in JSON", 503, JSON, BODY("{\"code\":14,\"message\":\"x\"}"), 7000, SEND_RETRY,
	  "unavailable", 0, 0 },
	{ "a page", 503, "text/html", BODY("<h1>too large</h1>"), -1, SEND_RETRY, "unavailable", 0,
	  0 },

	/* too large */
	{ "413", 413, NULL, BODY(""), -1, SEND_TOO_LARGE, "too_large", 0, 0 },
	{ "413 with a limit", 413, JSON,
	  BODY("{\"code\":8,\"message\":\"request larger than max_request_body_size: 50000\"}"), -1,
	  SEND_TOO_LARGE, "too_large", 0, 50000 },
	{ "Go's words", 400, JSON,
	  BODY("{\"code\":3,\"message\":\"http: request body too large\"}"), -1, SEND_TOO_LARGE,
	  "too_large", 0, 0 },
	{ "Go's words in protobuf", 400, PROTO,
	  BODY("\x08\x03\x12\x1chttp: request body too large"), -1, SEND_TOO_LARGE, "too_large", 0,
	  0 },
	{ "a limit behind a proxy", 429, JSON,
	  BODY("{\"code\":8,\"message\":\"received message larger than max (90000 vs. "
	       "50000)\"}"),
	  -1, SEND_TOO_LARGE, "too_large", 0, 50000 },
	{ "a time to wait", 429, JSON, BODY("{\"code\":8,\"message\":\"queue too large\"}"), 1000,
	  SEND_RETRY, "resource_exhausted", 0, 0 },
	{ "another status", 500, JSON, BODY("{\"code\":13,\"message\":\"too large\"}"), -1,
	  SEND_PERMANENT, "internal", 0, 0 },
};

static void answers_are_read_in_their_encoding(void **state)
{
	(void)state;
	const struct log log = { 0 };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *row = &rows[i];
		struct bytes body;
		bytes_init(&body, 1000);
		assert_true(bytes_add(&body, row->body.at, row->body.len));
		const struct http_result result = { .status = row->status,
						    .content_type = row->type,
						    .body = bytes_view(&body),
						    .retry_after_ms = row->retry_after_ms };
		struct send_result verdict = http_sender_judge(&result);
		otlp_answer_judge(&log, &result, 100, &verdict);
		if (verdict.outcome != row->outcome || strcmp(verdict.reason, row->reason) ||
		    verdict.rejected_profiles != row->rejected ||
		    verdict.stated_bytes != row->stated)
			fail_msg("%s: %d, %s, rejected %d, limit %d", row->what, verdict.outcome,
				 verdict.reason, (int)verdict.rejected_profiles,
				 (int)verdict.stated_bytes);
		bytes_fini(&body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(answers_are_read_in_their_encoding) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
