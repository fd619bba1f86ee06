/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_CONNECT_H
#define NET_HTTP_CONNECT_H

#include "net/http/http_server.h"

/*
 * Replies of the Connect protocol (connectrpc.com, "Protocol reference", unary responses). An error
 * is the JSON object {"code", "message"} with an HTTP status.
 *
 * The status is that of the error's kind (http_status_of). For ERROR_TOO_LARGE the code is
 * invalid_argument although gRPC would say resource_exhausted: clients repeat requests that failed
 * with the latter.
 */
const char *connect_code(const struct error *err);

/* Replies with the error, and with Retry-After for ERROR_BUSY. status 0: that of the kind. */
void connect_refuse(struct http_exchange *exchange, int status, const struct error *err);

#endif
