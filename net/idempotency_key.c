/* SPDX-License-Identifier: Apache-2.0 */
#include "net/idempotency_key.h"

#include "base/digest.h"

#include <string.h>
#include <strings.h>

void idempotency_key_write(struct hash128 id, char out[IDEMPOTENCY_KEY_SIZE])
{
	const uint64_t halves[] = { id.high, id.low };
	uint8_t bytes[16];
	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(halves[i / 8] >> (56 - 8 * (i % 8)));
	*out++ = '"';
	digest_hex(bytes, sizeof bytes, out);
	memcpy(out + 2 * sizeof bytes, "\"", 2);
}

static bool is_allowed(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '-' || c == '_';
}

static bool parse(const char *value, struct view *key)
{
	struct view v = view_of(value);
	if (v.len >= 2 && v.at[0] == '"' && v.at[v.len - 1] == '"')
		v = (struct view){ v.at + 1, v.len - 2 };
	if (v.len < IDEMPOTENCY_KEY_MIN || v.len > IDEMPOTENCY_KEY_MAX)
		return false;
	for (size_t i = 0; i < v.len; i++)
		if (!is_allowed((char)v.at[i]))
			return false;
	*key = v;
	return true;
}

enum idempotency_key idempotency_key_find(const struct metadatum *headers, struct view *key)
{
	const char *value = NULL;
	for (; headers && headers->name; headers++) {
		if (strcasecmp(headers->name, IDEMPOTENCY_KEY_HEADER))
			continue;
		if (value)
			return IDEMPOTENCY_KEY_INVALID;
		value = headers->value;
	}
	if (!value)
		return IDEMPOTENCY_KEY_NONE;
	return parse(value, key) ? IDEMPOTENCY_KEY_VALID : IDEMPOTENCY_KEY_INVALID;
}
