/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool base64_add(struct bytes *out, struct view data, bool padded)
{
	for (size_t i = 0; i < data.len; i += 3) {
		size_t left = data.len - i;
		uint32_t group = (uint32_t)data.at[i] << 16 |
				 (left > 1 ? (uint32_t)data.at[i + 1] << 8 : 0) |
				 (left > 2 ? data.at[i + 2] : 0);
		char text[4] = { digits[group >> 18], digits[group >> 12 & 63],
				 left > 1 ? digits[group >> 6 & 63] : '=',
				 left > 2 ? digits[group & 63] : '=' };
		if (!bytes_add(out, text, padded || left > 2 ? 4 : left + 1))
			return false;
	}
	return true;
}

/* The value of each digit of both alphabets, plus one. */
static const uint8_t values[256] = {
	['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,
	['H'] = 8,  ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14,
	['O'] = 15, ['P'] = 16, ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21,
	['V'] = 22, ['W'] = 23, ['X'] = 24, ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28,
	['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32, ['g'] = 33, ['h'] = 34, ['i'] = 35,
	['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40, ['o'] = 41, ['p'] = 42,
	['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48, ['w'] = 49,
	['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
	['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63,
	['/'] = 64, ['-'] = 63, ['_'] = 64,
};

/* False if some byte is no digit. */
static inline bool group_of(const uint8_t *at, uint32_t *group)
{
	uint32_t a = values[at[0]], b = values[at[1]], c = values[at[2]], d = values[at[3]];
	*group = (a - 1) << 18 | (b - 1) << 12 | (c - 1) << 6 | (d - 1);
	return a && b && c && d;
}

/* Without its padding, if that is complete; else what has no length that base64 has. */
static struct view without_padding(struct view text)
{
	size_t padded = text.len;
	while (text.len && text.at[text.len - 1] == '=' && padded - text.len < 2)
		text.len--;
	if (text.len < padded && padded % 4)
		text.len = 1;
	return text;
}

size_t base64_decode_at(uint8_t *to, struct view text)
{
	uint8_t *start = to;
	text = without_padding(text);
	size_t rest = text.len % 4;
	if (rest == 1)
		return 0;
	const uint8_t *at = text.at, *end = at + (text.len - rest);
	uint32_t group;
	for (; at < end; at += 4) {
		if (!group_of(at, &group))
			return 0;
		*to++ = (uint8_t)(group >> 16);
		*to++ = (uint8_t)(group >> 8);
		*to++ = (uint8_t)group;
	}
	if (rest) {
		const uint8_t last[4] = { at[0], at[1], rest > 2 ? at[2] : 'A', 'A' };
		if (!group_of(last, &group))
			return 0;
		*to++ = (uint8_t)(group >> 16);
		if (rest > 2)
			*to++ = (uint8_t)(group >> 8);
	}
	return (size_t)(to - start);
}

bool base64_decode(struct bytes *out, struct view text)
{
	text = without_padding(text);
	size_t rest = text.len % 4, len = text.len / 4 * 3 + (rest ? rest - 1 : 0);
	if (!text.len || rest == 1 || !bytes_reserve(out, len))
		return !text.len;
	len = base64_decode_at(out->at + out->len, text);
	out->len += len;
	return len;
}
