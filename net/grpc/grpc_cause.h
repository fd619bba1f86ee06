/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_GRPC_GRPC_CAUSE_H
#define NET_GRPC_GRPC_CAUSE_H

#include <stdbool.h>

#include "net/cause.h"

/*
 * Why a call has no answer, from the status message of the gRPC C core. The message must be core's
 * own. It is compared with a table of patterns and not repeated. What no pattern knows is only a
 * status, which is safe.
 *
 * connected: the channel has a connection. reached: how far a connection got
 * (grpc_allowance_reached), where core says less, or has the message of another address.
 */
struct cause grpc_cause_of(int status, const char *message, bool connected, struct cause reached);

/* The HTTP status of an answer over HTTP/2 that is not gRPC; 0: it is gRPC. Core writes the
 * message, with this number in it. */
int grpc_cause_http_status(const char *message);

#endif
