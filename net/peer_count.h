/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_PEER_COUNT_H
#define NET_PEER_COUNT_H

#include "net/peer_key.h"

/*
 * How many connections each peer has. It holds only peers that have one, so the limit of all
 * connections bounds it. Any thread.
 */
struct peer_count;

struct peer_count *peer_count_new(void);
void peer_count_unref(struct peer_count **count);
/* One more, unless the peer has `limit` already (0: none). How many it has then; 0: it has the
 * limit. */
uint32_t peer_count_add(struct peer_count *count, struct hash128 peer, uint32_t limit);
uint32_t peer_count_of(struct peer_count *count, struct hash128 peer);
void peer_count_remove(struct peer_count *count, struct hash128 peer);

#endif
