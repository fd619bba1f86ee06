/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_COLLECT_COLLECT_H
#define PROFILE_COLLECT_COLLECT_H

#include "profile/packet.h"
#include "profile/profiles.h"

/*
 * The policy gate: copies an open request into the tables of a growing packet. It starts from
 * resources, Profiles and samples, and follows references. What no permitted reference reaches is
 * never copied, so nothing else can leave the program. Each dictionary table is an append-only
 * buffer in wire format with a hash index; sealing costs a memcpy.
 *
 * Canonical output: strings of resources, scopes and attributes are inline; every table has its
 * zero entry; stack 0 and location 0 are not used (a sample with an empty stack refers to an
 * interned empty stack); Resource and Scope are always present; equal entries occur once.
 *
 * Order: the Profiles of one request keep their order and stay together within a scope. Identical
 * samples (stack, attribute set, link) are merged only in a Profile in which something was changed
 * or removed: timestamps are concatenated, each with its value; values without timestamps are added
 * unless the sum would overflow. An unchanged Profile keeps its samples as they are.
 *
 * Not thread-safe: the owner (a batch shard) holds a lock.
 */
struct collect;

struct collect_limits {
	size_t max_bytes;     /* of the sealed packet; the first request may exceed it */
	uint64_t max_samples; /* 0: no limit */
	size_t hard_bytes;    /* no packet ever exceeds it: ERROR_TOO_LARGE */
	/* All requests are parts of one: they have the same tables except for resources, scopes and
	 * Profiles. The cost of adding one then depends on what it refers to, not on the size of
	 * the tables. */
	bool same_tables;
};

/* The result of adding one request. */
struct collect_added {
	uint32_t profiles;         /* collected */
	uint32_t dropped_profiles; /* removed by processors */
	uint64_t samples_in, samples_merged, samples_dropped;
};

enum collect_result {
	COLLECT_ADDED,
	COLLECT_NOTHING, /* nothing was left to collect */
	/* would exceed max_bytes or max_samples: rolled back; seal and try again */
	COLLECT_FULL,
	COLLECT_OUTGROWN, /* would exceed what collect_allow permits: rolled back */
	COLLECT_FAILED    /* rolled back; err gives the reason */
};

struct collect *collect_new(const struct collect_limits *limits);
void collect_unref(struct collect **collect);

/*
 * Adds a request, completely or not at all. p->request supplies receiver, arrival and ack. If
 * hold_ack is set, collect takes its own hold on the ack (see struct contribution). Whoever seals
 * the packet releases it (packet_release_acks); collect_unref releases it as failed. The request's
 * tables are not changed.
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
size_t collect_bytes(const struct collect *c);     /* size of the packet if it were sealed now */
size_t collect_footprint(const struct collect *c); /* memory held */

/* Returns the sealed packet, with one reference. The collector is then empty and keeps its
 * capacity. */
struct packet *collect_seal(struct collect *c);
/* The same of a request without data: no Profile, but a Resource and a Scope, both empty, because
 * some stores reject a request without any. */
struct packet *collect_nothing(void);

/* Discards the added requests, as collect_unref does; keeps the capacity. */
void collect_discard(struct collect *c);

/* Frees capacity above `keep` bytes; only while empty. */
void collect_shrink(struct collect *c, size_t keep);

#endif
