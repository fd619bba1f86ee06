/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_THIN_H
#define PROFILE_THIN_H

#include "profile/profiles.h"

/*
 * Thins the samples of a Profile: keeps a share of them, with larger values, so that totals stay
 * right.
 *
 * Stratified sampling in proportion to the values. The values of a Profile, laid end to end, are a
 * line of length V. It is cut into strata of (almost) equal length, one for each value to keep. In
 * each stratum one point is drawn at random, and the value that covers the point gets the length
 * of the stratum. Then
 *  - the sum over the Profile is exactly V, whatever was drawn;
 *  - the expected value of each stack is exactly what it was (a value covers each point of its part
 *    of the line with probability 1/length, and gets length for it);
 *  - values that are larger than a stratum are never lost.
 * All arithmetic is on integers.
 *
 * A timestamp is kept if its value is. A sample with timestamps only counts one for each; what is
 * kept of it has values.
 *
 * This would be wrong for:
 *  - Profiles with cumulative values: the total of each stays right, but a store subtracts them
 *    stack by stack. They are recognised by the attribute
 *    otlp.profile.aggregation_temporality=cumulative, or, without it, as the types that Go
 *    counts from the start of the process: alloc_objects, alloc_space, contentions, delay;
 *  - negative values (differences), and sums beyond 64 bits;
 *  - samples with several values but not one for each timestamp.
 */
bool thin_applies(const struct profiles *p, const struct profile *profile);

enum { THIN_ALL = 1 << 16 }; /* a share of 1 */

/*
 * Keeps at most `share`/THIN_ALL of the values, but at least one. `random` is the state of the
 * random numbers; the same state and the same tables have the same result. thin_applies must be
 * true. Returns the number of samples that were removed. p->over_cap is set if the new values do
 * not fit into the cap.
 */
uint32_t thin_profile(struct profiles *p, struct profile *profile, uint32_t share,
		      uint64_t *random);

#endif
