/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/store_limits.h"

#include "base/clock.h"

#define MINUTE_NS (60 * UINT64_C(1000000000))

const char *const store_names[] = { "none", "pyroscope", "parca", NULL };

/* The number of samples is a limit of each profile; a request of one profile has no others. */
static struct limits pyroscope(uint64_t now)
{
	return (struct limits){ .bytes = STORE_PYROSCOPE_BURST,
				.samples = 16000,
				.oldest = now - 60 * MINUTE_NS,
				.newest = now + 10 * MINUTE_NS };
}

void store_limits(enum store store, struct limits *limits)
{
	*limits = (struct limits){ 0 };
	if (store == STORE_PYROSCOPE)
		*limits = pyroscope(clock_wall());
	/* Parca accepts 64 MiB, but only if all of it arrives within 5 s. */
	if (store == STORE_PARCA)
		limits->bytes = UINT64_C(16) << 20;
}
