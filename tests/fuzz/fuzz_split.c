/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "profile/collect/collect.h"
#include "profile/collect/split.h"
#include "profile/otlp/decode_otlp.h"

#include <stdlib.h>

/* Any collected data with any limits: six bytes of limits, then an OTLP message. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { CAP = 16 << 20, HEAD = 6 };
static struct profiles whole, part;

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* Its samples have the order of the whole, starting at `at`. Returns where they end. */
static uint32_t follow(const struct part *p, uint32_t at)
{
	must(profiles_reset(&part, NULL, bytes_view(&p->packet->otlp), 64 * CAP) &&
	     decode_otlp(&part, NULL));
	must(part.samples.count == p->samples && p->bytes == p->packet->otlp.len);
	for (uint32_t i = 0; i < part.samples.count; i++, at++)
		while (!view_equal(span_view(&part, part.samples.at[i].values),
				   span_view(&whole, whole.samples.at[at].values)))
			must(++at < whole.samples.count);
	return at;
}

/* Only an estimated limit may be exceeded, and only by a part that cannot be split further. */
static bool keeps(struct packet *packet, const struct limits *limits)
{
	struct parts smaller = { 0 };
	if (!limits->bytes || packet->otlp.len <= limits->bytes)
		return true;
	must(split_packet(packet, &(struct limits){ .bytes = limits->bytes }, NULL, &smaller,
			  NULL));
	bool none = smaller.count == 0;
	parts_fini(&smaller);
	return limits->guessed && none;
}

static void check(struct packet *packet, const struct limits *limits)
{
	struct parts parts = { .keeps = packet->otlp.len % 2 };
	uint64_t samples = 0, left = 0;
	uint32_t at = 0;
	must(profiles_reset(&whole, NULL, bytes_view(&packet->otlp), 64 * CAP) &&
	     decode_otlp(&whole, NULL));
	must(split_packet(packet, limits, NULL, &parts, NULL));
	for (uint32_t i = 0; i < parts.count; i++) {
		struct packet *p = parts.at[i].packet;
		must(keeps(p, limits));
		must(!limits->samples || p->samples <= limits->samples);
		must(!limits->profiles || p->profiles <= limits->profiles);
		must(!limits->resources || p->resources <= limits->resources);
		at = follow(&parts.at[i], at);
		samples += p->samples;
	}
	for (uint32_t i = 0; i < parts.left.count; i++)
		left += parts.left.at[i].packet->samples;
	must(left == (parts.keeps ? packet->samples - samples : 0));
	must(samples + parts.dropped[PART_TOO_LARGE] + parts.dropped[PART_TOO_OLD] ==
	     packet->samples);
	parts_fini(&parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct profiles p;
	static struct collect *collect;
	struct collect_added added;
	if (len < HEAD)
		return 0;
	const struct limits limits = { .bytes = data[0] * 8,
				       .samples = data[1],
				       .profiles = data[2],
				       .resources = data[3],
				       .series = data[4],
				       .guessed = data[5] & 1,
				       .oldest = data[5] & 2 ? 1 << 30 : 0 };
	uint8_t *input = memory_new(len - HEAD + BYTES_SLACK);
	memcpy(input, data + HEAD, len - HEAD);
	if (!collect)
		collect = collect_new(
			&(struct collect_limits){ .max_bytes = CAP, .hard_bytes = CAP });
	if (profiles_reset(&p, NULL, (struct view){ input, len - HEAD }, CAP) &&
	    decode_otlp(&p, NULL) &&
	    collect_add(collect, &p, false, &added, NULL) == COLLECT_ADDED) {
		struct packet *packet = collect_seal(collect);
		check(packet, &limits);
		packet_unref(&packet);
	}
	memory_free(input);
	return 0;
}
