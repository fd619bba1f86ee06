/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include <errno.h>

#include "net/grpc/grpc_cause.h"

enum { DEADLINE_EXCEEDED = 4, UNAVAILABLE = 14, UNIMPLEMENTED = 12 };
#define LAST "connections to all backends failing; last error: "

/* What real servers cause is in tests/e2e/test_failures.py. */
static const struct row {
	int status;
	const char *message;
	bool connected;
	enum cause_kind reached, kind;
	int os_error; /* also of what is reached */
} rows[] = {
	{ UNAVAILABLE,
	  LAST "UNKNOWN: ipv4:10.0.0.1:1: Failed to connect to remote host: No route to host",
	  false, CAUSE_NONE, CAUSE_UNREACHABLE, EHOSTUNREACH },
	{ UNAVAILABLE, LAST "UNKNOWN: unix:/x: Failed to connect to remote host: Permission denied",
	  false, CAUSE_NONE, CAUSE_NO_CONNECTION, 0 },
	{ UNAVAILABLE, "DNS resolution failed for no.such: C-ares status is not ARES_SUCCESS",
	  false, CAUSE_NONE, CAUSE_UNRESOLVED, 0 },
	/* the handshake says why; without that, only that it failed */
	{ UNAVAILABLE, LAST "Ssl handshake failed: SSL_ERROR_SSL", false, CAUSE_EXPIRED,
	  CAUSE_EXPIRED, 0 },
	{ UNAVAILABLE, LAST "Ssl handshake failed: SSL_ERROR_SSL", false, CAUSE_NONE,
	  CAUSE_TLS_FAILED, 0 },
	{ UNAVAILABLE, LAST "Socket closed", false, CAUSE_TLS_CLIENT_CERTIFICATE,
	  CAUSE_TLS_CLIENT_CERTIFICATE, 0 },
	/* of another address, as ::1 of localhost */
	{ UNAVAILABLE, LAST "Failed to connect to remote host: Connection refused", false,
	  CAUSE_EXPIRED, CAUSE_EXPIRED, 0 },
	/* what is known better, or happened after the handshake */
	{ UNAVAILABLE, LAST "Peer name a is not in peer certificate", false, CAUSE_TLS_FAILED,
	  CAUSE_NAME_MISMATCH, 0 },
	{ UNAVAILABLE, "recvmsg:Connection reset by peer", true, CAUSE_EXPIRED, CAUSE_RESET,
	  ECONNRESET },
	/* of another address too, which got further */
	{ UNAVAILABLE, LAST "Failed to connect to remote host: Connection refused", false,
	  CAUSE_RESET, CAUSE_RESET, ECONNRESET },
	{ UNAVAILABLE, LAST "Failed to connect to remote host: No route to host", false,
	  CAUSE_CLOSED, CAUSE_CLOSED, 0 },
	{ UNAVAILABLE, LAST "recvmsg:Connection reset by peer", false, CAUSE_TLS_CLOSED,
	  CAUSE_TLS_CLOSED, ECONNRESET },
	{ UNAVAILABLE, "Socket closed", false, CAUSE_RESET, CAUSE_CLOSED, 0 },
	{ DEADLINE_EXCEEDED, "Deadline Exceeded", true, CAUSE_NONE, CAUSE_NO_RESPONSE, 0 },
	{ DEADLINE_EXCEEDED, "Deadline Exceeded", false, CAUSE_NONE, CAUSE_CONNECT_TIMEOUT, 0 },
	{ DEADLINE_EXCEEDED, "Deadline Exceeded", false, CAUSE_NAME_MISMATCH, CAUSE_NAME_MISMATCH,
	  0 },
	/* another version may use other words */
	{ UNAVAILABLE, "words that nobody knows", true, CAUSE_NONE, CAUSE_NONE, 0 },
	{ UNAVAILABLE, "", true, CAUSE_NONE, CAUSE_NONE, 0 },
};

static void a_message_of_the_core_has_a_cause(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *r = &rows[i];
		struct cause cause = grpc_cause_of(r->status, r->message, r->connected,
						   (struct cause){ r->reached, r->os_error });
		if (cause.kind != r->kind || cause.os_error != r->os_error)
			fail_msg("row %zu: cause %d, errno %d", i, cause.kind, cause.os_error);
	}
}

static void the_status_of_http_is_a_number_of_three_digits(void **state)
{
	static const char head[] = "Received http2 header with status: ";
	static const struct {
		const char *rest;
		int status;
	} cases[] = { { "404", 404 }, { "99", 0 },    { "1000", 0 },
		      { "-404", 0 },  { "words", 0 }, { "99999999999999999999", 0 } };
	char message[100];
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(message, sizeof message, "%s%s", head, cases[i].rest);
		assert_int_equal(grpc_cause_http_status(message), cases[i].status);
	}
	assert_int_equal(grpc_cause_http_status("status: 404"), 0);
}

static void every_cause_has_a_stage_and_a_text(void **state)
{
	(void)state;
	assert_null(cause_text(CAUSE_NONE));
	assert_null(cause_stage(CAUSE_NONE));
	for (int kind = CAUSE_NONE + 1; kind < CAUSE_KINDS; kind++) {
		assert_non_null(cause_text((enum cause_kind)kind));
		assert_non_null(cause_stage((enum cause_kind)kind));
	}
	assert_int_equal(cause_of_errno(EIO, CAUSE_CLOSED).kind, CAUSE_CLOSED);
	assert_int_equal(cause_of_errno(ENETUNREACH, CAUSE_CLOSED).kind, CAUSE_UNREACHABLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_of_the_core_has_a_cause),
		cmocka_unit_test(the_status_of_http_is_a_number_of_three_digits),
		cmocka_unit_test(every_cause_has_a_stage_and_a_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
