/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/delta.h"
#include "profile/pprof/decode_pprof.h"

#include <stdlib.h>

/* The two halves of the input are profiles of one target. After the second, its own state says that
 * nothing is left but levels. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { CAP = 16 << 20 };

static struct delta *apply(struct profiles *p, struct view input, const struct delta *before,
			   enum delta_result *result)
{
	struct error err = { 0 };
	if (!profiles_reset(p, NULL, input, CAP) || !decode_pprof(p, p->input, NULL, NULL))
		return NULL;
	uint32_t samples = p->samples.count;
	struct delta *now = delta_apply(p, before, result, &err);
	if (!now != (err.kind != ERROR_NONE) || p->samples.count != samples)
		abort();
	for (uint32_t i = 1; now && i < p->profiles.count; i++)
		if (p->profiles.at[i].samples.count != p->profiles.at[0].samples.count)
			abort();
	return now;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct profiles p;
	struct bytes first, second;
	enum delta_result result;
	size_t half = len ? 1 + data[0] * (len - 1) / 256 : 0;
	bytes_init(&first, len + 1);
	bytes_init(&second, len + 1);
	bytes_reserve(&first, len + 1);
	bytes_reserve(&second, len + 1);
	bytes_add(&first, data + (len > 0), half - (len > 0));
	bytes_add(&second, data + half, len - half);
	struct delta *a = apply(&p, bytes_view(&first), NULL, &result);
	if (a && result != DELTA_FIRST)
		abort();
	struct delta *b = a ? apply(&p, bytes_view(&second), a, &result) : NULL;
	struct delta *c = b ? apply(&p, bytes_view(&second), b, &result) : NULL;
	if (c && (delta_bytes(c) != delta_bytes(b) || result == DELTA_FIRST))
		abort();
	delta_unref(&a);
	delta_unref(&b);
	delta_unref(&c);
	bytes_fini(&first);
	bytes_fini(&second);
	return 0;
}
