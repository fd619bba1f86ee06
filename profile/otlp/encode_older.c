/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/otlp/encode_older.h"
#include "profile/otlp/each_profile.h"
#include "profile/wire.h"

/* A copy of the sealed bytes, in which field numbers are replaced. */
struct older {
	const uint8_t *sealed;
	uint8_t *copy;
};

static uint8_t *place(const struct older *older, const uint8_t *at)
{
	return older->copy + (at - older->sealed);
}

static uint8_t *put(uint8_t *to, uint8_t tag, const uint8_t *from, const uint8_t *end)
{
	size_t len = (size_t)(end - from);
	if (!len)
		return to;
	memcpy(to, from, len);
	*to = tag;
	return to + len;
}

/* Sealed samples have each field at most once, packed, in order. The fields are written in the
 * order of their new numbers. */
static void renumber_sample(const struct older *older, struct view sample)
{
	struct wire w = wire_of(sample);
	if (wire_is(&w, WIRE_TAG(1, WIRE_VARINT)))
		wire_varint(&w);
	const uint8_t *attributes = w.at;
	if (wire_is(&w, WIRE_TAG(2, WIRE_LEN)))
		wire_len(&w);
	const uint8_t *link = w.at;
	if (wire_is(&w, WIRE_TAG(3, WIRE_VARINT)))
		wire_varint(&w);
	const uint8_t *values = w.at;
	if (wire_is(&w, WIRE_TAG(4, WIRE_LEN)))
		wire_len(&w);
	uint8_t *to = place(older, attributes);
	to = put(to, WIRE_TAG(2, WIRE_LEN), values, w.at);
	to = put(to, WIRE_TAG(3, WIRE_LEN), attributes, link);
	put(to, WIRE_TAG(4, WIRE_VARINT), link, values);
}

static void renumber_samples(void *context, struct view profile)
{
	struct wire w = wire_of(profile);
	while (wire_more(&w)) {
		uint32_t tag = wire_tag(&w);
		if (tag == WIRE_TAG(2, WIRE_LEN))
			renumber_sample(context, wire_len(&w));
		else
			wire_skip(&w, tag);
	}
}

/* In 1.8, field 7 is comment_strindices, and what is field 7 and higher today follows it. */
static void renumber_profile(void *context, struct view profile)
{
	struct wire w = wire_of(profile);
	renumber_samples(context, profile);
	while (wire_more(&w)) {
		const uint8_t *at = w.at;
		uint32_t tag = wire_tag(&w);
		if (tag == WIRE_TAG(2, WIRE_LEN)) {
			wire_skip_run(&w, tag);
			continue;
		}
		if (tag >> 3 >= 7)
			*place(context, at) = (uint8_t)(tag + WIRE_TAG(1, 0));
		wire_skip(&w, tag);
	}
}

static bool encode(const struct packet *packet, visit_profile *renumber, struct bytes *out,
		   struct error *err)
{
	struct view sealed = bytes_view(&packet->otlp);
	if (!bytes_add(out, sealed.at, sealed.len))
		return error_set(err, ERROR_TOO_LARGE, "the request exceeds %zu bytes", out->max);
	if (!sealed.len)
		return true;
	struct older older = { sealed.at, out->at + out->len - sealed.len };
	each_profile(sealed, renumber, &older);
	return true;
}

bool encode_1_8(const struct packet *packet, struct bytes *out, struct error *err)
{
	return encode(packet, renumber_profile, out, err);
}

bool encode_1_9(const struct packet *packet, struct bytes *out, struct error *err)
{
	return encode(packet, renumber_samples, out, err);
}
