/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/duplicates.h"

#include "base/clock.h"
#include "base/memory.h"
#include "net/idempotency_key.h"
#include "net/peer_key.h"
#include "pipeline/budget.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 1024, MAX_ENTRIES = 1 << 24 };

/* A request. References to entries are their numbers, which begin with 1; 0: none. */
struct entry {
	struct hash128 key;
	uint64_t kept; /* clock_now; 0: it is being processed */
	uint64_t samples;
	char *rejection; /* charged; NULL: none */
	uint32_t rejected_profiles;
	uint32_t next;         /* of the same bucket; of the free ones */
	uint32_t older, newer; /* of the kept ones of the group */
	uint32_t group;
};

struct group {
	uint32_t oldest, newest, count;
};

struct duplicates {
	const struct duplicates_config *config;
	struct budget *budget;
	struct metric_series *entries, *invalid, *full;

	pthread_mutex_t lock; /* guards all that follows */
	/* in blocks, which never move; allocated when they are needed */
	struct entry **blocks;
	uint32_t *buckets; /* as many as a power of two; NULL: no entry yet */
	uint32_t bucket_count, used, free;
	struct group groups[DUPLICATES_GROUPS];
};

/* ---- configuration ---- */

static void check(const void *config, struct faults *faults)
{
	const struct duplicates_config *c = config;
	if (c->window.ns <= 0)
		faults_add(faults, "window: must be positive");
}

static const struct config_row rows[] = {
	CONFIG_ROW(struct duplicates_config, window, .key = "window", .def = "5m",
		   .help = "How long an accepted request is remembered. Senders that repeat a "
			   "request later than that cause a duplicate."),
	CONFIG_ROW(struct duplicates_config, max_entries, .key = "max_entries", .def = "65536",
		   .limited = true, .min = 1, .max = MAX_ENTRIES,
		   .help = "Maximum number of requests that are remembered; each takes about 80 "
			   "bytes."),
	{ 0 }
};
const struct config_table duplicates_table = {
	.size = sizeof(struct duplicates_config), .rows = rows, .check = check, .optional = true
};

static const struct metric entries_metric = {
	"otelcol_receiver_idempotency_keys", METRIC_GAUGE, "{requests}",
	"Requests that the receiver remembers or processes, by their Idempotency-Key."
};
static const struct metric unused_metric = {
	"otelcol_receiver_unused_idempotency_keys", METRIC_COUNTER, "{requests}",
	"Requests whose repetition the receiver would not recognise, by reason: invalid (the "
	"header Idempotency-Key is malformed), full (forgotten before the end of the window, or "
	"never remembered, because of max_entries or the memory limit)."
};
const struct metric *const duplicates_metrics[] = { &entries_metric, &unused_metric, NULL };

/* ---- entries ---- */

static struct entry *at(struct duplicates *d, uint32_t number)
{
	assert(number);
	return &d->blocks[(number - 1) / BLOCK][(number - 1) % BLOCK];
}

static uint32_t *bucket_of(struct duplicates *d, struct hash128 key)
{
	return &d->buckets[key.low & (d->bucket_count - 1)];
}

static uint32_t find(struct duplicates *d, struct hash128 key)
{
	uint32_t number = d->buckets ? *bucket_of(d, key) : 0;
	while (number && (at(d, number)->key.low != key.low || at(d, number)->key.high != key.high))
		number = at(d, number)->next;
	return number;
}

static void append(struct duplicates *d, uint32_t number)
{
	struct entry *e = at(d, number);
	struct group *g = &d->groups[e->group];
	e->older = g->newest;
	e->newer = 0;
	*(g->newest ? &at(d, g->newest)->newer : &g->oldest) = number;
	g->newest = number;
	g->count++;
}

static void take_out(struct duplicates *d, const struct entry *e)
{
	struct group *g = &d->groups[e->group];
	*(e->older ? &at(d, e->older)->newer : &g->oldest) = e->newer;
	*(e->newer ? &at(d, e->newer)->older : &g->newest) = e->older;
	g->count--;
}

