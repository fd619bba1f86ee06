/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_PEER_KEY_H
#define NET_PEER_KEY_H

#include <stdbool.h>

#include "base/hash.h"

/*
 * The identity of a peer for counting and sharing: a keyed 128-bit hash of its address, or of the
 * identity that it authenticated with. Only the first 64 bits of an IPv6 address count, because one
 * host may use all the others (RFC 4291 §2.5.1, RFC 7934). All peers without an address (unix
 * sockets) are one peer.
 */
/* numeric, without port; NULL or "": none */
struct hash128 peer_key_of_address(const char *address);
struct hash128 peer_key_of_identity(const char *identity);

static inline bool peer_key_equal(struct hash128 a, struct hash128 b)
{
	return a.low == b.low && a.high == b.high;
}

#endif
