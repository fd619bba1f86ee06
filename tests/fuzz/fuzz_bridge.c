/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz_bridge.h"
#include "profile/otlp/decode_layout.h"

/* The generation that the content of a request shows: there is one at least, a request that can be
 * decoded is of the current one, and what cannot is translated from each that it may be of. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static uint32_t candidates_of(struct profiles *p, struct view request)
{
	struct otlp_layout layout = { 0 };
	struct error err = { 0 };
	must(profiles_reset(p, NULL, request, BRIDGE_CAP));
	bool decoded = decode_otlp_any(p, &layout, &err);
	must(layout.candidates && !(layout.candidates & 1));
	must(!decoded || layout.candidates == UINT32_C(1) << OTLP_CURRENT);
	return layout.candidates;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct profiles p;
	struct view request = fuzz_request(data, len);
	uint32_t candidates = candidates_of(&p, request);
	for (; candidates; candidates &= candidates - 1)
		if (candidates >> OTLP_CURRENT != 1)
			fuzz_generation(&p, (enum otlp_generation)__builtin_ctz(candidates),
					request);
	memory_free((void *)request.at);
	return 0;
}
