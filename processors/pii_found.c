/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_found.h"

#include <assert.h>

/* Detectors of names in paths. */
#define NAMES (1ull << PII_HOME_DIRECTORY | 1ull << PII_GENERATED_PATH | 1ull << PII_WORKSPACE)

static void widen(struct pii_part *part, struct view text)
{
	while (part->start && (text.at[part->start] & 0xc0) == 0x80)
		part->start--;
	while (part->end < text.len && (text.at[part->end] & 0xc0) == 0x80)
		part->end++;
}

void pii_found_add(struct pii_found *found, unsigned detector, uint8_t action,
		   const struct view *text, const struct regex_span *span)
{
	struct pii_part *part = &found->parts[found->count];
	found->hits |= 1ull << detector;
	found->action = pii_stronger(action, found->action);
	if (found->count == PII_FOUND_MAX) {
		found->whole = true;
		return;
	}
	*part = (struct pii_part){ span->start, span->end, action, NAMES >> detector & 1 };
	widen(part, *text);
	found->tangled |= found->count++ && part->start < part[-1].end;
}

/* Of two that begin at the same place, the longer one is first. */
static bool is_before(const struct pii_part *a, const struct pii_part *b)
{
	return a->start < b->start || (a->start == b->start && a->end > b->end);
}

/* They are found in the order of their anchors. Each moves only in front of parts that lie between
 * its start and its anchor, where its rule finds nothing else: by insertion, this is linear. */
static void sort_parts(struct pii_found *found)
{
	struct pii_part *parts = found->parts;
	for (size_t i = 1; i < found->count; i++) {
		if (!is_before(&parts[i], &parts[i - 1]))
			continue;
		struct pii_part part = parts[i];
		size_t to = i;
		for (; to && is_before(&part, &parts[to - 1]); to--)
			parts[to] = parts[to - 1];
		parts[to] = part;
	}
}

/* Joins what overlaps. */
static void join_parts(struct pii_found *found)
{
	size_t kept = 0;
	sort_parts(found);
	for (size_t i = 0; i < found->count; i++) {
		struct pii_part *part = &found->parts[i];
		struct pii_part *last = kept ? &found->parts[kept - 1] : NULL;
		if (last && part->start < last->end) {
			last->end = part->end > last->end ? part->end : last->end;
			last->action = pii_stronger(part->action, last->action);
			last->name &= part->name;
		} else {
			found->parts[kept++] = *part;
		}
	}
	found->count = kept;
}

/* The same text always becomes the same token, under the same key. */
static uint8_t *put_token(uint8_t *to, const struct digest_key *key, struct view text)
{
	uint8_t digest[DIGEST_SIZE];
	digest_hmac(key, text, digest);
	memcpy(to, PII_TOKEN_PREFIX, sizeof PII_TOKEN_PREFIX - 1);
	digest_hex(digest, PII_TOKEN_BYTES, (char *)to + sizeof PII_TOKEN_PREFIX - 1);
	return to + PII_TOKEN_LEN;
}

static uint8_t *put_replacement(const struct digest_key *key, uint8_t *to, struct view text,
				uint8_t action, bool name)
{
	static const char masks[2][sizeof PII_MASK_TEXT] = { PII_MASK_TEXT, PII_NAME_MASK };
	if (action == PII_HASH)
		return put_token(to, key, text);
	memcpy(to, masks[name], sizeof PII_MASK_TEXT);
	return to + (name ? sizeof PII_NAME_MASK : sizeof PII_MASK_TEXT) - 1;
}

/* The bytes from `at` to `end`. Few of them are copied with what follows: there is room. */
static uint8_t *put_bytes(uint8_t *to, struct view text, size_t at, size_t end)
{
	if (end - at <= PII_FOUND_SLACK && at + PII_FOUND_SLACK <= text.len)
		memcpy(to, text.at + at, PII_FOUND_SLACK);
	else if (at < end)
		memcpy(to, text.at + at, end - at);
	return to + (end - at);
}

void pii_found_replace(struct pii_found *found, const struct digest_key *key, struct view text,
		       struct bytes *out)
{
	size_t at = 0, count = found->whole ? 1 : found->count;
	out->len = 0;
	if (!bytes_reserve(out,
			   count * PII_TOKEN_LEN + (found->whole ? 0 : text.len + PII_FOUND_SLACK)))
		assert(!"room for every token");
	uint8_t *to = out->at;
	if (found->whole) {
		to = put_replacement(key, to, text, found->action, false);
		at = text.len;
	} else if (found->tangled) {
		join_parts(found);
	}
	for (size_t i = 0; i < found->count && !found->whole; i++) {
		const struct pii_part *part = &found->parts[i];
		struct view old = { text.at + part->start, part->end - part->start };
		to = put_bytes(to, text, at, part->start);
		to = put_replacement(key, to, old, part->action, part->name);
		at = part->end;
	}
	to = put_bytes(to, text, at, text.len);
	out->len = (size_t)(to - out->at);
}
