/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BENCH_PEERS_CLOCK_H
#define TESTS_BENCH_PEERS_CLOCK_H

#include <time.h>

#define EXPORT_METHOD "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"

static inline double seconds_of(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline double now(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

static inline double cpu_used(void)
{
	return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

#endif
