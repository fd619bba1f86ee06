/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "net/http/http_internal.h"

#define EVERY_NS UINT64_C(60000000000)

static void add(struct http_report *report, struct metric_series *series, const char *setting,
		const char *format, double value)
{
	struct http_limit *limit = &report->at[report->count++];
	*limit = (struct http_limit){ .series = series, .setting = setting };
	snprintf(limit->value, sizeof limit->value, format, value);
}

static double seconds(struct duration d)
{
	return (double)d.ns / 1e9;
}

static void add_http_2(struct http_server *server, struct metrics *metrics)
{
	const struct http_server_config *c = server->config;
	const struct h2_limits *l = &c->http2_limits;
	struct http_report *r = &server->report;
	struct h2_counters n;
	h2_counters_init(&n, metrics, server->log->component_id);
	add(r, n.closed[H2_HEADERS], "max_header_bytes, max_header_count", "%.0f bytes",
	    (double)server->header_limits.total);
	add(r, n.closed[H2_HANDSHAKE_TIMEOUT], "tls_handshake_timeout", "%g s",
	    seconds(c->tls_handshake_timeout));
	add(r, n.closed[H2_HEADER_TIMEOUT], "read_header_timeout", "%g s",
	    seconds(c->read_header_timeout));
	add(r, n.closed[H2_OUTBOUND], "write_timeout, http2_limits.max_outbound_bytes", "%g s",
	    seconds(c->write_timeout));
	add(r, n.closed[H2_CONTINUATIONS], "http2_limits.max_continuations", "%.0f",
	    (double)l->max_continuations);
	add(r, n.closed[H2_RESETS], "http2_limits.max_resets_per_second", "%.0f",
	    (double)l->max_resets_per_second);
	add(r, n.closed[H2_SETTINGS_FLOOD], "http2_limits.max_settings_per_second", "%.0f",
	    (double)l->max_settings_per_second);
	add(r, n.closed[H2_CONTROL_FRAMES], "http2_limits.max_control_frames_per_second", "%.0f",
	    (double)l->max_control_frames_per_second);
	add(r, n.closed[H2_ERRORS], "http2_limits.max_errors_per_second", "%.0f",
	    (double)l->max_errors_per_second);
}

void http_report_init(struct http_server *server, struct metrics *metrics)
{
	const struct http_server_config *c = server->config;
	struct http_report *r = &server->report;
	struct metric_series **ended = server->deadlines.count;
	add(r, server->over[HTTP_OVER_LIMIT], "max_connections", "%.0f",
	    (double)c->max_connections);
	add(r, server->over[HTTP_OVER_PEER_LIMIT], "max_connections_per_peer", "%.0f",
	    (double)c->max_connections_per_peer);
	add(r, ended[HTTP_PHASE_HANDSHAKE], "tls_handshake_timeout", "%g s",
	    seconds(c->tls_handshake_timeout));
	add(r, ended[HTTP_PHASE_HEADER], "read_header_timeout", "%g s",
	    seconds(c->read_header_timeout));
	add(r, ended[HTTP_PHASE_BODY], "read_timeout", "%g s", seconds(c->read_timeout));
	add(r, server->deadlines.slow, "min_body_rate", "%.0f bytes/s", (double)c->min_body_rate);
	add(r, ended[HTTP_PHASE_WRITE], "write_timeout", "%g s", seconds(c->write_timeout));
	if (server->h2)
		add_http_2(server, metrics);
}

void http_report_pass(struct http_server *server, uint64_t now)
{
	struct http_report *r = &server->report;
	bool any = false;
	if (now < r->next)
		return;
	for (size_t i = 0; i < r->count; i++) {
		struct http_limit *limit = &r->at[i];
		int64_t count = metric_get(limit->series), more = count - limit->reported;
		if (!more)
			continue;
		any = true;
		limit->reported = count;
		log_warn(server->log, "Connections exceeded a limit and were closed",
			 log_text("setting", limit->setting), log_text("value", limit->value),
			 log_number("connections", more));
	}
	if (any)
		r->next = now + EVERY_NS;
}
