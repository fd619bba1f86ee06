/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_FUZZ_BRIDGE_H
#define TESTS_FUZZ_FUZZ_BRIDGE_H

#include "base/memory.h"
#include "profile/otlp/bridge.h"
#include "profile/otlp/decode_otlp.h"

#include <stdlib.h>

/*
 * The translation of any bytes, taken for a request of a generation, is bounded, and one that
 * succeeds is a request in the current layout: whatever the sender did wrong is a fault of a
 * Profile, or is reported by the decoder as malformed. Buffers that are shared by one meter never
 * have more than it granted. Each generation has a target of its own.
 */
enum { BRIDGE_CAP = 16 << 20 };

static inline void must(bool ok)
{
	if (!ok)
		abort();
}

struct bridge_meter {
	struct bytes_meter meter;
	size_t granted;
};

/* Grants what is asked for, up to the cap. */
static inline bool bridge_raise(struct bytes_meter *meter, struct bytes *b, size_t need)
{
	struct bridge_meter *m = (struct bridge_meter *)meter;
	must(b->meter == meter && need > b->max);
	if (m->granted + (need - b->max) > BRIDGE_CAP)
		return false;
	m->granted += need - b->max;
	b->max = need;
	return true;
}

static inline void fuzz_generation(struct profiles *p, enum otlp_generation generation,
				   struct view request)
{
	struct bridge_meter m = { .meter = { bridge_raise } };
	struct error err = { 0 };
	struct bytes out;
	bytes_init(&out, 0);
	out.meter = &m.meter;
	if (bridge_otlp(generation, request, &out, &err)) {
		struct otlp_layout known = { .known = OTLP_CURRENT };
		must(err.kind == ERROR_NONE);
		must(profiles_reset(p, NULL, bytes_view(&out), BRIDGE_CAP));
		decode_otlp_any(p, &known, &err);
	} else {
		must(err.kind == ERROR_NONE || err.kind == ERROR_INVALID ||
		     err.kind == ERROR_TOO_LARGE);
	}
	bytes_fini(&out);
}

/* The bytes with the slack that a reader may touch, and no more, so that sanitizers find any other
 * read past the end. */
static inline struct view fuzz_request(const uint8_t *data, size_t len)
{
	uint8_t *input = memory_new(len + BYTES_SLACK);
	if (len)
		memcpy(input, data, len);
	return (struct view){ input, len };
}

static inline int fuzz_bridge(enum otlp_generation generation, const uint8_t *data, size_t len)
{
	static struct profiles p;
	struct view request = fuzz_request(data, len);
	fuzz_generation(&p, generation, request);
	memory_free((void *)request.at);
	return 0;
}

#endif
