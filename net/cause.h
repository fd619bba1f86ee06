/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_CAUSE_H
#define NET_CAUSE_H

/*
 * Why a destination did not answer, or did not take what it was sent: a closed set, with words of
 * ours. What a peer or a library writes is only compared with patterns, and never repeated.
 */
enum cause_kind {
	CAUSE_NONE, /* the status of the answer says it, or the cause is not known */
	/* resolve */
	CAUSE_UNRESOLVED,
	/* connect */
	CAUSE_REFUSED,
	CAUSE_UNREACHABLE,
	CAUSE_CONNECT_TIMEOUT,
	CAUSE_NO_CONNECTION,
	CAUSE_PROXY,
	/* tls_handshake */
	CAUSE_NOT_TLS,
	CAUSE_TLS_TIMEOUT,
	CAUSE_TLS_VERSION,
	CAUSE_TLS_REJECTED, /* by an alert that has no row of its own */
	CAUSE_TLS_NAME,
	CAUSE_TLS_NO_HTTP1,
	CAUSE_TLS_NO_HTTP2,
	CAUSE_TLS_CLIENT_CERTIFICATE,
	CAUSE_TLS_CLOSED,
	CAUSE_TLS_FAILED,
	/* tls_verify: of the server's certificate */
	CAUSE_EXPIRED,
	CAUSE_NOT_YET_VALID,
	CAUSE_UNKNOWN_AUTHORITY,
	CAUSE_NAME_MISMATCH,
	CAUSE_REVOKED,
	CAUSE_CERTIFICATE,
	/* authenticate */
	CAUSE_SASL_MECHANISM,
	CAUSE_SASL_REJECTED,
	/* exchange */
	CAUSE_HTTP1,
	CAUSE_NOT_GRPC,
	CAUSE_NOT_HTTP1,
	CAUSE_RESET,
	CAUSE_CLOSED,
	CAUSE_NO_RESPONSE,
	CAUSE_INCOMPLETE,
	/* broker: what one of Kafka answers */
	CAUSE_TOPIC_MISSING,
	CAUSE_TOPIC_INVALID,
	CAUSE_TOPIC_DENIED,
	CAUSE_GROUP_DENIED,
	CAUSE_CLUSTER_DENIED,
	CAUSE_MESSAGE_SIZE,
	CAUSE_RECORD_REJECTED,
	CAUSE_NOT_SUPPORTED,
	CAUSE_REPLICAS,
	CAUSE_NO_LEADER,
	CAUSE_NO_COORDINATOR,
	CAUSE_BROKER_DISK,
	CAUSE_BROKER_QUOTA,
	CAUSE_SESSION_ENDED,
	CAUSE_KINDS
};

struct cause {
	enum cause_kind kind;
	int os_error; /* errno; 0: none */
};

/* "connection refused"; NULL for CAUSE_NONE. */
const char *cause_text(enum cause_kind kind);
/* "connect"; NULL for CAUSE_NONE. */
const char *cause_stage(enum cause_kind kind);
/* Of a connection that could not be opened, or that broke. `otherwise`: for other numbers. */
struct cause cause_of_errno(int number, enum cause_kind otherwise);

#endif
