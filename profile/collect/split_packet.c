/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/collect/split.h"
#include "profile/otlp/decode_otlp.h"

/* Which packets are within the limits as they are, and the way to the tables of the others. */

bool split_open(const struct packet *packet, struct profiles *p, struct error *err)
{
	return profiles_reset(p, NULL, bytes_view(&packet->otlp), SIZE_MAX / 2)
		       ? decode_otlp(p, err)
		       : profiles_over_cap(p, err);
}

/* Does the packet keep the limits that can be counted? Decided without opening it. */
static bool counts_within(const struct packet *packet, const struct limits *limits)
{
	return limit_allows(packet->samples, limits->samples) &&
	       limit_allows(packet->profiles, limits->profiles) &&
	       limit_allows(packet->resources, limits->resources) &&
	       limit_allows(packet->profiles, limits->series) &&
	       (!packet->oldest || packet->oldest >= limits->oldest) &&
	       limit_allows(packet->newest, limits->newest);
}

bool split_is_whole(const struct packet *packet, const struct limits *limits)
{
	return counts_within(packet, limits) && limit_allows(packet->otlp.len, limits->bytes);
}

bool split_packet(struct packet *packet, const struct limits *limits,
		  const struct split_measure *measure, struct parts *parts, struct error *err)
{
	struct split_size size = { packet->otlp.len, packet->samples };
	if (counts_within(packet, limits)) {
		if (measure && !measure->measure(measure->context, packet, &size, err))
			return false;
		if (limit_allows(size.bytes, limits->bytes) &&
		    limit_allows(size.samples, limits->samples)) {
			parts_add(parts, packet_ref(packet), packet->samples, size.bytes);
			return true;
		}
	}
	struct profiles p = { 0 };
	bool ok = split_open(packet, &p, err) &&
		  split_profiles(&p, packet, limits, measure, parts, err);
	profiles_fini(&p);
	return ok;
}
