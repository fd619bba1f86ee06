/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_GRPC_GRPC_ALLOWANCE_H
#define NET_GRPC_GRPC_ALLOWANCE_H

#include <grpc/grpc.h>
#include <stddef.h>

#include "base/error.h"
#include "net/cause.h"

/*
 * The number of bytes that a destination may send. [any thread]
 *
 * The gRPC C core compares a message with its limit only after all of it has arrived. It parses an
 * incomplete header again from the start with each frame, regardless of its length. It continues to
 * read while there is data, so a destination that floods one connection stalls all others. Each
 * byte that a client's connections receive is therefore taken from an allowance, and each reply
 * adds to it. The allowance bounds memory, and CPU by its square. When nothing is left, reading
 * fails with ECONNRESET, which closes the connection. For GRPC_ALLOWANCE_PAUSE_NS no new connection
 * is opened, so that core's own back-off applies.
 *
 * The bytes are counted where core reads them: the program defines its own `recvmsg`, which takes
 * precedence over the C library's. It counts only registered sockets, and only core's are
 * registered. Core registers them through its socket mutator, whose layout is not in its public
 * headers. The layout used here is that of 1.51; grpc_allowance_new refuses any other version.
 *
 * The registered sockets are also watched (net/client_socket.h): after a write that failed, core
 * first reads what the server has sent, such as the alert that says why.
 */
struct grpc_allowance;

#define GRPC_ALLOWANCE_MAX (1 << 17)   /* plus the shares of requests in flight */
#define GRPC_ALLOWANCE_REPLY (1 << 15) /* what a reply adds: headers, message and trailers */
/* the share of a request, for its acknowledgements: a WINDOW_UPDATE for about 16 KiB */
#define GRPC_ALLOWANCE_SHARE 256
#define GRPC_ALLOWANCE_TICK 32 /* what each tick adds, for pings between calls */
#define GRPC_ALLOWANCE_PAUSE_NS (UINT64_C(10) * 1000000000)
/* longer than core waits before it connects again (net/grpc/rpc_channel.c) */
#define GRPC_ALLOWANCE_NOTED_NS (UINT64_C(15) * 1000000000)

struct grpc_allowance *grpc_allowance_new(struct error *err);
/* Channels created with the argument keep their own reference. */
void grpc_allowance_unref(struct grpc_allowance **allowance);

/* A channel argument: the connections of the channel share the allowance. Valid as long as the
 * caller's reference. */
grpc_arg grpc_allowance_argument(struct grpc_allowance *allowance);
/* Must be called before and after each call. answered: the destination produced the status. */
void grpc_allowance_begin(struct grpc_allowance *allowance, size_t request_bytes);
void grpc_allowance_end(struct grpc_allowance *allowance, size_t request_bytes, bool answered);
/* Must be called every half second. */
void grpc_allowance_tick(struct grpc_allowance *allowance);
/* The number of times that the allowance was used up since grpc_allowance_new. */
unsigned grpc_allowance_overruns(const struct grpc_allowance *allowance);
/* Why the last TLS handshake of its connections has failed, or what ended the connection after it.
 * If there is none: how a connection was ended over which the server had sent nothing. secure: that
 * was in the handshake. CAUSE_NONE: nothing since the last answer, nor in the last
 * GRPC_ALLOWANCE_NOTED_NS. Core's own messages do not say it, or are about another address. */
struct cause grpc_allowance_reached(const struct grpc_allowance *allowance, bool secure);

#endif
