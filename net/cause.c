/* SPDX-License-Identifier: Apache-2.0 */
#include "net/cause.h"

#include <errno.h>
#include <stddef.h>

#define RESOLVE "resolve"
#define CONNECT "connect"
#define HANDSHAKE "tls_handshake"
#define VERIFY "tls_verify"
#define AUTHENTICATE "authenticate"
#define EXCHANGE "exchange"
#define BROKER "broker"

static const struct {
	const char *stage, *text;
} rows[CAUSE_KINDS] = {
	[CAUSE_UNRESOLVED] = { RESOLVE, "name not resolved" },
	[CAUSE_REFUSED] = { CONNECT, "connection refused" },
	[CAUSE_UNREACHABLE] = { CONNECT, "host or network unreachable" },
	[CAUSE_CONNECT_TIMEOUT] = { CONNECT, "connection timed out" },
	[CAUSE_NO_CONNECTION] = { CONNECT, "no connection" },
	[CAUSE_PROXY] = { CONNECT, "proxy failed" },
	[CAUSE_NOT_TLS] = { HANDSHAKE, "not a TLS server" },
	[CAUSE_TLS_TIMEOUT] = { HANDSHAKE, "TLS handshake timed out" },
	[CAUSE_TLS_VERSION] = { HANDSHAKE, "no common TLS version or cipher" },
	[CAUSE_TLS_REJECTED] = { HANDSHAKE, "TLS handshake rejected by the server" },
	[CAUSE_TLS_NAME] = { HANDSHAKE, "name unknown to the TLS server" },
	[CAUSE_TLS_NO_HTTP1] = { HANDSHAKE, "TLS server without HTTP/1.1" },
	[CAUSE_TLS_NO_HTTP2] = { HANDSHAKE, "TLS server without HTTP/2" },
	[CAUSE_TLS_CLIENT_CERTIFICATE] = { HANDSHAKE, "client certificate missing or rejected" },
	[CAUSE_TLS_CLOSED] = { HANDSHAKE, "connection closed in the TLS handshake" },
	[CAUSE_TLS_FAILED] = { HANDSHAKE, "TLS handshake failed" },
	[CAUSE_EXPIRED] = { VERIFY, "certificate expired" },
	[CAUSE_NOT_YET_VALID] = { VERIFY, "certificate not valid yet" },
	[CAUSE_UNKNOWN_AUTHORITY] = { VERIFY, "unknown authority" },
	[CAUSE_NAME_MISMATCH] = { VERIFY, "name mismatch" },
	[CAUSE_REVOKED] = { VERIFY, "certificate revoked" },
	[CAUSE_CERTIFICATE] = { VERIFY, "certificate not acceptable" },
	[CAUSE_SASL_MECHANISM] = { AUTHENTICATE, "SASL mechanism not offered" },
	[CAUSE_SASL_REJECTED] = { AUTHENTICATE, "user or password rejected" },
	[CAUSE_HTTP1] = { EXCHANGE, "HTTP/1 where gRPC was expected" },
	[CAUSE_NOT_GRPC] = { EXCHANGE, "not a gRPC server" },
	[CAUSE_NOT_HTTP1] = { EXCHANGE, "not an HTTP/1 server" },
	[CAUSE_RESET] = { EXCHANGE, "connection reset" },
	[CAUSE_CLOSED] = { EXCHANGE, "connection closed without a response" },
	[CAUSE_NO_RESPONSE] = { EXCHANGE, "no response within the timeout" },
	[CAUSE_INCOMPLETE] = { EXCHANGE, "response incomplete" },
	[CAUSE_TOPIC_MISSING] = { BROKER, "topic does not exist" },
	[CAUSE_TOPIC_INVALID] = { BROKER, "topic name not valid" },
	[CAUSE_TOPIC_DENIED] = { BROKER, "topic not permitted for the user" },
	[CAUSE_GROUP_DENIED] = { BROKER, "group not permitted for the user" },
	[CAUSE_CLUSTER_DENIED] = { BROKER, "cluster not permitted for the user" },
	[CAUSE_MESSAGE_SIZE] = { BROKER, "message too large for the broker" },
	[CAUSE_RECORD_REJECTED] = { BROKER, "record rejected by the broker" },
	[CAUSE_NOT_SUPPORTED] = { BROKER, "not supported by the broker" },
	[CAUSE_REPLICAS] = { BROKER, "not enough in-sync replicas" },
	[CAUSE_NO_LEADER] = { BROKER, "partition without a leader" },
	[CAUSE_NO_COORDINATOR] = { BROKER, "coordinator not available" },
	[CAUSE_BROKER_DISK] = { BROKER, "disk of the broker failed" },
	[CAUSE_BROKER_QUOTA] = { BROKER, "quota of the broker exceeded" },
	[CAUSE_SESSION_ENDED] = { BROKER, "producer session ended" },
};

const char *cause_text(enum cause_kind kind)
{
	return rows[kind].text;
}

const char *cause_stage(enum cause_kind kind)
{
	return rows[kind].stage;
}

struct cause cause_of_errno(int number, enum cause_kind otherwise)
{
	switch (number) {
	case ECONNREFUSED:
		return (struct cause){ CAUSE_REFUSED, number };
	case ECONNRESET:
	case EPIPE:
		return (struct cause){ CAUSE_RESET, number };
	case ETIMEDOUT:
		return (struct cause){ CAUSE_CONNECT_TIMEOUT, number };
	case EHOSTUNREACH:
	case ENETUNREACH:
		return (struct cause){ CAUSE_UNREACHABLE, number };
	default:
		return (struct cause){ otherwise, number };
	}
}
