/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_internal.h"

static void add_http_2(struct http_server *server, struct metrics *metrics)
{
	const struct http_server_config *c = server->config;
	struct limit_report *r = &server->report;
	struct h2_counters n;
	h2_counters_init(&n, metrics, server->log->component_id);
	h2_counters_report(&n, r, &c->http2_limits, "http2_limits.");
	limit_report_number(r, n.closed[H2_HEADERS], "", "max_header_bytes, max_header_count",
			    (int64_t)server->header_limits.total, " bytes");
	limit_report_time(r, n.closed[H2_HANDSHAKE_TIMEOUT], "", "tls_handshake_timeout",
			  c->tls_handshake_timeout);
	limit_report_time(r, n.closed[H2_HEADER_TIMEOUT], "", "read_header_timeout",
			  c->read_header_timeout);
	limit_report_time(r, n.closed[H2_OUTBOUND], "",
			  "write_timeout, http2_limits.max_outbound_bytes", c->write_timeout);
}

void http_report_init(struct http_server *server, struct metrics *metrics)
{
	const struct http_server_config *c = server->config;
	struct limit_report *r = &server->report;
	struct metric_series **ended = server->deadlines.count;
	limit_report_number(r, server->over[HTTP_OVER_LIMIT], "", "max_connections",
			    c->max_connections, "");
	limit_report_number(r, server->over[HTTP_OVER_PEER_LIMIT], "", "max_connections_per_peer",
			    c->max_connections_per_peer, "");
	limit_report_time(r, ended[HTTP_PHASE_HANDSHAKE], "", "tls_handshake_timeout",
			  c->tls_handshake_timeout);
	limit_report_time(r, ended[HTTP_PHASE_HEADER], "", "read_header_timeout",
			  c->read_header_timeout);
	limit_report_time(r, ended[HTTP_PHASE_BODY], "", "read_timeout", c->read_timeout);
	limit_report_number(r, server->deadlines.slow, "", "min_body_rate", c->min_body_rate,
			    " bytes/s");
	limit_report_time(r, ended[HTTP_PHASE_WRITE], "", "write_timeout", c->write_timeout);
	if (server->h2)
		add_http_2(server, metrics);
}
