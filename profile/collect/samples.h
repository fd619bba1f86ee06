/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_COLLECT_SAMPLES_H
#define PROFILE_COLLECT_SAMPLES_H

#include "profile/collect/dictionary.h"

/*
 * The samples of one Profile on their way into a packet: first their references are copied, then,
 * in a Profile of which something was changed, identical ones are merged, then what is left is
 * written.
 *
 * Identical: same stack, same set of attributes, same link, all after copying, and the same shape,
 * so that each timestamp keeps its value: values only         same number of values: added, unless
 * one would overflow timestamps only     concatenated as many of both     both concatenated A
 * sample of any other shape, or whose sum would overflow, stays as it is. The first of identical
 * samples keeps its place, the others join it in their order.
 */
struct sample_out {
	uint32_t source;        /* in the request's samples */
	uint32_t stack, link;   /* ours */
	struct list attributes; /* in `attributes`: ours */
	uint32_t next, last;    /* chain of those that joined it: indices of outs, 0: none */
	struct list sums;       /* in `sums`: its values, if others were added */
	bool joined;            /* is in the chain of another */
};

struct samples {
	ARRAY(struct sample_out) outs;
	struct indices attributes;
	struct intern identities;
	struct indices key;    /* of the sample that is being looked up in identities */
	struct indices owners; /* identity -> the sample that others join */
	ARRAY(int64_t) sums;
};

void samples_init(struct samples *m, size_t max);
void samples_fini(struct samples *m);

/*
 * Appends the Profile's samples, as its repeated field `samples`, to `out`. False when `out` is
 * full; dictionary_size reports entries that did not fit into the dictionary.
 */
bool samples_put(struct samples *m, struct dictionary *d, const struct profile *profile,
		 struct bytes *out, uint64_t *merged);

size_t samples_footprint(const struct samples *m);

#endif
