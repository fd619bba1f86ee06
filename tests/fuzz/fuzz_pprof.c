/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "profile/pprof/decode_pprof.h"
#include "profile/pprof/encode_pprof.h"

#include <stdlib.h>

/* Data that was accepted can be delivered: each pprof created from it can be decoded and has all of
 * its samples. */
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

static void check_encoded(const struct profiles *p)
{
	uint64_t samples = 0;
	if (encode_pprof(p, false, count_samples, &samples, NULL) && samples != p->samples.count)
		abort();
}

/* Decodes the same document again into the same tables: twice the entries, or none of the new ones
 * if the cap is reached. */
static void check_appended(struct profiles *p)
{
	uint32_t profiles = p->profiles.count, samples = p->samples.count, links = p->links.count;
	if (decode_pprof(p, p->input, NULL, NULL)) {
		if (p->profiles.count != 2 * profiles || p->samples.count != 2 * samples ||
		    p->links.count - links != links - 1 || p->resources.count != 2)
			abort();
	} else if (p->profiles.count != profiles || p->samples.count != samples ||
		   p->links.count != links || p->over_cap) {
		abort();
	}
	check_encoded(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct profiles p;
	struct bytes input;
	bytes_init(&input, len + 1);
	bytes_reserve(&input, len + 1);
	bytes_add(&input, data, len);
	if (profiles_reset(&p, NULL, bytes_view(&input), CAP)) {
		if (decode_pprof(&p, p.input, NULL, NULL)) {
			check_encoded(&p);
			check_appended(&p);
		} else if (p.profiles.count || p.samples.count || p.resources.count ||
			   p.strings.count != 1) {
			abort();
		}
	}
	bytes_fini(&input);
	return 0;
}
