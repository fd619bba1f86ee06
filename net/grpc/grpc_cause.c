/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_cause.h"

#include <errno.h>
#include <grpc/status.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define HTTP_STATUS "Received http2 header with status: "

/* In core's words (1.51); the first one that is in the message counts. */
static const struct {
	const char *pattern;
	struct cause cause;
} patterns[] = {
	{ "DNS resolution failed", { CAUSE_UNRESOLVED, 0 } },
	{ "HTTP proxy returned", { CAUSE_PROXY, 0 } },
	{ "is not in peer certificate", { CAUSE_NAME_MISMATCH, 0 } },
	{ "Cannot check peer: missing selected ALPN", { CAUSE_TLS_NO_HTTP2, 0 } },
	{ "Cannot check peer: invalid ALPN", { CAUSE_TLS_NO_HTTP2, 0 } },
	{ "http1.x server", { CAUSE_HTTP1, 0 } },
	{ HTTP_STATUS, { CAUSE_NOT_GRPC, 0 } },
	{ "Failed parsing HTTP/2", { CAUSE_NOT_GRPC, 0 } },
	{ "Expected SETTINGS frame", { CAUSE_NOT_GRPC, 0 } },
	{ "before receiving SETTINGS", { CAUSE_NOT_GRPC, 0 } },
	{ "Did not receive HTTP/2 settings", { CAUSE_NOT_GRPC, 0 } },
	{ "Handshake timed out", { CAUSE_TLS_TIMEOUT, 0 } },
	{ "andshak", { CAUSE_TLS_FAILED, 0 } },
	{ "Connection refused", { CAUSE_REFUSED, ECONNREFUSED } },
	{ "Connection reset by peer", { CAUSE_RESET, ECONNRESET } },
	{ "Broken pipe", { CAUSE_RESET, EPIPE } },
	{ "Connection timed out", { CAUSE_CONNECT_TIMEOUT, ETIMEDOUT } },
	{ "connect() timed out", { CAUSE_CONNECT_TIMEOUT, ETIMEDOUT } },
	{ "No route to host", { CAUSE_UNREACHABLE, EHOSTUNREACH } },
	{ "Network is unreachable", { CAUSE_UNREACHABLE, ENETUNREACH } },
	{ "No such file or directory", { CAUSE_NO_CONNECTION, ENOENT } },
	{ "Socket closed", { CAUSE_CLOSED, 0 } },
	{ "Endpoint read failed", { CAUSE_CLOSED, 0 } },
	{ "GOAWAY received", { CAUSE_CLOSED, 0 } },
	{ "Transport closed", { CAUSE_CLOSED, 0 } },
	{ "Failed to connect to remote host", { CAUSE_NO_CONNECTION, 0 } },
};

static struct cause find(const char *message)
{
	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
		if (strstr(message, patterns[i].pattern))
			return patterns[i].cause;
	return (struct cause){ CAUSE_NONE, 0 };
}

/* Of several addresses, core's message has the last one only, which may have no server at all. A
 * server may also reject a handshake, or a client's certificate, by an alert before it closes the
 * connection. */
static bool got_further(enum cause_kind reached, enum cause_kind kind)
{
	switch (kind) {
	case CAUSE_NONE:
	case CAUSE_REFUSED:
	case CAUSE_UNREACHABLE:
	case CAUSE_NO_CONNECTION:
	case CAUSE_CONNECT_TIMEOUT:
		return true;
	case CAUSE_TLS_FAILED:
	case CAUSE_RESET:
	case CAUSE_CLOSED:
		return reached != CAUSE_RESET && reached != CAUSE_CLOSED;
	default:
		return false;
	}
}

struct cause grpc_cause_of(int status, const char *message, bool connected, struct cause reached)
{
	struct cause cause = find(message);
	if (status == GRPC_STATUS_DEADLINE_EXCEEDED)
		cause = (struct cause){ connected ? CAUSE_NO_RESPONSE : CAUSE_CONNECT_TIMEOUT, 0 };
	bool further = reached.kind && !connected && got_further(reached.kind, cause.kind);
	return further ? reached : cause;
}

int grpc_cause_http_status(const char *message)
{
	const char *found = strstr(message, HTTP_STATUS);
	int status = found ? (int)strtol(found + strlen(HTTP_STATUS), NULL, 10) : 0;
	return status >= 100 && status <= 999 ? status : 0;
}
