/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_PPROF_ENCODE_PPROF_H
#define PROFILE_PPROF_ENCODE_PPROF_H

#include "profile/profiles.h"

/*
 * OTLP -> pprof. Each run of a scope's Profiles (profile/pprof/pprof_run.h) becomes one pprof, as
 * its sender made it. Ids are 1..N in order of first use.
 *
 * Values of a sample are added; timestamps without values count 1 each. Sample attributes become
 * labels (arrays one for each element; what is neither text nor integer as text), Links the labels
 * trace_id and span_id. Flags of a mapping that has none of their attributes follow from what its
 * lines show: without them viewers would symbolise again. What pprof has no field for does not
 * leave: timestamps, resource attributes, scopes, profile ids, all other attributes of profiles,
 * mappings and locations.
 *
 * Calls `emit` once for each pprof (uncompressed; the bytes are valid during the call). p are the
 * open tables of a sealed packet (decode_otlp of packet->otlp). False when emit returned false, or
 * with ERROR_TOO_LARGE when one pprof would have more than 1 MiB and 32 times the bytes of the
 * packet. signs_apart: a sample with values of both signs becomes two, for readers that drop a
 * sample with a negative value.
 */
struct pprof_out {
	struct view bytes;
	const struct profile *first; /* of the run: time and duration */
	uint32_t resource, scope;    /* indices into p */
	uint64_t samples;            /* as OTLP counts them: of all Profiles of the run */
};

bool encode_pprof(const struct profiles *p, bool signs_apart,
		  bool (*emit)(const struct pprof_out *out, void *context), void *context,
		  struct error *err);

/*
 * A Profile samples/count of a period cpu/nanoseconds with this attribute gets a second sample type
 * cpu/nanoseconds, the count times the period, unless a product would overflow: the shape of Go's
 * CPU profiles, which stores know.
 */
#define PPROF_CPU_TIME "pprof.profile.with_cpu_time"

/* The one number that pprof has for a sample: the sum of its values, or the nearest that an int64
 * can hold; without values how many timestamps it has. */
uint64_t encode_pprof_value(const struct profiles *p, const struct sample *sample);

#endif
