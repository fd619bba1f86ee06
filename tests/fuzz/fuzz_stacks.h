/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_FUZZ_STACKS_H
#define TESTS_FUZZ_FUZZ_STACKS_H

#include "base/memory.h"
#include "profile/text/text.h"
#include "profile/wire.h"

#include <stdlib.h>

/* What holds for each format of profile/text, whatever the bytes are. */

typedef bool stacks_decoder(struct profiles *p, struct view document,
			    const struct text_source *source, struct error *err);

static inline void check_sample(const struct profiles *p, const struct sample *sample)
{
	struct wire value = wire_of(span_view(p, sample->values));
	struct list locations = p->stacks.at[sample->stack].locations;
	uint64_t number = wire_varint(&value);
	if (!wire_done(&value) || !number || number > INT64_MAX ||
	    locations.count > TEXT_FRAMES_MAX || !locations.count != !sample->stack)
		abort();
	for (uint32_t i = 0; i < locations.count; i++) {
		const struct location *location =
			&p->locations.at[p->indices.at[locations.first + i]];
		const struct line *line = &p->lines.at[location->lines.first];
		if (location->lines.count != 1 ||
		    !string_view(p, p->functions.at[line->function].name).len)
			abort();
	}
}

static inline void check_tables(const struct profiles *p)
{
	uint32_t samples = 0;
	if (!profiles_within_cap(p) || p->profiles.count != p->resources.count ||
	    p->profiles.count != p->scopes.count)
		abort();
	for (uint32_t i = 0; i < p->profiles.count; i++) {
		if (!p->profiles.at[i].samples.count)
			abort();
		samples += p->profiles.at[i].samples.count;
	}
	if (samples != p->samples.count)
		abort();
	for (uint32_t i = 0; i < p->samples.count; i++)
		check_sample(p, &p->samples.at[i]);
	for (uint32_t i = 0; i < p->strings.count; i++)
		if (!wire_utf8_slow(string_view(p, i).at, string_view(p, i).len))
			abort();
}

/* The same document behind itself: as much again, or nothing when the cap is reached. */
static inline void check_again(struct profiles *p, stacks_decoder *decode,
			       const struct text_source *source)
{
	uint32_t profiles = p->profiles.count, samples = p->samples.count;
	uint32_t factor = 1u + decode(p, p->input, source, NULL);
	if (p->profiles.count != factor * profiles || p->samples.count != factor * samples)
		abort();
	check_tables(p);
}

static inline int fuzz_stacks(const uint8_t *data, size_t len, stacks_decoder *decode)
{
	static struct profiles p;
	const struct text_source source = { .kind = text_kind_of(view_of("cpu"), NULL),
					    .sample_rate = len % 2 ? 100 : 0,
					    .metric_key = "__name__" };
	struct bytes input;
	bytes_init(&input, len + 1);
	bytes_reserve(&input, len + 1);
	bytes_add(&input, data, len);
	if (profiles_reset(&p, NULL, bytes_view(&input), TEXT_TABLES_FACTOR * len + 65536)) {
		if (decode(&p, p.input, &source, NULL)) {
			check_tables(&p);
			check_again(&p, decode, &source);
		} else if (p.profiles.count || p.samples.count || p.strings.count != 1) {
			abort();
		}
	}
	bytes_fini(&input);
	return 0;
}

#endif
