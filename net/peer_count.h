/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_PEER_COUNT_H
#define NET_PEER_COUNT_H

#include "net/peer_key.h"

/*
 * Counts the connections of each peer. It contains only peers with connections, so the limit on all
 * connections bounds it. Any thread.
 */
struct peer_count;

struct peer_count *peer_count_new(void);
void peer_count_unref(struct peer_count **count);
/* Adds a connection unless the peer already has `limit` (0: no limit). Returns the new number of
 * connections; 0: the limit is reached. */
uint32_t peer_count_add(struct peer_count *count, struct hash128 peer, uint32_t limit);
uint32_t peer_count_of(struct peer_count *count, struct hash128 peer);
void peer_count_remove(struct peer_count *count, struct hash128 peer);

#endif
