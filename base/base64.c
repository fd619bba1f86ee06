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

static int value_of(uint8_t c)
{
	const char *at = c ? memchr(digits, c, 64) : NULL;
	return at ? (int)(at - digits) : -1;
}

bool base64_decode(struct bytes *out, struct view text)
{
	uint32_t group = 0;
	int count = 0;
	size_t padded = text.len;
	while (text.len && text.at[text.len - 1] == '=' && padded - text.len < 2)
		text.len--;
	if (text.len < padded && padded % 4)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		int value = value_of(text.at[i]);
		if (value < 0)
			return false;
		group = group << 6 | (uint32_t)value;
		if (++count == 4) {
			const uint8_t three[3] = { (uint8_t)(group >> 16), (uint8_t)(group >> 8),
						   (uint8_t)group };
			if (!bytes_add(out, three, 3))
				return false;
			group = 0;
			count = 0;
		}
	}
	const uint8_t rest[2] = { (uint8_t)(count == 3 ? group >> 10 : group >> 4),
				  (uint8_t)(group >> 2) };
	return count != 1 && bytes_add(out, rest, count ? (size_t)count - 1 : 0);
}
