/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/quota_table.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdatomic.h>

#define SECOND_NS UINT64_C(1000000000)
/* the longest debt that is remembered, and the longest hint */
#define DEBT_MAX_NS (86400 * SECOND_NS)

enum { LISTS = 256, LOOK_AT = 8 };

const char *const quota_units[QUOTA_UNITS] = { "bytes", "samples" };

struct bucket {
	struct bucket *next; /* in its list */
	struct bucket *newer;
	struct hash128 name;
	uint64_t full_at[QUOTA_UNITS]; /* clock_now */
	bool pinned;
};

struct shard {
	pthread_mutex_t lock; /* of all that follows */
	struct bucket *lists[LISTS];
	struct bucket *oldest, **newest; /* those that are not pinned, in the order of creation */
	struct bucket shared;            /* of names that find no place */
	_Atomic uint32_t count;
	_Atomic uint64_t shares;
};

struct quota_table {
	uint32_t shard_max;
	struct shard shards[QUOTA_TABLE_SHARDS];
};

struct quota_table *quota_table_new(uint32_t max)
{
	struct quota_table *t = memory_new(sizeof *t);
	t->shard_max = max / QUOTA_TABLE_SHARDS;
	for (int i = 0; i < QUOTA_TABLE_SHARDS; i++) {
		t->shards[i].newest = &t->shards[i].oldest;
		pthread_mutex_init(&t->shards[i].lock, NULL);
	}
	return t;
}

static void free_lists(struct shard *s)
{
	for (int i = 0; i < LISTS; i++)
		while (s->lists[i]) {
			struct bucket *next = s->lists[i]->next;
			memory_free(s->lists[i]);
			s->lists[i] = next;
		}
}

void quota_table_unref(struct quota_table **slot)
{
	struct quota_table *t = *slot;
	*slot = NULL;
	for (int i = 0; t && i < QUOTA_TABLE_SHARDS; i++) {
		free_lists(&t->shards[i]);
		pthread_mutex_destroy(&t->shards[i].lock);
	}
	memory_free(t);
}

static bool is_full(const struct bucket *b, uint64_t now)
{
	for (int i = 0; i < QUOTA_UNITS; i++)
		if (b->full_at[i] > now)
			return false;
	return true;
}

/* The link to the bucket with this name, or the last link of its list. */
static struct bucket **find(struct shard *s, struct hash128 name)
{
	struct bucket **at = &s->lists[name.low / QUOTA_TABLE_SHARDS % LISTS];
	while (*at && ((*at)->name.low != name.low || (*at)->name.high != name.high))
		at = &(*at)->next;
	return at;
}

static void append(struct shard *s, struct bucket *b)
{
	b->newer = NULL;
	*s->newest = b;
	s->newest = &b->newer;
}

static struct bucket *remove_oldest(struct shard *s)
{
	struct bucket *b = s->oldest;
	s->oldest = b->newer;
	if (!s->oldest)
		s->newest = &s->oldest;
	return b;
}

/* Frees the place of a full bucket, if one of the next few is full. */
static bool make_place(struct shard *s, uint64_t now)
{
	for (int i = 0; i < LOOK_AT && s->oldest; i++) {
		struct bucket *b = remove_oldest(s);
		if (!is_full(b, now)) {
			append(s, b);
			continue;
		}
		struct bucket **link = find(s, b->name);
		*link = b->next;
		memory_free(b);
		s->count--;
		return true;
	}
	return false;
}

static struct bucket *add(struct shard *s, struct hash128 name, bool pinned)
{
	struct bucket *b = memory_new(sizeof *b);
	b->name = name;
	b->pinned = pinned;
	*find(s, name) = b;
	if (pinned)
		return b;
	append(s, b);
	s->count++;
	return b;
}

static struct bucket *place_of(struct shard *s, uint32_t max, struct hash128 name, uint64_t now)
{
	struct bucket *b = *find(s, name);
	if (b)
		return b;
	if (s->count < max || make_place(s, now))
		return add(s, name, false);
	s->shares++;
	return &s->shared;
}

static struct shard *shard_of(struct quota_table *t, struct hash128 name)
{
	return &t->shards[name.low % QUOTA_TABLE_SHARDS];
}

void quota_table_pin(struct quota_table *t, struct hash128 name)
{
	struct shard *s = shard_of(t, name);
	pthread_mutex_lock(&s->lock);
	struct bucket *b = *find(s, name);
	if (!b)
		add(s, name, true);
	pthread_mutex_unlock(&s->lock);
}

/* The time in which an amount is refilled, rounded up. */
static uint64_t refill_ns(const struct quota_rate *rate, uint64_t amount)
{
	unsigned __int128 ns =
		((unsigned __int128)amount * SECOND_NS + rate->per_second - 1) / rate->per_second;
	return ns > DEBT_MAX_NS ? DEBT_MAX_NS : (uint64_t)ns;
}

static void take(uint64_t *full_at, const struct quota_rate *rate, int64_t amount, uint64_t now)
{
	uint64_t from = *full_at > now ? *full_at : now;
	if (amount < 0) {
		uint64_t back = refill_ns(rate, (uint64_t)-amount);
		*full_at = from - now > back ? from - back : now;
		return;
	}
	uint64_t limit = now + DEBT_MAX_NS, full = from + refill_ns(rate, (uint64_t)amount);
	*full_at = full < limit ? full : limit;
}

static int64_t left_of(uint64_t full_at, const struct quota_rate *rate, uint64_t now)
{
	if (full_at <= now)
		return (int64_t)rate->burst;
	unsigned __int128 used =
		((unsigned __int128)(full_at - now) * rate->per_second + SECOND_NS - 1) / SECOND_NS;
	return (int64_t)rate->burst - (int64_t)used;
}

struct quota_left quota_table_take(struct quota_table *t, struct hash128 name,
				   const struct quota_rates *rates,
				   const int64_t amounts[QUOTA_UNITS], uint64_t now)
{
	struct quota_left left;
	struct shard *s = shard_of(t, name);
	bool back = amounts[QUOTA_BYTES] < 0 || amounts[QUOTA_SAMPLES] < 0;
	pthread_mutex_lock(&s->lock);
	struct bucket *b = back ? *find(s, name) : place_of(s, t->shard_max, name, now);
	for (int i = 0; i < QUOTA_UNITS; i++) {
		const struct quota_rate *rate = &rates->of[i];
		left.of[i] = INT64_MAX;
		if (!rate->per_second || !b)
			continue;
		if (amounts[i])
			take(&b->full_at[i], rate, amounts[i], now);
		left.of[i] = left_of(b->full_at[i], rate, now);
	}
	pthread_mutex_unlock(&s->lock);
	return left;
}

uint32_t quota_table_wait_ms(const struct quota_rate *rate, int64_t left)
{
	if (left > 0)
		return 0;
	return (uint32_t)(refill_ns(rate, (uint64_t)(1 - left)) / 1000000) + 1;
}

uint32_t quota_table_count(const struct quota_table *t)
{
	uint32_t count = 0;
	for (int i = 0; i < QUOTA_TABLE_SHARDS; i++)
		count += t->shards[i].count;
	return count;
}

uint64_t quota_table_shared(const struct quota_table *t)
{
	uint64_t shares = 0;
	for (int i = 0; i < QUOTA_TABLE_SHARDS; i++)
		shares += t->shards[i].shares;
	return shares;
}
