/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_COLLECT_COLLECT_H
#define PROFILE_COLLECT_COLLECT_H

#include "profile/packet.h"
#include "profile/profiles.h"

/*
 * The policy gate: copies an open request into the tables of a growing packet, starting from
 * resources, profiles and samples and following references. What no permitted reference reaches is
 * never copied, so nothing else can leave. Each dictionary table is an append-only buffer already
 * in wire format with a hash index; sealing costs a memcpy.
 *
 * Canonical output: resource, scope and attribute strings inline; every table with its zero entry;
 * no stack or location 0 in use (a sample with an empty stack refers to an interned empty stack);
 * Resource and Scope always present; equal entries once.
 *
 * Order: the Profiles of one request keep their order and stay together within a scope. Identical
 * samples (stack, attribute set, link) are merged only inside a Profile of which something changed
 * or was removed: timestamps are concatenated, each with its value; values without timestamps are
 * added unless they would overflow. Untouched Profiles leave as they came.
 *
 * Not thread-safe: the owner (a batch shard) locks around it.
 */
struct collect;

struct collect_limits {
	size_t max_bytes; /* of the sealed packet; a first request may exceed it (hard cap below) */
	uint64_t max_samples; /* 0: none */
	size_t hard_bytes;    /* no packet ever exceeds it: ERROR_TOO_LARGE */
	/* All requests are cuts of one: the same tables but for resources, scopes and Profiles.
	 * Adding one then costs what it refers to, not what the tables hold. */
	bool same_tables;
};

/* The result of adding one request. */
struct collect_added {
	uint32_t profiles;         /* collected */
	uint32_t dropped_profiles; /* taken out by processors */
	uint64_t samples_in, samples_merged, samples_dropped;
};

enum collect_result {
	COLLECT_ADDED,
	COLLECT_NOTHING,  /* nothing was left to collect */
	COLLECT_FULL,     /* would exceed max_bytes or max_samples: rolled back; seal and retry */
	COLLECT_OUTGROWN, /* would need more than collect_allow permits: rolled back */
	COLLECT_FAILED    /* err says why: rolled back */
};

struct collect *collect_new(const struct collect_limits *limits);
void collect_unref(struct collect **collect);

/*
 * All or nothing. p->request gives receiver, arrival and ack; collect takes its own hold on the ack
 * when hold_ack is set (see struct contribution); who seals it releases it (packet_release_acks),
 * or collect_unref, as failed. The request's tables stay unchanged.
 */
enum collect_result collect_add(struct collect *c, const struct profiles *p, bool hold_ack,
				struct collect_added *added, struct error *err);

/*
 * The number of bytes by which each following request may enlarge the packet. Without this call, or
 * with SIZE_MAX, it is unlimited. A string that a request references a thousand times inline is
 * written to the packet a thousand times.
 */
void collect_allow(struct collect *c, size_t growth);

bool collect_empty(const struct collect *c);
uint64_t collect_samples(const struct collect *c);
size_t collect_bytes(const struct collect *c);     /* of the packet if it were sealed now */
size_t collect_footprint(const struct collect *c); /* memory held */

/* The sealed packet, with one reference; the collector is empty then and keeps its capacity. */
struct packet *collect_seal(struct collect *c);

/* Discards the added requests, as collect_unref does; keeps the capacity. */
void collect_discard(struct collect *c);

/* Frees capacity above `keep` bytes; only while empty. */
void collect_shrink(struct collect *c, size_t keep);

#endif
