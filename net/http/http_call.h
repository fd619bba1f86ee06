/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_HTTP_CALL_H
#define NET_HTTP_HTTP_CALL_H

#include "base/bytes.h"
#include "base/error.h"
#include "profile/request.h"

/* One complete HTTP request on the calling thread. The program's own commands use it; components
 * use net/http/http_client.h. Redirects are not followed. Only http and https are supported. */
struct http_call {
	const char *url;
	const char *content_type; /* for a body; NULL: application/octet-stream */
	/* additional headers; ends with name == NULL; may be NULL */
	const struct metadatum *headers;
	struct view body;    /* at == NULL: GET, else POST */
	uint64_t timeout_ns; /* for the whole request; 0: none */
};

/* True if there was a reply, regardless of its status. Its body is appended to `out`, whose maximum
 * limits it. Otherwise ERROR_CONFIG (invalid URL), ERROR_BUSY (no connection, or the timeout) or
 * ERROR_TOO_LARGE. */
bool http_call(const struct http_call *call, int *status, struct bytes *out, struct error *err);

#endif
