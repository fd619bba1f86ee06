/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_BATCHER_H
#define PIPELINE_BATCHER_H

#include "net/loop.h"
#include "pipeline/budget.h"
#include "pipeline/component.h"
#include "profile/collect/collect.h"

/*
 * The open batches of one route (pipeline/intake/pipeline.h). There are as many shards as workers.
 * A document goes as a whole into one shard, chosen by the hash of its batch key (the values of
 * metadata_keys) and of its first resource's service.name, so that dictionaries stay in the cache.
 * A shard has one open batch per batch key, up to a limit beyond which the oldest is closed. A
 * batch closes when it is large enough or old enough, or before the next document would exceed a
 * maximum. Without batching, or without timeout and size, it closes after every document.
 *
 * batcher_add may be called from any worker. A closed packet is passed to `emit` with its
 * reference, outside the shard's lock, on the caller's thread (a worker; or the loop, if a batch is
 * old enough).
 */
struct batcher;

/* GROWTH: the number of bytes by which a document enlarges a packet, unless it refers to the same
 * strings many times or processors add much. FOOTPRINT: about how many bytes of memory an open
 * batch needs for each of these. The caller of batcher_add has charged their product. */
#define BATCHER_GROWTH(body) ((size_t)(body)*2 + ((size_t)32 << 10))
#define BATCHER_FOOTPRINT 3

struct batcher_options {
	const struct batch_settings *settings;
	uint32_t shards;
	unsigned hold_acks; /* the ack modes (ACK_MODE) whose senders wait for the packet */
	struct loop *loop;
	struct budget *budget;
	/* What was added to an open batch, before the batch can be emitted; under its shard's
	 * lock. */
	void (*collected)(void *context, const struct collect_added *added);
	size_t idle_bytes; /* capacity that all empty batches together may keep */
	/* False: no destination accepted it. `request`: the one that is being added, which the
	 * packet ends with; NULL: it has only earlier ones. */
	bool (*emit)(void *context, struct packet *packet, struct request *request);
	void *context;
};

/* An error if a key occurs twice; keys that differ only in case are equal. */
void batcher_check_keys(const struct strings *keys, const char *key, struct faults *faults);

struct batcher *batcher_new(const struct batcher_options *options);

enum batcher_result {
	BATCHER_TAKEN, /* possibly nothing was left to collect */
	/* it was emitted immediately, and no destination had room: counted as dropped at each of
	 * them */
	BATCHER_LOST,
	BATCHER_FAILED /* nothing of it was collected; err gives the reason */
};

enum batcher_result batcher_add(struct batcher *b, const struct profiles *p,
				struct collect_added *added, struct error *err);
/* Closes every open batch. After it returns none is open; later documents are batches of one. */
void batcher_flush(struct batcher *b);
/* [any thread] Batches that are opened from now on are no larger, whatever the settings allow. */
void batcher_bound(struct batcher *b, size_t bytes);
/* On the loop thread, after batcher_flush and with no batcher_add running. */
void batcher_unref(struct batcher **b);

#endif
