/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/batcher.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"

#include <assert.h>
#include <ctype.h>
#include <pthread.h>
#include <strings.h>

#define HARD_BYTES ((size_t)1 << 30)
#define IDLE_KEEP ((size_t)2 << 20) /* capacity that a closed batch keeps */
#define KEY_MAX 4096
enum { CLOSE_AT_ONCE = 64, GROWTH_STEP = 2 };

struct batch {                 /* open, of one origin */
	struct batch *next;    /* newest first */
	struct origin *origin; /* NULL: neither tenant nor metadata keys */
	struct collect *collect;
	uint64_t opened; /* clock_now of its first request; 0: empty */
	size_t charged;
};

struct shard {
	pthread_mutex_t lock; /* guards the list and every batch in it */
	struct batch *batches;
	uint32_t count;
};

struct batcher {
	struct batcher_options options;
	struct shard *shards;
	uint32_t batches_max; /* in a shard */
	size_t keep_max;      /* capacity that all empty batches of a shard may keep */
	struct loop_timer *timer;
	_Atomic size_t bound; /* bytes of a batch; 0: what the settings say */
	_Atomic bool armed, flushed;
};

static void close_old(void *argument);

static bool is_repeated(const struct strings *keys, size_t i)
{
	size_t n = 0;
	while (n < i && strcasecmp(keys->at[i], keys->at[n]) != 0)
		n++;
	return n < i;
}

void batcher_check_keys(const struct strings *keys, const char *key, struct faults *faults)
{
	for (size_t i = 0; i < keys->count; i++)
		if (is_repeated(keys, i))
			faults_add(faults,
				   "%s[%zu]: duplicate entry in metadata_keys[%zu] "
				   "(case-insensitive)",
				   key, i, i);
}

struct batcher *batcher_new(const struct batcher_options *options)
{
	struct batcher *b = memory_new(sizeof *b);
	b->options = *options;
	b->shards = memory_array(options->shards, sizeof *b->shards);
	for (uint32_t i = 0; i < options->shards; i++)
		pthread_mutex_init(&b->shards[i].lock, NULL);
	int64_t limit = options->settings->metadata_limit;
	b->batches_max =
		(uint32_t)((limit > 0 ? limit : 1000) + options->shards - 1) / options->shards;
	b->keep_max = options->idle_bytes / options->shards;
	b->timer = loop_timer_new(options->loop, close_old, b);
	return b;
}

/* A value behind its length. One that is too long to keep is its hash. */
static void add_to_key(struct bytes *key, const char *value)
{
	if (!value) {
		bytes_add_text(key, "-,");
	} else if (strlen(value) < KEY_MAX / 2) {
		bytes_format(key, "%zu:%s,", strlen(value), value);
	} else {
		struct hash128 h = hash_bytes_128(value, strlen(value));
		bytes_format(key, "#%016lx%016lx,", h.high, h.low);
	}
}

/* The tenant and the values of the metadata keys. Empty: the request has no origin. */
static void key_of(const struct batcher *b, const struct request *request, struct bytes *key)
{
	const struct strings *keys = &b->options.settings->metadata_keys;
	bytes_init(key, KEY_MAX * (keys->count + 2));
	const char *tenant = request ? request->tenant : NULL;
	if (!keys->count && !tenant)
		return;
	add_to_key(key, tenant);
	for (size_t i = 0; i < keys->count; i++)
		add_to_key(key, request_metadata(request, keys->at[i]));
	bytes_add_byte(key, '\0');
}

/* The origin that the key stands for. A value of which the key has only the hash is left out. */
static struct origin *origin_of(const struct batcher *b, const struct request *request,
				const struct bytes *key)
{
	const struct strings *keys = &b->options.settings->metadata_keys;
	struct metadatum *metadata = memory_array(keys->count + 1, sizeof *metadata);
	size_t count = 0;
	for (size_t i = 0; i < keys->count; i++) {
		const char *value = request_metadata(request, keys->at[i]);
		if (value && strlen(value) < KEY_MAX / 2)
			metadata[count++] = (struct metadatum){ keys->at[i], value };
	}
	struct origin *origin =
		key->len ? origin_new((const char *)key->at, request->tenant, metadata) : NULL;
	memory_free(metadata);
	return origin;
}

