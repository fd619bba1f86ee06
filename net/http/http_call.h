/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_HTTP_CALL_H
#define NET_HTTP_HTTP_CALL_H

#include "base/bytes.h"
#include "base/error.h"
#include "profile/request.h"

/*
 * One HTTP request from start to end on the calling thread. The program's own commands use it;
 * components use net/http/http_client.h. Redirects are not followed; only http and https are
 * spoken.
 */
struct http_call {
	const char *url;
	const char *content_type;        /* with a body; NULL: application/octet-stream */
	const struct metadatum *headers; /* more of them; ends with name == NULL; may be NULL */
	struct view body;                /* at == NULL: GET, else POST */
	uint64_t timeout_ns;             /* for everything; 0: none */
};

/*
 * True when there was a reply, whatever its status; its body is appended to `out`, whose maximum
 * bounds it. Else ERROR_CONFIG (a bad URL), ERROR_BUSY (no connection, too late) or
 * ERROR_TOO_LARGE.
 */
bool http_call(const struct http_call *call, int *status, struct bytes *out, struct error *err);

#endif
