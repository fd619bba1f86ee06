/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_H2_BOUNDS_H
#define NET_H2_BOUNDS_H

#include "base/metrics.h"
#include "config/table.h"
#include "net/limit_report.h"

/*
 * The limits on what one client may cost. Every limit is on by default, is a key of the
 * configuration, and has a reason in otelcol_http2_server_closed_connections or
 * otelcol_http2_server_refused_connections. A connection that exceeds one of the first group gets
 * GOAWAY with ENHANCE_YOUR_CALM (RFC 9113, section 7) and is closed; other connections are not
 * affected.
 */
struct h2_limits {
	/* of one request: names, values and 32 for each (RFC 9113, section 6.5.2) */
	int64_t max_header_bytes;
	int64_t max_headers;       /* fields of one request */
	int64_t max_continuations; /* CONTINUATION frames of one header block */
	int64_t max_resets_per_second, max_settings_per_second, max_control_frames_per_second,
		max_errors_per_second;
	int64_t max_outbound_bytes; /* replies that one connection does not read */
	int64_t max_connections, max_connections_per_peer;
	struct duration handshake_timeout; /* from accept to the client's SETTINGS, TLS included */
	struct duration header_timeout;    /* from the first to the last byte of a header block */
	struct duration write_timeout;     /* without one byte of output read by the client */
	struct duration idle_timeout;      /* without a request */
	int64_t min_body_rate;             /* bytes per second, averaged since the headers */
};

extern const struct config_table h2_limits_table;
/* Only those on frames and responses, for servers that have the others as keys of their own. */
extern const struct config_table h2_frame_limits_table;

/* Why a connection was closed; the values of the metric's label are in bounds.c. */
enum h2_reason {
	H2_REASON_NONE,
	H2_HEADERS,
	H2_CONTINUATIONS,
	H2_STREAMS,
	H2_RESETS,
	H2_SETTINGS_FLOOD,
	H2_PINGS,
	H2_CONTROL_FRAMES,
	H2_OUTBOUND,
	H2_ERRORS,
	H2_HANDSHAKE_TIMEOUT,
	H2_HEADER_TIMEOUT,
	H2_BODY_RATE,
	H2_IDLE,
	H2_KEEPALIVE,
	H2_AGE,
	H2_PROTOCOL_ERROR,
	H2_HTTP1, /* the client speaks HTTP/1 */
	H2_MEMORY,
	H2_REASONS
};

/* Why a connection was not accepted. */
enum h2_refusal {
	H2_MAX_CONNECTIONS,
	H2_MAX_CONNECTIONS_PER_PEER,
	H2_NO_MEMORY,
	H2_REFUSALS,
	/* over its share of memory that is short; counted as H2_NO_MEMORY */
	H2_OVER_ITS_SHARE = H2_REFUSALS
};

/* The debug text of GOAWAY; that of grpc-go where clients react to it ("too_many_pings"). */
const char *h2_reason_text(enum h2_reason reason);

struct h2_counters {
	struct metric_series *open, *closed[H2_REASONS], *refused[H2_REFUSALS];
};

/* For a component's list of metrics. */
extern const struct metric h2_connections_metric, h2_closed_metric, h2_refused_metric;
#define H2_METRICS &h2_connections_metric, &h2_closed_metric, &h2_refused_metric
/* metrics may be NULL: nothing is recorded. */
void h2_counters_init(struct h2_counters *counters, struct metrics *metrics, const char *receiver);
/* Adds the limits on frames; their keys are in `section` ("limits."). */
void h2_counters_report(const struct h2_counters *counters, struct limit_report *report,
			const struct h2_limits *limits, const char *section);

enum { H2_BURST = 10 }; /* the size of a bucket, as a multiple of its rate */

/* A token bucket that starts full; zeroed memory is a valid one. */
struct h2_bucket {
	int64_t spent; /* in thousandths */
	uint64_t at;   /* clock_now of the last change */
};

/* Takes one token from a bucket of size `burst` that refills with `rate` tokens per second. False:
 * it is empty. */
bool h2_bucket_take(struct h2_bucket *bucket, uint64_t now, int64_t rate, int64_t burst);
/* Returns tokens, up to a full bucket. */
void h2_bucket_earn(struct h2_bucket *bucket, int64_t tokens);

#endif
