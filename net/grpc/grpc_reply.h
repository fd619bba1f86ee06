/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_GRPC_GRPC_REPLY_H
#define NET_GRPC_GRPC_REPLY_H

#include <grpc/grpc.h>

#include "net/grpc/grpc_client.h"

/*
 * What comes back of a call, and what it means. [one thread at a time] The gRPC C core fills it in;
 * the arrays are kept from call to call. Only the files of net/ that speak to core include this.
 */
struct grpc_reply {
	grpc_byte_buffer *message;             /* NULL: none came */
	grpc_metadata_array initial, trailing; /* their slices belong to core's call */
	grpc_status_code status;
	grpc_slice details;
	const char *origin; /* core's description of an error; NULL unless the status is one */
};

/* Of headers and of trailers, each, as HTTP/2 counts them (RFC 9113 §6.5.2); core ends calls that
 * get more. */
#define GRPC_REPLY_METADATA_MAX 16384
#define GRPC_REPLY_TEXT_MAX 1024 /* of the status message; the rest is cut off */

enum { GRPC_REPLY_OPS = 3 };

void grpc_reply_init(struct grpc_reply *reply);
void grpc_reply_fini(struct grpc_reply *reply); /* after grpc_reply_clear */
/* The operations that fill it in: GRPC_REPLY_OPS of them. */
void grpc_reply_ops(struct grpc_reply *reply, grpc_op *ops);
/* Lets go of what one call left; before core's call is. */
void grpc_reply_clear(struct grpc_reply *reply);
/* Did the destination make the status, or at least its connection? Else core did, with no reply. */
bool grpc_reply_is_answer(const struct grpc_reply *reply);
/*
 * Calls done with what the reply says. overrun: since the call began, a connection was closed
 * because its destination had sent too much (net/grpc/grpc_allowance.h).
 */
void grpc_reply_report(const struct grpc_reply *reply, bool overrun,
		       void (*done)(void *argument, const struct grpc_result *result),
		       void *argument);

#endif
