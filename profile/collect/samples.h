/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_COLLECT_SAMPLES_H
#define PROFILE_COLLECT_SAMPLES_H

#include "profile/collect/dictionary.h"

/*
 * Copies the samples of one Profile into a packet. First their references are copied. Then, if
 * something in the Profile was changed, identical samples are merged. Then the rest is written.
 *
 * Samples are identical if they have the same stack, the same set of attributes and the same link,
 * all after copying, and the same shape, so that each timestamp keeps its value:
 *
 *   values only        the same number of values: the values are added
 *   timestamps only    the timestamps are concatenated
 *   as many of both    both are concatenated
 *
 * A sample of any other shape, or whose sum would overflow, is left as it is. The first of
 * identical samples keeps its position; the others join it in their order.
 */
struct sample_out {
	uint32_t source;        /* index in the request's samples */
	uint32_t stack, link;   /* our indices */
	struct list attributes; /* in `attributes`: our indices */
	uint32_t next, last;    /* chain of the samples that joined it: indices of outs; 0: none */
	struct list sums;       /* in `sums`: its values, if other samples were added */
	bool joined;            /* is in the chain of another sample */
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

/* Appends the Profile's samples, as its repeated field `samples`, to `out`. False if `out` is full;
 * dictionary_size reports entries that did not fit into the dictionary. */
bool samples_put(struct samples *m, struct dictionary *d, const struct profile *profile,
		 struct bytes *out, uint64_t *merged);

size_t samples_footprint(const struct samples *m);

#endif
