/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "profile/collect/collect.h"
#include "profile/collect/split.h"
#include "profile/otlp/decode_otlp.h"
#include "profile/stores/encode_push.h"
#include "profile/stores/regroup.h"
#include "profile/wire.h"

#include <stdlib.h>

/* Whatever is delivered becomes requests of one series each, in a form that such a store accepts.
 * No sample is lost. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { CAP = 16 << 20, SAMPLES = 5 };

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* One series with one pprof, unless there are very many: of several, the store may accept some and
 * reject the others. */
static bool has_one_pprof(struct view request)
{
	enum { SERIES = 1, SAMPLE = 2 };
	struct wire w = wire_of(request), series;
	struct wire_field f;
	uint32_t pprofs = 0;
	must(wire_next(&w, &f) && f.number == SERIES && !wire_more(&w));
	for (series = wire_of(f.view); wire_next(&series, &f);)
		pprofs += f.number == SAMPLE;
	return pprofs == 1;
}

static uint64_t check_part(const struct part *part, bool alone)
{
	struct bytes request;
	struct error err = { 0 };
	bytes_init(&request, PROFILES_INPUT_MAX);
	must(part->packet->resources == 1 && part->packet->samples <= SAMPLES);
	must(encode_push(part->packet, &request, &err) &&
	     encode_push_labels(bytes_view(&request)).len > 0);
	must(encode_push_samples(bytes_view(&request)) <= SAMPLES &&
	     (has_one_pprof(bytes_view(&request)) || !alone));
	bytes_fini(&request);
	return part->samples;
}

static void regroup_and_split(struct packet *packet, bool utf8)
{
	static struct slots *slots;
	static struct profiles p;
	const struct series_rules rules = {
		.utf8 = utf8, .names_max = 6, .name_max = 16, .value_max = 16
	};
	const struct limits limits = { .resources = 1, .samples = SAMPLES };
	struct series_labels labels;
	struct parts parts = { 0 };
	struct error err = { 0 };
	uint64_t samples = 0;
	slots = slots ? slots : slots_new();
	series_init(&labels, &rules);
	struct regroup r = { .series = &labels, .slots = slots, .stack_max = 3, .now = 1 };
	must(split_open(packet, &p, &err) && regroup_by_series(&r, &p, &err));
	must(split_profiles(&p, packet, &limits, NULL, &parts, &err));
	for (uint32_t i = 0; i < parts.count; i++)
		samples += check_part(&parts.at[i], packet->profiles <= 256);
	must(samples == packet->samples);
	parts_fini(&parts);
	series_fini(&labels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct profiles p;
	static struct collect *collect;
	struct request request = { .receiver = "fuzz" };
	struct collect_added added;
	uint8_t *input = memory_new(len + BYTES_SLACK);
	memcpy(input, data, len);
	if (!collect)
		collect = collect_new(
			&(struct collect_limits){ .max_bytes = CAP, .hard_bytes = CAP });
	if (profiles_reset(&p, &request, (struct view){ input, len }, CAP) &&
	    decode_otlp(&p, NULL) &&
	    collect_add(collect, &p, false, &added, NULL) == COLLECT_ADDED) {
		struct packet *packet = collect_seal(collect);
		regroup_and_split(packet, len & 1);
		packet_unref(&packet);
	}
	memory_free(input);
	return 0;
}