/* Makes the entry free. */
static void drop(struct duplicates *d, uint32_t number)
{
	struct entry *e = at(d, number);
	uint32_t *link = bucket_of(d, e->key);
	while (*link != number)
		link = &at(d, *link)->next;
	*link = e->next;
	if (e->kept)
		take_out(d, e);
	if (e->rejection)
		budget_give(d->budget, (int64_t)strlen(e->rejection) + 1);
	memory_free(e->rejection);
	*e = (struct entry){ .next = d->free };
	d->free = number;
	metric_add(d->entries, -1);
}

static bool is_old(const struct duplicates *d, const struct entry *e, uint64_t now)
{
	return e->kept && now - e->kept >= (uint64_t)d->config->window.ns;
}

static void drop_old(struct duplicates *d, struct group *g, uint64_t now)
{
	while (g->oldest && is_old(d, at(d, g->oldest), now))
		drop(d, g->oldest);
}

/* ---- room ---- */

static uint32_t max_entries(const struct duplicates *d)
{
	return (uint32_t)d->config->max_entries;
}

static bool charge(struct duplicates *d, size_t bytes)
{
	return budget_take(d->budget, (int64_t)bytes, d->budget->soft);
}

static bool make_buckets(struct duplicates *d)
{
	uint32_t count = 16;
	while (count < max_entries(d))
		count *= 2;
	size_t blocks = (max_entries(d) + BLOCK - 1) / BLOCK;
	if (!charge(d, count * sizeof *d->buckets + blocks * sizeof *d->blocks))
		return false;
	d->bucket_count = count;
	d->buckets = memory_array(count, sizeof *d->buckets);
	d->blocks = memory_array(blocks, sizeof *d->blocks);
	return true;
}

/* A number that was never used, 0: there is none. */
static uint32_t grow(struct duplicates *d)
{
	if (d->used == max_entries(d) || (!d->buckets && !make_buckets(d)))
		return 0;
	struct entry **block = &d->blocks[d->used / BLOCK];
	if (!*block) {
		if (!charge(d, BLOCK * sizeof **block))
			return 0;
		*block = memory_array(BLOCK, sizeof **block);
	}
	return ++d->used;
}

/* Forgets the oldest request of the group that has the most. */
static void make_room(struct duplicates *d)
{
	struct group *most = d->groups;
	for (struct group *g = d->groups; g < d->groups + DUPLICATES_GROUPS; g++)
		most = g->count > most->count ? g : most;
	if (most->oldest)
		drop(d, most->oldest);
	metric_add(d->full, 1);
}

/* 0: all entries are of requests that are being processed. */
static uint32_t find_room(struct duplicates *d, uint64_t now)
{
	for (uint32_t i = 0; i < DUPLICATES_GROUPS && !d->free; i++)
		drop_old(d, &d->groups[i], now);
	uint32_t number = d->free ? 0 : grow(d);
	if (number)
		return number;
	if (!d->free)
		make_room(d);
	number = d->free;
	if (number)
		d->free = at(d, number)->next;
	return number;
}

/* ---- requests ---- */

/* Of the sender and the key; *group is that of the sender. */
static struct hash128 hash_of(const struct request *request, struct view key, uint32_t *group)
{
	struct { /* no padding: it is hashed */
		struct hash128 tenant, identity;
		uint8_t key[IDEMPOTENCY_KEY_MAX];
	} text = { 0 };
	const char *identity = request_metadata(request, REQUEST_AUTH_PREFIX "subject");
	if (request->tenant)
		text.tenant = hash_bytes_128(request->tenant, strlen(request->tenant));
	if (identity)
		text.identity = peer_key_of_identity(identity);
	memcpy(text.key, key.at, key.len);
	*group = hash_bytes(&text, offsetof(__typeof__(text), key)) % DUPLICATES_GROUPS;
	return hash_bytes_128(&text, sizeof text);
}

static enum duplicates_answer repeat(const struct entry *e, struct duplicates_reply *reply)
{
	if (!e->kept)
		return DUPLICATES_BUSY;
	reply->samples = e->samples;
	reply->rejected_profiles = e->rejected_profiles;
	snprintf(reply->rejection, sizeof reply->rejection, "%s", e->rejection ? e->rejection : "");
	return DUPLICATES_REPEATS;
}

