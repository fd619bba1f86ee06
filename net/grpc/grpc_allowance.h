/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_GRPC_GRPC_ALLOWANCE_H
#define NET_GRPC_GRPC_ALLOWANCE_H

#include <grpc/grpc.h>
#include <stddef.h>

#include "base/error.h"

/*
 * How many bytes a destination may send. [any thread]
 *
 * The gRPC C core compares a message with its limit when the whole of it has arrived, parses an
 * incomplete header from its start again with each frame, however long it becomes, and reads on
 * while there is something to read, so that a destination that floods one connection stalls all
 * others. So each byte that a client's connections receive is taken from an allowance, and each
 * reply adds to it. It bounds memory, and CPU by its square. When nothing is left, reading fails
 * (ECONNRESET), which closes the connection; for GRPC_ALLOWANCE_PAUSE_NS no new one is opened, so
 * that core's own back-off applies.
 *
 * The bytes are counted where core reads them: the program's own `recvmsg` stands in front of the C
 * library's, for core alone has sockets that were registered. Core registers them through its
 * socket mutator, whose layout is not in its public headers; it is that of 1.51 (grpc_allowance_new
 * refuses any other version).
 */
struct grpc_allowance;

#define GRPC_ALLOWANCE_MAX (1 << 17)   /* and the shares of what is in flight */
#define GRPC_ALLOWANCE_REPLY (1 << 15) /* what a reply adds: headers, message and trailers */
/* of a request, for what acknowledges it: a WINDOW_UPDATE for some 16 KiB */
#define GRPC_ALLOWANCE_SHARE 256
#define GRPC_ALLOWANCE_TICK 32 /* for pings between calls */
#define GRPC_ALLOWANCE_PAUSE_NS (UINT64_C(10) * 1000000000)

struct grpc_allowance *grpc_allowance_new(struct error *err);
/* Channels that were made with the argument keep their own reference. */
void grpc_allowance_unref(struct grpc_allowance **allowance);

/* For the arguments of a channel: its connections share the allowance. Valid as long as the
 * caller's reference. */
grpc_arg grpc_allowance_argument(struct grpc_allowance *allowance);
/* Around each call. answered: the destination made the status. */
void grpc_allowance_begin(struct grpc_allowance *allowance, size_t request_bytes);
void grpc_allowance_end(struct grpc_allowance *allowance, size_t request_bytes, bool answered);
/* Every half second. */
void grpc_allowance_tick(struct grpc_allowance *allowance);
/* How often it was used up since grpc_allowance_new. */
unsigned grpc_allowance_overruns(const struct grpc_allowance *allowance);

#endif
