/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_H2_RPC_STATUS_H
#define NET_H2_RPC_STATUS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* google.rpc.Status: how gRPC, and OTLP over HTTP, report an error. [any thread] */

enum {
	RPC_OK = 0, /* grpc/doc/statuscodes.md */
	RPC_CANCELLED_STATUS = 1,
	RPC_INVALID_ARGUMENT = 3,
	RPC_DEADLINE_EXCEEDED = 4,
	RPC_NOT_FOUND = 5,
	RPC_PERMISSION_DENIED = 7,
	RPC_RESOURCE_EXHAUSTED = 8,
	RPC_UNIMPLEMENTED = 12,
	RPC_INTERNAL = 13,
	RPC_UNAVAILABLE = 14,
	RPC_UNAUTHENTICATED = 16
};

/* The status code of an error: 3, 8, 12, 16, 7, 14, 13. */
int rpc_status(const struct error *err);

/* The most that a status takes besides its message. */
enum { RPC_STATUS_BYTES = 128 };

/* Writes the message as protobuf, with RetryInfo if retry_ms is not negative, and returns its
 * length. `room` must suffice. */
size_t rpc_status_pack(int code, const char *message, int64_t retry_ms, uint8_t *out, size_t room);

#endif