static uint64_t service_hash(const struct profiles *p)
{
	if (p->resources.count == 0)
		return 0;
	const struct list *list = &p->resources.at[0].attributes;
	for (uint32_t i = 0; i < list->count; i++) {
		const struct attribute *a = &p->attributes.at[p->indices.at[list->first + i]];
		if (a->type != VALUE_STRING || !string_is(p, a->key, "service.name"))
			continue;
		struct view name = string_view(p, a->string);
		return hash_bytes(name.at, name.len);
	}
	return 0;
}

void batcher_bound(struct batcher *b, size_t bytes)
{
	b->bound = bytes;
}

static size_t batch_max(const struct batcher *b)
{
	const struct batch_settings *s = b->options.settings;
	size_t max = s->on && s->max_bytes ? s->max_bytes : HARD_BYTES;
	return s->on && b->bound && b->bound < max ? b->bound : max;
}

static struct batch *batch_new(const struct batcher *b, struct origin *origin)
{
	const struct batch_settings *s = b->options.settings;
	struct batch *batch = memory_new(sizeof *batch);
	batch->origin = origin;
	batch->collect = collect_new(&(struct collect_limits){
		.max_bytes = batch_max(b),
		.max_samples = s->on ? s->max_size : 0,
		.hard_bytes = HARD_BYTES,
	});
	return batch;
}

static void batch_free(struct batcher *b, struct batch *batch)
{
	budget_give(b->options.budget, (int64_t)batch->charged);
	collect_unref(&batch->collect);
	origin_unref(&batch->origin);
	memory_free(batch);
}

static void charge(struct batcher *b, struct batch *batch)
{
	size_t now = collect_footprint(batch->collect);
	budget_add(b->options.budget, (int64_t)now - (int64_t)batch->charged);
	batch->charged = now;
}

