/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_GRPC_RPC_CHANNEL_H
#define NET_GRPC_RPC_CHANNEL_H

#include <grpc/grpc.h>
#include <stdatomic.h>

#include "net/grpc/grpc_client.h"

struct grpc_allowance;

/* A channel of core. Calls in flight keep it alive after a new channel has replaced it. Only those
 * files of net/ that call core include this. */
struct rpc_channel {
	_Atomic unsigned refs;
	grpc_channel *core;
	void *method; /* the method as registered with core, which owns it */
};

/* No connection is opened before the first call. The strings are only read. */
struct rpc_channel *rpc_channel_new(const struct grpc_endpoint *endpoint,
				    const struct grpc_client_options *options,
				    const struct tls_material *material,
				    struct grpc_allowance *allowance);
struct rpc_channel *rpc_channel_ref(struct rpc_channel *channel);
void rpc_channel_unref(struct rpc_channel **channel);

#endif
