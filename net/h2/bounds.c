/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2/bounds.h"

/* Limits on the frames of a connection. */
/* clang-format off */
#define FRAME_ROWS \
	CONFIG_ROW(struct h2_limits, max_continuations, .key = "max_continuations", .def = "8", \
		   .limited = true, .min = 1, .max = INT32_MAX, \
		   .help = "Maximum number of CONTINUATION frames in one header block."), \
	CONFIG_ROW(struct h2_limits, max_resets_per_second, .key = "max_resets_per_second", \
		   .def = "20", .limited = true, .min = 1, .max = INT32_MAX, \
		   .help = "Maximum rate of RST_STREAM frames from one connection. Bursts of " \
			   "ten times this number are permitted."), \
	CONFIG_ROW(struct h2_limits, max_settings_per_second, .key = "max_settings_per_second", \
		   .def = "2", .limited = true, .min = 1, .max = INT32_MAX, \
		   .help = "Maximum rate of SETTINGS frames from one connection. Bursts of ten " \
			   "times this number are permitted."), \
	CONFIG_ROW(struct h2_limits, max_control_frames_per_second, \
		   .key = "max_control_frames_per_second", .def = "20", .limited = true, .min = 1, \
		   .max = INT32_MAX, \
		   .help = "Maximum rate of frames from one connection that carry no request " \
			   "data. DATA frames of fewer than 64 bytes and TLS records of fewer " \
			   "than 5 bytes count too. For each answered request six frames are " \
			   "not counted, for each DATA frame of 1 KiB or more one frame, and for " \
			   "each such frame of a response two. " \
			   "Bursts of ten times this number are permitted."), \
	CONFIG_ROW(struct h2_limits, max_errors_per_second, .key = "max_errors_per_second", \
		   .def = "100", .limited = true, .min = 1, .max = INT32_MAX, \
		   .help = "Maximum rate of requests on one connection that fail with an error. " \
			   "Refusals with a retry hint do not count. Bursts of ten times this " \
			   "number are permitted."), \
	CONFIG_ROW(struct h2_limits, max_outbound_bytes, .key = "max_outbound_bytes", \
		   .def = "262144", .limited = true, .min = 1, .max = INT32_MAX, .unit = "By", \
		   .help = "Maximum size of the responses that are waiting for the client to " \
			   "read them.")
/* clang-format on */

static const struct config_row rows[] = {
	CONFIG_ROW(struct h2_limits, max_header_bytes, .key = "max_header_bytes", .def = "16384",
		   .limited = true, .min = 1, .max = INT32_MAX, .unit = "By",
		   .help = "Maximum size of the decompressed headers of one request. A request "
			   "that exceeds it fails with RESOURCE_EXHAUSTED; four times this size "
			   "closes the connection."),
	CONFIG_ROW(struct h2_limits, max_headers, .key = "max_headers", .def = "128",
		   .limited = true, .min = 1, .max = INT32_MAX,
		   .help = "Maximum number of header fields in one request. A request that "
			   "exceeds it fails with RESOURCE_EXHAUSTED; four times this number "
			   "closes the connection."),
	FRAME_ROWS,
	CONFIG_ROW(struct h2_limits, max_connections, .key = "max_connections", .def = "20000",
		   .limited = true, .min = 1, .max = INT32_MAX,
		   .help = "Maximum number of open connections. Further connections are closed "
			   "immediately."),
	CONFIG_ROW(struct h2_limits, max_connections_per_peer, .key = "max_connections_per_peer",
		   .def = "1024", .limited = true, .min = 1, .max = INT32_MAX,
		   .help = "Maximum number of open connections from one IPv4 address or IPv6 "
			   "/64 network."),
	CONFIG_ROW(struct h2_limits, handshake_timeout, .key = "handshake_timeout", .def = "10s",
		   .help = "Maximum time from the connection to the client's SETTINGS frame, "
			   "including the TLS handshake."),
	CONFIG_ROW(struct h2_limits, header_timeout, .key = "header_timeout", .def = "10s",
		   .help = "Maximum time from the first to the last byte of a request's "
			   "headers."),
	CONFIG_ROW(struct h2_limits, write_timeout, .key = "write_timeout", .def = "30s",
		   .help = "Maximum time that the client may go without reading any of a "
			   "response."),
	CONFIG_ROW(struct h2_limits, idle_timeout, .key = "idle_timeout", .def = "30m",
		   .help = "Connections without requests are closed after this time. "
			   "`max_connection_idle` under `keepalive` overrides it."),
	CONFIG_ROW(struct h2_limits, min_body_rate, .key = "min_body_rate", .def = "512",
		   .unit = "By/s", .limited = true, .min = 0, .max = INT32_MAX,
		   .help = "Minimum average rate of a request's body since its headers, "
			   "enforced from the tenth second on. 0: no minimum."),
	{ 0 }
};

const struct config_table h2_limits_table = { sizeof(struct h2_limits), rows };

static const struct config_row frame_rows[] = { FRAME_ROWS, { 0 } };

