/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "profile/pprof/decode_pprof.h"
#include "profile/pprof/encode_pprof.h"

#include <stdlib.h>

/* What was taken can be given: each pprof made of it is decodable, and has all of its samples. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { CAP = 16 << 20 };

static bool count_samples(const struct pprof_out *out, void *context)
{
	struct profiles again = { 0 };
	uint64_t *samples = context;
	if (!profiles_reset(&again, NULL, out->bytes, 64 * CAP) ||
	    !decode_pprof(&again, again.input, NULL, NULL))
		abort();
	*samples += again.samples.count;
	profiles_fini(&again);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct profiles p;
	struct bytes input;
	uint64_t samples = 0;
	bytes_init(&input, len + 1);
	bytes_reserve(&input, len + 1);
	bytes_add(&input, data, len);
	if (profiles_reset(&p, NULL, bytes_view(&input), CAP) &&
	    decode_pprof(&p, p.input, NULL, NULL) &&
	    encode_pprof(&p, false, count_samples, &samples, NULL) && samples != p.samples.count)
		abort();
	bytes_fini(&input);
	return 0;
}