static uint32_t add(struct duplicates *d, struct hash128 key, uint32_t group, uint64_t now)
{
	uint32_t number = find_room(d, now);
	if (!number)
		return 0;
	uint32_t *bucket = bucket_of(d, key);
	*at(d, number) = (struct entry){ .key = key, .group = group, .next = *bucket };
	*bucket = number;
	metric_add(d->entries, 1);
	return number;
}

enum duplicates_answer duplicates_enter(struct duplicates *d, const struct request *request,
					const struct metadatum *headers, uint32_t *place,
					struct duplicates_reply *reply)
{
	struct view text;
	*place = 0;
	enum idempotency_key found =
		d ? idempotency_key_find(headers, &text) : IDEMPOTENCY_KEY_NONE;
	if (found == IDEMPOTENCY_KEY_INVALID)
		metric_add(d->invalid, 1);
	if (found != IDEMPOTENCY_KEY_VALID)
		return DUPLICATES_NEW;
	uint32_t group;
	struct hash128 key = hash_of(request, text, &group);
	enum duplicates_answer answer = DUPLICATES_NEW;
	pthread_mutex_lock(&d->lock);
	uint64_t now = clock_now(); /* not before the entries that are there were kept */
	drop_old(d, &d->groups[group], now);
	uint32_t first = find(d, key);
	if (first)
		answer = repeat(at(d, first), reply);
	else
		*place = add(d, key, group, now);
	pthread_mutex_unlock(&d->lock);
	return answer;
}

void duplicates_keep(struct duplicates *d, uint32_t place, const struct duplicates_reply *reply)
{
	if (!place)
		return;
	size_t len = strlen(reply->rejection);
	pthread_mutex_lock(&d->lock);
	struct entry *e = at(d, place);
	e->kept = clock_now();
	e->samples = reply->samples;
	e->rejected_profiles = reply->rejected_profiles;
	if (len && charge(d, len + 1))
		e->rejection = memory_format("%s", reply->rejection);
	append(d, place);
	pthread_mutex_unlock(&d->lock);
}

void duplicates_forget(struct duplicates *d, uint32_t place)
{
	if (!place)
		return;
	pthread_mutex_lock(&d->lock);
	drop(d, place);
	pthread_mutex_unlock(&d->lock);
}

/* ---- life ---- */

struct duplicates *duplicates_new(const struct duplicates_config *config, struct budget *budget,
				  struct metrics *metrics, const char *receiver)
{
	if (!config || !config->present.enabled)
		return NULL;
	struct metric_label labels[] = { { "receiver", receiver }, { 0 }, { 0 } };
	struct duplicates *d = memory_new(sizeof *d);
	d->config = config;
	d->budget = budget;
	d->entries = metrics_series(metrics, &entries_metric, labels);
	labels[1] = (struct metric_label){ "reason", "invalid" };
	d->invalid = metrics_series(metrics, &unused_metric, labels);
	labels[1] = (struct metric_label){ "reason", "full" };
	d->full = metrics_series(metrics, &unused_metric, labels);
	pthread_mutex_init(&d->lock, NULL);
	return d;
}

static void drop_kept(struct duplicates *d)
{
	for (struct group *g = d->groups; g < d->groups + DUPLICATES_GROUPS; g++)
		while (g->oldest)
			drop(d, g->oldest);
}

void duplicates_unref(struct duplicates **slot)
{
	struct duplicates *d = *slot;
	*slot = NULL;
	if (!d)
		return;
	drop_kept(d);
	size_t blocks = (d->used + BLOCK - 1) / BLOCK, all = (max_entries(d) + BLOCK - 1) / BLOCK;
	for (size_t i = 0; i < blocks; i++)
		memory_free(d->blocks[i]);
	if (d->buckets)
		budget_give(d->budget, (int64_t)(blocks * BLOCK * sizeof(struct entry) +
						 d->bucket_count * sizeof *d->buckets +
						 all * sizeof *d->blocks));
	memory_free(d->blocks);
	memory_free(d->buckets);
	pthread_mutex_destroy(&d->lock);
	memory_free(d);
}
