/* SPDX-License-Identifier: Apache-2.0 */
#include "net/peer_count.h"

#include <assert.h>
#include <pthread.h>

#include "base/memory.h"

enum { BUCKETS = 256 };

struct entry {
	struct hash128 peer;
	uint32_t count;
	struct entry *next;
};

struct peer_count {
	pthread_mutex_t lock;
	struct entry *buckets[BUCKETS];
};

struct peer_count *peer_count_new(void)
{
	struct peer_count *c = memory_new(sizeof *c);
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

void peer_count_unref(struct peer_count **slot)
{
	struct peer_count *c = *slot;
	*slot = NULL;
	if (!c)
		return;
	for (int i = 0; i < BUCKETS; i++) {
		for (struct entry *e; (e = c->buckets[i]);) {
			c->buckets[i] = e->next;
			memory_free(e);
		}
	}
	pthread_mutex_destroy(&c->lock);
	memory_free(c);
}

/* The link to the entry of the peer, or to the end of its bucket. */
static struct entry **find(struct peer_count *c, struct hash128 peer)
{
	struct entry **at = &c->buckets[peer.low % BUCKETS];
	while (*at && !peer_key_equal((*at)->peer, peer))
		at = &(*at)->next;
	return at;
}

uint32_t peer_count_add(struct peer_count *c, struct hash128 peer, uint32_t limit)
{
	uint32_t now = 0;
	pthread_mutex_lock(&c->lock);
	struct entry **at = find(c, peer);
	if (!*at) {
		*at = memory_new(sizeof **at);
		(*at)->peer = peer;
	}
	if (!limit || (*at)->count < limit)
		now = ++(*at)->count;
	pthread_mutex_unlock(&c->lock);
	return now;
}

uint32_t peer_count_of(struct peer_count *c, struct hash128 peer)
{
	pthread_mutex_lock(&c->lock);
	struct entry **at = find(c, peer);
	uint32_t count = *at ? (*at)->count : 0;
	pthread_mutex_unlock(&c->lock);
	return count;
}

void peer_count_remove(struct peer_count *c, struct hash128 peer)
{
	pthread_mutex_lock(&c->lock);
	struct entry **at = find(c, peer), *entry = *at;
	assert(entry);
	if (!--entry->count) {
		*at = entry->next;
		memory_free(entry);
	}
	pthread_mutex_unlock(&c->lock);
}
