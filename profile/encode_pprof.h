/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_ENCODE_PPROF_H
#define PROFILE_ENCODE_PPROF_H

#include "profile/profiles.h"

/*
 * OTLP -> pprof. A maximal run of neighbouring Profiles of a scope with equal time, duration, period,
 * attributes and the same sequence of (stack, attributes, link), ending where a sample type repeats,
 * becomes one pprof, as its sender made it. Ids are 1..N in order of first use.
 *
 * Calls `emit` once for each pprof (uncompressed; the bytes are valid during the call). p are the open
 * tables of a sealed packet (decode_otlp of packet->otlp). False when a Profile cannot be represented or
 * emit returned false.
 */
struct pprof_out {
	struct view bytes;
	const struct profile *first; /* of the run: time and duration */
	uint32_t resource, scope;    /* indices into p */
	uint64_t samples;
};

bool encode_pprof(const struct profiles *p, bool (*emit)(const struct pprof_out *out, void *context),
		  void *context, struct error *err);

#endif
