/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_COLLECT_SPLIT_H
#define PROFILE_COLLECT_SPLIT_H

#include "profile/parts.h"
#include "profile/profiles.h"

/*
 * Splits one packet into the requests that its destination accepts. The sequence of all samples (of
 * the resources, their scopes, their Profiles, in order) is cut into contiguous ranges. A Profile
 * is cut only if it alone exceeds a limit. Each range becomes a sealed packet of its own, through
 * collect, with its own minimal dictionary and with everything that identifies its resources,
 * scopes and Profiles. Nothing is reordered or merged, so values, times and attributes are
 * preserved. Pure: the same input and limits result in the same parts in the same order.
 *
 * The cost is linear in the size of input and output, regardless of the number of parts. Any
 * thread.
 */
/* A destination's own measure, if it differs from that of OTLP: the bytes and samples of the
 * request that the exporter creates from this packet. A candidate may be the packet itself that is
 * being split, which others share. */
struct split_size {
	uint64_t bytes, samples;
};

struct split_measure {
	bool (*measure)(void *context, struct packet *candidate, struct split_size *size,
			struct error *err);
	void *context;
};

/* Is the packet within all limits as it is, as measured by OTLP? Cheap; may return false although
 * it is. */
bool split_is_whole(const struct packet *packet, const struct limits *limits);

/* Appends the parts of a packet to `parts`. If it is within all limits, that is the packet itself,
 * not decoded. measure: NULL for OTLP. False, with `parts` unchanged, only if the packet or a
 * candidate cannot be read or measured. */
bool split_packet(struct packet *packet, const struct limits *limits,
		  const struct split_measure *measure, struct parts *parts, struct error *err);

/* For exporters that rewrite before they split: opens the packet's tables (zeroed before the first
 * open; request is NULL). The caller may change them as processors do, and may keep them for the
 * next packet. */
bool split_open(const struct packet *packet, struct profiles *p, struct error *err);

/* For limits.groups: orders the resources by group, and `groups`, which has the group of each, with
 * them. Those of group 0 are left out. Returns the number of different groups. */
uint32_t split_groups(struct profiles *p, uint32_t *groups);

/* As split_packet, for tables that were made from `whole`. The parts inherit its batch key, its
 * arrival and (unless `parts` has one) its account. A part's `samples` count the input: identical
 * samples of a Profile marked as changed are merged as usual. */
bool split_profiles(const struct profiles *p, const struct packet *whole,
		    const struct limits *limits, const struct split_measure *measure,
		    struct parts *parts, struct error *err);

#endif
