/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "profile/otlp/bridge.h"
#include "profile/otlp/decode_layout.h"
#include "profile/otlp/decode_otlp.h"

#include <stdlib.h>

/*
 * The first byte is the generation; 0: what the content shows. The translation of any bytes is
 * bounded, and one that succeeds is a request in the current layout: whatever the sender did wrong
 * is a fault of a Profile, or is reported by the decoder as malformed. Buffers that are shared by
 * one meter never have more than it granted.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { CAP = 16 << 20 };

static void must(bool ok)
{
	if (!ok)
		abort();
}

struct meter {
	struct bytes_meter meter;
	size_t granted;
};

/* Grants what is asked for, up to the cap. */
static bool raise_max(struct bytes_meter *meter, struct bytes *b, size_t need)
{
	struct meter *m = (struct meter *)meter;
	must(b->meter == meter && need > b->max);
	if (m->granted + (need - b->max) > CAP)
		return false;
	m->granted += need - b->max;
	b->max = need;
	return true;
}

static uint32_t candidates_of(struct profiles *p, struct view request)
{
	struct otlp_layout layout = { 0 };
	struct error err = { 0 };
	must(profiles_reset(p, NULL, request, CAP));
	bool decoded = decode_otlp_any(p, &layout, &err);
	must(layout.candidates && !(layout.candidates & 1));
	must(!decoded || layout.candidates == UINT32_C(1) << OTLP_CURRENT);
	return layout.candidates;
}

static void translate(struct profiles *p, enum otlp_generation generation, struct view request)
{
	struct meter m = { .meter = { raise_max } };
	struct error err = { 0 };
	struct bytes out;
	bytes_init(&out, 0);
	out.meter = &m.meter;
	if (bridge_otlp(generation, request, &out, &err)) {
		struct otlp_layout known = { .known = OTLP_CURRENT };
		must(err.kind == ERROR_NONE);
		must(profiles_reset(p, NULL, bytes_view(&out), CAP));
		decode_otlp_any(p, &known, &err);
	} else {
		must(err.kind == ERROR_NONE || err.kind == ERROR_INVALID ||
		     err.kind == ERROR_TOO_LARGE);
	}
	bytes_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct profiles p;
	if (!len)
		return 0;
	uint8_t *input = memory_new(len - 1 + BYTES_SLACK);
	struct view request = { input, len - 1 };
	memcpy(input, data + 1, len - 1);
	uint32_t candidates = UINT32_C(1) << (*data % OTLP_GENERATIONS);
	if (candidates == UINT32_C(1) << OTLP_UNKNOWN)
		candidates = candidates_of(&p, request);
	for (; candidates; candidates &= candidates - 1)
		if (candidates >> OTLP_CURRENT != 1)
			translate(&p, (enum otlp_generation)__builtin_ctz(candidates), request);
	memory_free(input);
	return 0;
}
