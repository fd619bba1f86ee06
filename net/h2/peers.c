/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2/private.h"

#include "base/memory.h"

enum { BUCKETS = 1024 };

struct entry {
	struct entry *next;
	struct hash128 key;
	int64_t count;
};

struct h2_peers {
	pthread_mutex_t lock;
	struct entry *buckets[BUCKETS];
};

struct h2_peers *h2_peers_new(void)
{
	struct h2_peers *peers = memory_new(sizeof *peers);
	pthread_mutex_init(&peers->lock, NULL);
	return peers;
}

void h2_peers_unref(struct h2_peers **slot)
{
	struct h2_peers *peers = *slot;
	*slot = NULL;
	if (!peers)
		return;
	pthread_mutex_destroy(&peers->lock);
	memory_free(peers);
}

static struct entry **find(struct h2_peers *peers, struct hash128 key)
{
	struct entry **at = &peers->buckets[key.low % BUCKETS];
	while (*at && !peer_key_equal((*at)->key, key))
		at = &(*at)->next;
	return at;
}

bool h2_peers_enter(struct h2_peers *peers, struct hash128 key, int64_t max)
{
	pthread_mutex_lock(&peers->lock);
	struct entry **at = find(peers, key);
	bool room = (*at ? (*at)->count : 0) < max;
	if (room && !*at) {
		*at = memory_new(sizeof **at);
		(*at)->key = key;
	}
	if (room)
		(*at)->count++;
	pthread_mutex_unlock(&peers->lock);
	return room;
}

void h2_peers_leave(struct h2_peers *peers, struct hash128 key)
{
	pthread_mutex_lock(&peers->lock);
	struct entry **at = find(peers, key), *entry = *at;
	if (entry && --entry->count == 0) {
		*at = entry->next;
		memory_free(entry);
	}
	pthread_mutex_unlock(&peers->lock);
}
