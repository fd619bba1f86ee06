/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "profile/collect/collect.h"
#include "profile/otlp/bridge.h"
#include "profile/otlp/decode_otlp.h"
#include "profile/otlp/encode_json.h"
#include "profile/otlp/encode_older.h"

#include <stdlib.h>

/* Data that was accepted can be delivered: it is collected, the sealed bytes can be decoded again,
 * and they can be written as JSON, and in the layout of 1.9, whose translation is the same bytes.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { CAP = 16 << 20 };

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void check_older(const struct packet *packet)
{
	struct bytes older, back;
	bytes_init(&older, 4 * CAP);
	bytes_init(&back, 4 * CAP);
	must(encode_1_8(packet, &older, NULL) && older.len == packet->otlp.len);
	older.len = 0;
	must(encode_1_9(packet, &older, NULL));
	must(bridge_otlp(OTLP_1_9, bytes_view(&older), &back, NULL));
	must(view_equal(bytes_view(&back), bytes_view(&packet->otlp)));
	bytes_fini(&older);
	bytes_fini(&back);
}

static void check_packet(const struct packet *packet, const struct collect_added *added)
{
	static struct profiles again;
	struct bytes json;
	bytes_init(&json, 4 * CAP);
	must(profiles_reset(&again, NULL, bytes_view(&packet->otlp), 64 * CAP));
	must(decode_otlp(&again, NULL) && again.rejected_profiles == 0 &&
	     again.repaired_strings == 0);
	must(again.profiles.count == added->profiles && again.samples.count == packet->samples);
	must(encode_json(packet, &json, NULL));
	check_older(packet);
	bytes_fini(&json);
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
		check_packet(packet, &added);
		packet_unref(&packet);
	}
	memory_free(input);
	return 0;
}