static void forget(struct batcher *b, struct shard *shard, struct batch *gone)
{
	struct batch **at = &shard->batches;
	while (*at != gone)
		at = &(*at)->next;
	*at = gone->next;
	shard->count--;
	batch_free(b, gone);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* The capacity that an empty batch may keep: batches with an origin may be many. */
static size_t keep_of(const struct batcher *b, const struct batch *batch)
{
	return batch->origin ? b->keep_max / b->batches_max : b->keep_max;
}

/* An empty batch with an origin that would keep more than its share is freed. */
static void tidy(struct batcher *b, struct shard *shard, struct batch *batch)
{
	if (batch->origin && collect_empty(batch->collect) && batch->charged > keep_of(b, batch))
		forget(b, shard, batch);
}

/* Under the shard's lock. NULL if it was empty. */
static struct packet *seal(struct batcher *b, struct batch *batch)
{
	if (collect_empty(batch->collect))
		return NULL;
	struct packet *packet = collect_seal(batch->collect);
	packet->origin = origin_ref(batch->origin);
	batch->opened = 0;
	/* What this size of batch needs stays; what one giant needed does not, nor what would
	 * starve the budget. */
	size_t keep = packet->otlp.len * 4 + IDLE_KEEP;
	collect_shrink(batch->collect, least(keep, keep_of(b, batch)));
	charge(b, batch);
	return packet;
}

/* A list of packets sealed under the lock and emitted outside it. */
struct sealed {
	struct packet *at[4];
	uint32_t count;
	bool own;  /* the last one has the request that is being added */
	bool open; /* that request is in an open batch */
};

static void keep(struct sealed *sealed, struct packet *packet)
{
	assert(sealed->count < sizeof sealed->at / sizeof *sealed->at);
	if (packet)
		sealed->at[sealed->count++] = packet;
}

/* False: the request that is being added found no destination. */
static bool emit(struct batcher *b, struct sealed *sealed, struct request *request)
{
	bool kept = true;
	for (uint32_t i = 0; i < sealed->count; i++)
		kept = b->options.emit(b->options.context, sealed->at[i],
				       sealed->own && i + 1 == sealed->count ? request : NULL);
	return kept || !sealed->own;
}

static void evict_oldest(struct batcher *b, struct shard *shard, struct sealed *sealed)
{
	struct batch *oldest = shard->batches;
	for (struct batch *batch = oldest; batch; batch = batch->next)
		if (batch->opened < oldest->opened)
			oldest = batch;
	keep(sealed, seal(b, oldest));
	forget(b, shard, oldest);
}

static bool is_of(const struct batch *batch, const struct bytes *key)
{
	if (!batch->origin || !key->len)
		return !batch->origin && !key->len;
	return strcmp(batch->origin->key, (const char *)key->at) == 0;
}

static struct batch *find_batch(struct batcher *b, struct shard *shard, const struct bytes *key,
				const struct request *request, struct sealed *sealed)
{
	for (struct batch *batch = shard->batches; batch; batch = batch->next)
		if (is_of(batch, key))
			return batch;
	if (shard->count >= b->batches_max)
		evict_oldest(b, shard, sealed);
	struct batch *batch = batch_new(b, origin_of(b, request, key));
	batch->next = shard->batches;
	shard->batches = batch;
	shard->count++;
	return batch;
}

static bool is_due(const struct batcher *b, const struct batch *batch)
{
	const struct batch_settings *s = b->options.settings;
	/* Without a timeout or a size nothing is waited for. */
	if (!s->on || b->flushed || !s->timeout.ns)
		return true;
	return s->bytes ? collect_bytes(batch->collect) >= s->bytes
			: collect_samples(batch->collect) >= s->size;
}

/* Larger than it was charged for: more is charged, by and by, before more is taken. The batch is
 * charged when it has it. */
static enum collect_result add_charged(struct batcher *b, struct batch *batch,
				       const struct profiles *p, struct collect_added *added,
				       struct error *err)
{
	enum collect_result result;
	const struct ack *ack = p->request ? p->request->ack : NULL;
	bool hold = ack && b->options.hold_acks & ACK_MODE(ack->mode);
	/* by the request itself, about */
	int64_t taken = 0, held = (int64_t)(p->table_bytes_max + 2 * p->input.len);
	for (size_t growth = BATCHER_GROWTH(p->input.len);; growth *= GROWTH_STEP) {
		collect_allow(batch->collect, growth < HARD_BYTES ? growth : SIZE_MAX);
		result = collect_add(batch->collect, p, hold, added, err);
		if (result != COLLECT_OUTGROWN)
			break;
		int64_t needed = (int64_t)(growth * GROWTH_STEP * BATCHER_FOOTPRINT);
		if (!budget_take(b->options.budget, needed - taken, b->options.budget->soft)) {
			budget_refuse(b->options.budget, needed + held, err);
			result = COLLECT_FAILED;
			break;
		}
		taken = needed;
	}
	if (taken && collect_empty(batch->collect))
		collect_shrink(batch->collect, least(IDLE_KEEP, keep_of(b, batch)));
	charge(b, batch);
	budget_give(b->options.budget, taken);
	return result;
}

static bool add_locked(struct batcher *b, struct shard *shard, const struct bytes *key,
		       const struct profiles *p, struct collect_added *added, struct sealed *sealed,
		       struct error *err)
{
	struct batch *batch = find_batch(b, shard, key, p->request, sealed);
	enum collect_result result = add_charged(b, batch, p, added, err);
	if (result == COLLECT_FULL) {
		keep(sealed, seal(b, batch));
		result = add_charged(b, batch, p, added, err);
	}
	assert(result != COLLECT_FULL);
	if (result == COLLECT_ADDED) {
		b->options.collected(b->options.context, added);
		if (!batch->opened)
			batch->opened = clock_now();
		sealed->own = is_due(b, batch);
		sealed->open = !sealed->own;
		if (sealed->own)
			keep(sealed, seal(b, batch));
	}
	tidy(b, shard, batch);
	return result != COLLECT_FAILED;
}

enum batcher_result batcher_add(struct batcher *b, const struct profiles *p,
				struct collect_added *added, struct error *err)
{
	struct bytes key;
	key_of(b, p->request, &key);
	uint64_t hash = service_hash(p) ^ (key.len ? hash_bytes(key.at, key.len) : 0);
	struct shard *shard = &b->shards[hash % b->options.shards];
	struct sealed sealed = { .count = 0 };

	pthread_mutex_lock(&shard->lock);
	bool taken = add_locked(b, shard, &key, p, added, &sealed, err);
	pthread_mutex_unlock(&shard->lock);
	bytes_fini(&key);

	bool kept = emit(b, &sealed, p->request);
	if (sealed.open && !atomic_exchange(&b->armed, true))
		loop_post(b->options.loop, close_old, b);
	return !taken ? BATCHER_FAILED : kept ? BATCHER_TAKEN : BATCHER_LOST;
}

/* Seals some of the shard's batches that were opened at or before `until`; *next: the age of the
 * oldest other one. */
static uint32_t seal_old(struct batcher *b, struct shard *shard, uint64_t until,
			 struct packet *packets[CLOSE_AT_ONCE], uint64_t *next)
{
	uint32_t count = 0;
	*next = UINT64_MAX;
	pthread_mutex_lock(&shard->lock);
	for (struct batch *batch = shard->batches, *after; batch && count < CLOSE_AT_ONCE;
	     batch = after) {
		after = batch->next;
		if (batch->opened && batch->opened <= until) {
			packets[count++] = seal(b, batch);
			tidy(b, shard, batch);
		} else if (batch->opened && batch->opened < *next) {
			*next = batch->opened;
		}
	}
	pthread_mutex_unlock(&shard->lock);
	return count;
}

/* All of them; returns the age of the oldest that stays open. */
static uint64_t close_shard(struct batcher *b, struct shard *shard, uint64_t until)
{
	struct packet *packets[CLOSE_AT_ONCE];
	uint64_t next;
	uint32_t count;
	do {
		count = seal_old(b, shard, until, packets, &next);
		for (uint32_t i = 0; i < count; i++)
			b->options.emit(b->options.context, packets[i], NULL);
	} while (count == CLOSE_AT_ONCE);
	return next;
}

static void close_old(void *argument)
{
	struct batcher *b = argument;
	uint64_t timeout = (uint64_t)b->options.settings->timeout.ns;
	uint64_t now = clock_now(), next = UINT64_MAX;
	/* Cleared first: a batch opened while we look arms the timer again itself. */
	atomic_store(&b->armed, false);
	for (uint32_t i = 0; i < b->options.shards; i++) {
		uint64_t opened = close_shard(b, &b->shards[i], now > timeout ? now - timeout : 0);
		if (opened < next)
			next = opened;
	}
	if (next != UINT64_MAX && !atomic_exchange(&b->armed, true))
		loop_timer_start(b->timer, next + timeout > now ? next + timeout - now : 1);
}

void batcher_flush(struct batcher *b)
{
	atomic_store(&b->flushed, true);
	for (uint32_t i = 0; i < b->options.shards; i++)
		close_shard(b, &b->shards[i], UINT64_MAX - 1);
}

void batcher_unref(struct batcher **batcher)
{
	struct batcher *b = *batcher;
	if (!b)
		return;
	loop_timer_unref(&b->timer);
	for (uint32_t i = 0; i < b->options.shards; i++) {
		while (b->shards[i].batches) {
			struct batch *batch = b->shards[i].batches;
			b->shards[i].batches = batch->next;
			batch_free(b, batch);
		}
		pthread_mutex_destroy(&b->shards[i].lock);
	}
	memory_free(b->shards);
	memory_free(b);
	*batcher = NULL;
}
