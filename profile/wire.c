/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/wire.h"

static const char *const fault_texts[] = {
	[WIRE_OK] = "is well-formed",
	[WIRE_TRUNCATED] = "is truncated",
	[WIRE_LONG] = "contains a varint of more than 64 bits",
	[WIRE_BAD_TAG] = "contains an invalid tag",
	[WIRE_MISMATCH] = "contains a known field with the wrong wire type",
};

const char *wire_fault_text(enum wire_fault fault)
{
	return fault_texts[fault];
}

struct wire_long wire_varint_long(const uint8_t *at)
{
	uint64_t word = wire_load(at);
	if (at[2] < 0x80)
		return (struct wire_long){
			(word & 0x7f) | (word >> 1 & 0x3f80) | (word >> 2 & 0x1fc000), at + 3
		};
	if (at[3] < 0x80)
		return (struct wire_long){ (word & 0x7f) | (word >> 1 & 0x3f80) |
						   (word >> 2 & 0x1fc000) | (word >> 3 & 0xfe00000),
					   at + 4 };
	uint64_t ends = ~word & 0x8080808080808080;
	if (__builtin_expect(ends != 0, 1)) {
		word &= ends ^ (ends - 1);
		return (struct wire_long){ wire_squeeze(word & 0x7f7f7f7f7f7f7f7f),
					   at + (__builtin_ctzll(ends) >> 3) + 1 };
	}
	uint64_t value = wire_squeeze(word & 0x7f7f7f7f7f7f7f7f);
	uint64_t ninth = at[8], tenth = at[9];
	value |= (ninth & 0x7f) << 56;
	if (ninth < 0x80)
		return (struct wire_long){ value, at + 9 };
	return (struct wire_long){ value | tenth << 63, tenth > 1 ? NULL : at + 10 };
}

uint8_t *wire_put_long(uint8_t *at, uint64_t value)
{
	if (value >> 56)
		return wire_put_varint(at, value);
	size_t len = wire_varint_len(value);
	uint64_t more = 0x8080808080808080 & (((uint64_t)1 << (8 * len - 8)) - 1);
	wire_store(at, wire_spread(value) | more);
	return at + len;
}

struct wire wire_skipped(struct wire w, uint32_t tag)
{
	switch (tag < 8 ? 3 : tag & 7) {
	case WIRE_VARINT:
		wire_varint(&w);
		break;
	case WIRE_FIXED64:
		w.at += 8;
		break;
	case WIRE_LEN:
		wire_len(&w);
		break;
	case WIRE_FIXED32:
		w.at += 4;
		break;
	default:
		wire_fail(&w, WIRE_BAD_TAG);
	}
	return w;
}

bool wire_next(struct wire *w, struct wire_field *field)
{
	if (!wire_more(w))
		return false;
	uint32_t tag = wire_tag(w);
	*field = (struct wire_field){ .number = tag >> 3, .type = tag & 7 };
	switch (tag < 8 ? 3 : field->type) {
	case WIRE_VARINT:
		field->value = wire_varint(w);
		break;
	case WIRE_FIXED64:
		field->value = wire_fixed64(w);
		break;
	case WIRE_LEN:
		field->view = wire_len(w);
		break;
	case WIRE_FIXED32:
		field->value = wire_fixed32(w);
		break;
	default:
		wire_fail(w, WIRE_BAD_TAG);
	}
	return w->at <= w->end;
}

bool wire_packed_ok(struct view packed, uint32_t *count)
{
	struct wire w = wire_of(packed);
	uint32_t n = 0;
	for (; wire_more(&w); n++) {
		uint64_t ends = ~wire_load(w.at) & 0x8080808080808080;
		if (ends == 0x8080808080808080 && w.end - w.at >= 8) {
			w.at += 8;
			n += 7;
		} else {
			wire_varint(&w);
		}
	}
	*count = n;
	return wire_done(&w);
}

/* The length of the well-formed sequence at `at` (Unicode 15, table 3-7); 0 if it is none, then
 * `bad` is the length of its maximal bad part. */
static size_t sequence(const uint8_t *at, const uint8_t *end, size_t *bad)
{
	uint8_t lead = *at, low = 0x80, high = 0xbf;
	size_t len = lead < 0x80   ? 1
		     : lead < 0xc2 ? 0
		     : lead < 0xe0 ? 2
		     : lead < 0xf0 ? 3
		     : lead < 0xf5 ? 4
				   : 0;
	if (lead == 0xe0)
		low = 0xa0;
	else if (lead == 0xed)
		high = 0x9f;
	else if (lead == 0xf0)
		low = 0x90;
	else if (lead == 0xf4)
		high = 0x8f;
	*bad = 1;
	for (size_t i = 1; i < len; i++, low = 0x80, high = 0xbf) {
		if (at + i == end || at[i] < low || at[i] > high)
			return 0;
		*bad = i + 1;
	}
	return len;
}

const uint8_t *wire_ascii(const uint8_t *at, const uint8_t *end)
{
	for (; end - at >= 64; at += 64) {
		uint64_t high = 0;
		for (int i = 0; i < 64; i += 8)
			high |= wire_load(at + i);
		if (high & 0x8080808080808080)
			break;
	}
	return at;
}

bool wire_utf8_slow(const uint8_t *at, size_t len)
{
	const uint8_t *end = at + len;
	while (at < end) {
		size_t bad, good = sequence(at, end, &bad);
		if (!good)
			return false;
		at += good;
	}
	return true;
}

bool wire_utf8_repair(struct bytes *out, struct view text)
{
	const uint8_t *at = text.at, *end = at + text.len;
	while (at < end) {
		size_t bad, good = sequence(at, end, &bad);
		if (!(good ? bytes_add(out, at, good) : bytes_add(out, "\xef\xbf\xbd", 3)))
			return false;
		at += good ? good : bad;
	}
	return true;
}

bool wire_add_varint(struct bytes *out, uint32_t number, uint64_t value)
{
	if (!bytes_reserve(out, 20))
		return false;
	uint8_t *at = wire_put_tag(out->at + out->len, number, WIRE_VARINT);
	out->len = (size_t)(wire_put_varint(at, value) - out->at);
	return true;
}

bool wire_add_fixed64(struct bytes *out, uint32_t number, uint64_t value)
{
	if (!bytes_reserve(out, 18))
		return false;
	uint8_t *at = wire_put_tag(out->at + out->len, number, WIRE_FIXED64);
	out->len = (size_t)(wire_put_fixed64(at, value) - out->at);
	return true;
}

bool wire_add_len(struct bytes *out, uint32_t number, struct view payload)
{
	if (!bytes_reserve(out, 20 + payload.len))
		return false;
	uint8_t *at = wire_put_tag(out->at + out->len, number, WIRE_LEN);
	at = wire_put_varint(at, payload.len);
	out->len = (size_t)(at - out->at);
	return bytes_add(out, payload.at, payload.len);
}
