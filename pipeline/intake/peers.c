/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/peers.h"

#include "base/memory.h"

#include <assert.h>
#include <string.h>

void peers_init(struct peers *peers)
{
	*peers = (struct peers){ 0 };
	pthread_mutex_init(&peers->lock, NULL);
}

void peers_fini(struct peers *peers)
{
	assert(!peers->count);
	pthread_mutex_destroy(&peers->lock);
}

static struct hash128 key_of(const struct request *request)
{
	for (const struct metadatum *a = request->auth; a && a->name; a++)
		if (!strcmp(a->name, "subject"))
			return peer_key_of_identity(a->value);
	return peer_key_of_address(request->peer);
}

/* The link to the peer with this key, or the last link of its bucket. */
static struct peer **find(struct peers *peers, struct hash128 key)
{
	struct peer **at = &peers->buckets[key.low % PEERS_BUCKETS];
	while (*at && !peer_key_equal((*at)->key, key))
		at = &(*at)->next;
	return at;
}

struct peer *peers_hold(struct peers *peers, const struct request *request)
{
	struct hash128 key = key_of(request);
	pthread_mutex_lock(&peers->lock);
	struct peer **at = find(peers, key);
	if (!*at) {
		*at = memory_new(sizeof **at);
		(*at)->key = key;
		(*at)->queue.tail = &(*at)->queue.head;
		peers->count++;
	}
	struct peer *peer = *at;
	peer->holds++;
	pthread_mutex_unlock(&peers->lock);
	return peer;
}

void peers_release(struct peers *peers, struct peer **slot)
{
	struct peer *peer = *slot, *gone = NULL;
	*slot = NULL;
	if (!peer)
		return;
	pthread_mutex_lock(&peers->lock);
	if (!--peer->holds) {
		assert(!peer->bytes && !peer->queue.length);
		gone = peer;
		*find(peers, peer->key) = peer->next;
		peers->count--;
	}
	pthread_mutex_unlock(&peers->lock);
	memory_free(gone);
}
