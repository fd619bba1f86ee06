/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_GRPC_GRPC_REPLY_H
#define NET_GRPC_GRPC_REPLY_H

#include <grpc/grpc.h>

#include "net/grpc/grpc_client.h"

/* The reply to a call, and its meaning. [one thread at a time] The gRPC C core fills it in. The
 * arrays are kept from call to call. Only those files of net/ that call core include this. */
struct grpc_reply {
	grpc_byte_buffer *message;             /* NULL: none arrived */
	grpc_metadata_array initial, trailing; /* their slices belong to core's call */
	grpc_status_code status;
	grpc_slice details;
	const char *origin; /* core's description of an error; NULL unless the status is an error */
};

/* The limit of headers and of trailers, separately, counted as in HTTP/2 (RFC 9113 §6.5.2). Core
 * ends calls that receive more. */
#define GRPC_REPLY_METADATA_MAX 16384
#define GRPC_REPLY_TEXT_MAX 1024 /* of the status message, which is truncated to it */

enum { GRPC_REPLY_OPS = 3 };

void grpc_reply_init(struct grpc_reply *reply);
void grpc_reply_fini(struct grpc_reply *reply); /* after grpc_reply_clear */
/* Writes the operations that fill it in: GRPC_REPLY_OPS of them. */
void grpc_reply_ops(struct grpc_reply *reply, grpc_op *ops);
/* Frees what one call has left. Must be called before core's call is freed. */
void grpc_reply_clear(struct grpc_reply *reply);
/* Did the destination, or at least its connection, produce the status? Otherwise core did, without
 * a reply. */
bool grpc_reply_is_answer(const struct grpc_reply *reply);
/* What is known of the connections of the call besides the reply. */
struct grpc_reply_context {
	/* a connection was closed since the call began, because its destination had sent too much
	 * (net/grpc/grpc_allowance.h) */
	bool overrun;
	bool connected;       /* there is a connection now */
	struct cause reached; /* grpc_allowance_reached */
};

/* Calls done with the contents of the reply. */
void grpc_reply_report(const struct grpc_reply *reply, struct grpc_reply_context context,
		       void (*done)(void *argument, const struct grpc_result *result),
		       void *argument);

#endif
