/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_PARTS_H
#define PROFILE_PARTS_H

#include "profile/packet.h"

/* The requests that a packet becomes at one destination, and the limits that say so.
 * profile/collect/split.h makes them. */
struct limits { /* what a destination takes in one request; 0: not limited */
	uint64_t bytes;
	uint64_t samples, profiles, resources;
	uint64_t series; /* distinct (scope, sample type, Profile attributes) */
	/* of a Profile's time, ns since the epoch; one without time is never too old */
	uint64_t oldest, newest;
	/* nobody named `bytes`: what no cut would bring below it is sent uncut */
	bool guessed;
	/* Of tables that are split (split_profiles): the group of each resource, by its index. A
	 * request holds resources of one group; those of a group are neighbours. Borrowed; NULL:
	 * any. */
	const uint32_t *groups;
	/* The same for Profiles that a request may hold together (pprof_runs), by the index of the
	 * Profile. */
	const uint32_t *runs;
	/* Members of the destination for which too much waits: a plan gives what is new to others,
	 * if there are any. Ends with 0. Borrowed; NULL: none. */
	const uint32_t *avoided;
};

static inline bool limit_allows(uint64_t is, uint64_t limit)
{
	return !limit || is <= limit;
}

enum part_dropped { PART_TOO_LARGE, PART_TOO_OLD, PART_TOO_NEW, PART_DROPPED };

struct part { /* one request to a destination */
	/* holds exactly what this request sends; a reference of the parts' */
	struct packet *packet;
	uint64_t samples; /* of the packet that was planned */
	uint64_t bytes;   /* by the destination's arithmetic; 0: not known */
	/* Set by an exporter's plan (pipeline/delivery/plan.c): the packet belongs to the plan and
	 * has been rewritten for the destination. */
	bool planned;
	/* Its first Profile is the rest of the last one of the part before. Valid until the parts
	 * are split again. */
	bool continues;
	/* The group of its resources (limits.groups). A member of an exporter that has several
	 * (pipeline/delivery/lanes.h). 0: none */
	uint32_t group;
};

/* What is in no part. */
struct part_left {
	struct packet *packet; /* holds exactly that; a reference of the parts' */
	uint64_t samples;
	enum part_dropped why;
};

struct parts {
	struct part *at;
	uint32_t count, room;
	uint64_t dropped[PART_DROPPED]; /* samples that are in no part, by reason */
	/* Samples that are in no part are to be sealed too, for dead letters. `left` may lack some
	 * of them: where that would take too much work, or several MiB for a few bytes. */
	bool keeps;
	struct parts_left {
		struct part_left *at;
		uint32_t count, room;
	} left;
	/* of packets that are made for it; NULL: that of the packet they are made of */
	packet_charge *charge;
	void *charge_context;
};

/* Takes over the reference. */
void parts_add(struct parts *parts, struct packet *packet, uint64_t samples, uint64_t bytes);
/* The same for what is in no part. */
void parts_leave(struct parts *parts, struct packet *packet, uint64_t samples,
		 enum part_dropped why);
void parts_forget_left(struct parts *parts, uint32_t first); /* from this one on */
void parts_clear(struct parts *parts);                       /* keeps the room and the account */
void parts_fini(struct parts *parts);

#endif
