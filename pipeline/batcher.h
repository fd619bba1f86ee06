/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_BATCHER_H
#define PIPELINE_BATCHER_H

#include "net/loop.h"
#include "pipeline/budget.h"
#include "pipeline/component.h"
#include "pipeline/ledger.h"
#include "profile/collect/collect.h"

/*
 * The open batches of one route (pipeline/intake/pipeline.h). There are as many shards as workers.
 * A request goes whole into the one chosen by the hash of its batch key (the values of
 * metadata_keys) and of its first resource's service.name, so that dictionaries stay warm. Within a
 * shard there is one open batch per batch key, up to a limit beyond which the oldest closes. A
 * batch closes when it is large enough, old enough, or when the next request would pass a maximum;
 * without batching, timeout or size, after every request.
 *
 * batcher_add may be called from any worker; closed packets go to `emit` on the caller's thread (a
 * worker, or the loop when a batch is old enough), outside the shard's lock, with the reference.
 */
struct batcher;

/*
 * By how many bytes a request makes a packet larger, unless it refers to the same texts over and
 * over or processors add much; and how much memory an open batch takes for each of them, about. Who
 * calls batcher_add has charged their product.
 */
#define BATCHER_GROWTH(body) ((size_t)(body)*2 + ((size_t)32 << 10))
#define BATCHER_FOOTPRINT 3

struct batcher_options {
	const struct batch_settings *settings;
	uint32_t shards;
	bool hold_acks; /* some destination wants the sender to wait */
	struct loop *loop;
	struct budget *budget;
	struct metric_series *batched; /* gauge: samples in open batches */
	size_t idle_bytes;             /* capacity that all empty batches together may keep */
	bool (*emit)(void *context, struct packet *packet); /* false: no destination took it */
	void *context;
};

/* Keys that differ in case alone are the same. */
bool batcher_check_keys(const struct strings *keys, struct error *err);

struct batcher *batcher_new(const struct batcher_options *options);

enum batcher_result {
	BATCHER_TAKEN, /* perhaps nothing was left to take */
	/* it left at once, and no destination had room: counted as dropped at each of them */
	BATCHER_LOST,
	BATCHER_FAILED /* err says why, and nothing of it was taken */
};

enum batcher_result batcher_add(struct batcher *b, const struct profiles *p,
				struct collect_added *added, struct error *err);
/* Closes every open batch. After it returned nothing is open; requests that come later are batches
 * of one. */
void batcher_flush(struct batcher *b);
/* [any thread] Batches that are opened from now on are no larger, whatever the settings allow. */
void batcher_bound(struct batcher *b, size_t bytes);
/* On the loop thread, after batcher_flush and with no batcher_add running. */
void batcher_unref(struct batcher **b);

#endif
