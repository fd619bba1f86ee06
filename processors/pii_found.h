/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_PII_FOUND_H
#define PROCESSORS_PII_FOUND_H

#include "processors/pii_scan.h"

/* What the rules and patterns find in one string, and the string that it becomes. */
#define PII_FOUND_MAX 512 /* hits in one string; more, and all of it is masked */
#define PII_TOKEN_BYTES 8 /* of an HMAC in a token */
#define PII_TOKEN_PREFIX "hash_"
#define PII_TOKEN_LEN (sizeof PII_TOKEN_PREFIX - 1 + 2 * PII_TOKEN_BYTES)
#define PII_FOUND_SLACK 16 /* behind the changed string, for copies of a few bytes */

struct pii_found {
	size_t count;
	bool whole;     /* too many, or an engine gave up: the text goes as a whole */
	bool tangled;   /* a part begins before the end of one that was found before it */
	uint8_t action; /* the strongest that hit */
	uint64_t hits;
	/* The string between margins: room for whoever searches. */
	uint8_t text[PII_MARGIN + REGEX_TEXT_MAX + PII_MARGIN];
	struct pii_part {
		size_t start, end;
		uint8_t action;
		bool name; /* in a path */
	} parts[PII_FOUND_MAX];
};

static inline uint8_t pii_stronger(uint8_t a, uint8_t b)
{
	return a > b ? a : b;
}

/* A hit of a detector, which is widened to whole characters. */
void pii_found_add(struct pii_found *found, unsigned detector, uint8_t action,
		   const struct view *text, const struct regex_span *span);

/* Puts the changed string into `out`, whose limit allows PII_FOUND_MAX tokens, the string and
 * PII_FOUND_SLACK more. Tokens are made with `key`. */
void pii_found_replace(struct pii_found *found, const struct digest_key *key, struct view text,
		       struct bytes *out);

#endif