const struct config_table h2_frame_limits_table = { sizeof(struct h2_limits), frame_rows };

const struct metric h2_connections_metric = { "otelcol_http2_server_open_connections", METRIC_GAUGE,
					      "{connections}",
					      "Open connections of an HTTP/2 "
					      "server." };
const struct metric h2_closed_metric = {
	"otelcol_http2_server_closed_connections", METRIC_COUNTER, "{connections}",
	"Connections that the HTTP/2 server closed, by reason: the limit that the client "
	"exceeded (headers, continuations, streams, resets, settings, pings, control_frames, "
	"outbound, errors, handshake_timeout, header_timeout, body_rate), idle, keepalive, age, "
	"protocol_error, http1, memory."
};
const struct metric h2_refused_metric = {
	"otelcol_http2_server_refused_connections", METRIC_COUNTER, "{connections}",
	"Connections that the HTTP/2 server closed immediately after accepting them, by reason: "
	"max_connections, max_connections_per_peer, memory."
};

static const char *const reasons[H2_REASONS] = {
	[H2_REASON_NONE] = "none",
	[H2_HEADERS] = "headers",
	[H2_CONTINUATIONS] = "continuations",
	[H2_STREAMS] = "streams",
	[H2_RESETS] = "resets",
	[H2_SETTINGS_FLOOD] = "settings",
	[H2_PINGS] = "pings",
	[H2_CONTROL_FRAMES] = "control_frames",
	[H2_OUTBOUND] = "outbound",
	[H2_ERRORS] = "errors",
	[H2_HANDSHAKE_TIMEOUT] = "handshake_timeout",
	[H2_HEADER_TIMEOUT] = "header_timeout",
	[H2_BODY_RATE] = "body_rate",
	[H2_IDLE] = "idle",
	[H2_KEEPALIVE] = "keepalive",
	[H2_AGE] = "age",
	[H2_PROTOCOL_ERROR] = "protocol_error",
	[H2_HTTP1] = "http1",
	[H2_MEMORY] = "memory",
};

static const char *const refusals[H2_REFUSALS] = {
	[H2_MAX_CONNECTIONS] = "max_connections",
	[H2_MAX_CONNECTIONS_PER_PEER] = "max_connections_per_peer",
	[H2_NO_MEMORY] = "memory",
};

const char *h2_reason_text(enum h2_reason reason)
{
	if (reason == H2_PINGS)
		return "too_many_pings";
	return reason == H2_REASON_NONE ? "shutdown" : reasons[reason];
}

static struct metric_series *series_of(struct metrics *metrics, const struct metric *metric,
				       const char *receiver, const char *reason)
{
	static struct metric_series nowhere;
	if (!metrics)
		return &nowhere;
	return metrics_series(metrics, metric,
			      (struct metric_label[]){ { "receiver", receiver },
						       { reason ? "reason" : NULL, reason },
						       { NULL, NULL } });
}

void h2_counters_init(struct h2_counters *c, struct metrics *metrics, const char *receiver)
{
	c->open = series_of(metrics, &h2_connections_metric, receiver, NULL);
	for (int i = H2_REASON_NONE + 1; i < H2_REASONS; i++)
		c->closed[i] = series_of(metrics, &h2_closed_metric, receiver, reasons[i]);
	for (int i = 0; i < H2_REFUSALS; i++)
		c->refused[i] = series_of(metrics, &h2_refused_metric, receiver, refusals[i]);
}

void h2_counters_report(const struct h2_counters *c, struct limit_report *r,
			const struct h2_limits *l, const char *section)
{
	limit_report_number(r, c->closed[H2_CONTINUATIONS], section, "max_continuations",
			    l->max_continuations, "");
	limit_report_number(r, c->closed[H2_RESETS], section, "max_resets_per_second",
			    l->max_resets_per_second, "");
	limit_report_number(r, c->closed[H2_SETTINGS_FLOOD], section, "max_settings_per_second",
			    l->max_settings_per_second, "");
	limit_report_number(r, c->closed[H2_CONTROL_FRAMES], section,
			    "max_control_frames_per_second", l->max_control_frames_per_second, "");
	limit_report_number(r, c->closed[H2_ERRORS], section, "max_errors_per_second",
			    l->max_errors_per_second, "");
}

bool h2_bucket_take(struct h2_bucket *b, uint64_t now, int64_t rate, int64_t burst)
{
	uint64_t elapsed_ms = now > b->at ? (now - b->at) / 1000000 : 0;
	if (elapsed_ms > 0) {
		int64_t earned = elapsed_ms > 3600000 ? INT64_MAX / 2 : (int64_t)elapsed_ms * rate;
		b->spent = earned > b->spent ? 0 : b->spent - earned;
		b->at += elapsed_ms * 1000000;
	}
	if (b->spent + 1000 > burst * 1000)
		return false;
	b->spent += 1000;
	return true;
}

void h2_bucket_earn(struct h2_bucket *b, int64_t tokens)
{
	b->spent -= tokens * 1000;
	if (b->spent < 0)
		b->spent = 0;
}
