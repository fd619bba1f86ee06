/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_COLLECT_SPLIT_H
#define PROFILE_COLLECT_SPLIT_H

#include "profile/parts.h"
#include "profile/profiles.h"

/*
 * Splits one packet into the requests that its destination accepts. The sequence of all samples (of
 * the resources, their scopes, their Profiles, in order) is cut into contiguous ranges, inside a
 * Profile only where that Profile alone is over a limit; each range becomes a sealed packet of its
 * own, through collect, with its own minimal dictionary and with everything that identifies its
 * resources, scopes and Profiles. Nothing is reordered, nothing is merged, so values, times and
 * attributes are conserved. Pure: same input and limits, same parts in the same order.
 *
 * The cost is linear in the size of input and output, regardless of the number of parts. Any
 * thread.
 */
/*
 * A destination's own measure, if it is not that of OTLP: the bytes and samples of the request that
 * it creates from this packet. A candidate may be the packet that is being split itself, which
 * others share.
 */
struct split_size {
	uint64_t bytes, samples;
};

struct split_measure {
	bool (*measure)(void *context, struct packet *candidate, struct split_size *size,
			struct error *err);
	void *context;
};

/* Is the packet within all limits as it is, as measured by OTLP? Cheap; false may be wrong. */
bool split_is_whole(const struct packet *packet, const struct limits *limits);

/*
 * Appends the parts of a packet to `parts`: the packet itself, not decoded, where it keeps all
 * limits. measure: NULL for OTLP. False, and parts as they were, only when the packet or a
 * candidate cannot be read or measured.
 */
bool split_packet(struct packet *packet, const struct limits *limits,
		  const struct split_measure *measure, struct parts *parts, struct error *err);

/*
 * For exporters that rewrite before they split: the packet's open tables (zeroed before the first
 * open; request is NULL), which the caller may change as processors do, and may keep for the next.
 */
bool split_open(const struct packet *packet, struct profiles *p, struct error *err);

/* As split_packet, of tables that were made from `whole`, whose batch key, arrival and (unless
 * `parts` has one) account the parts inherit. A part's `samples` count what went in: identical
 * samples of a Profile marked as changed are merged, as always. */
bool split_profiles(const struct profiles *p, const struct packet *whole,
		    const struct limits *limits, const struct split_measure *measure,
		    struct parts *parts, struct error *err);

#endif
