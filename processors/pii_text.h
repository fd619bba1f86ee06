/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_PII_TEXT_H
#define PROCESSORS_PII_TEXT_H

#include "base/bytes.h"

/* Kinds of bytes, as the detectors' grammars need them. A byte has several. */
enum pii_kind {
	PII_DIGIT = 1 << 0,
	PII_UPPER = 1 << 1,
	PII_LOWER = 1 << 2,
	PII_HEX_LETTER = 1 << 3,
	PII_UNDERSCORE = 1 << 4,
	PII_DASH = 1 << 5,
	PII_DOT = 1 << 6,
	PII_TILDE = 1 << 7,
	PII_HIGH = 1 << 8,   /* above ASCII */
	PII_SLASH = 1 << 9,  /* either one */
	PII_LOCAL = 1 << 10, /* of an email address, before the @ */
	PII_TOKEN = 1 << 11, /* RFC 6750 */
	PII_BASE64 = 1 << 12,
	PII_QUERY_NAME = 1 << 13, /* before the = in a query */
	PII_QUERY = 1 << 14,      /* no blank, quote, angle bracket or # */
	PII_URL = 1 << 15,        /* the same with # and without ? */
	PII_SEGMENT = 1 << 16,    /* of a path: no slash, blank or * */
	/* of a user: what ends a path in prose or code does not belong to it */
	PII_NAME = 1 << 17,
	PII_WINDOWS_NAME = 1 << 18, /* may hold blanks */
	PII_WINDOWS_WORD = 1 << 19, /* may not */
	PII_SECRET = 1 << 20,    /* of a value behind name=: as PII_QUERY, but # and not & and ; */
	PII_AUTHORITY = 1 << 21, /* before the path in a URL: as PII_URL, but no slash and no # */
	PII_USERINFO = 1 << 22,  /* the same but @ */
	PII_LETTER = PII_UPPER | PII_LOWER,
	PII_ALNUM = PII_DIGIT | PII_LETTER,
	PII_HEX = PII_DIGIT | PII_HEX_LETTER,
	PII_BASE64URL = PII_ALNUM | PII_DASH | PII_UNDERSCORE
};

extern const uint32_t pii_kinds[256];

static inline bool pii_is(uint8_t byte, uint32_t kinds)
{
	return pii_kinds[byte] & kinds;
}

/* Of any part of a string. 0 behind the end, and before the start if `at` came below zero: of no
 * kind but those that NUL has. */
static inline uint8_t pii_byte(struct view part, size_t at)
{
	return at < part.len ? part.at[at] : 0;
}

/* A string that is searched stands between margins of so many NULs: a function looks around in it
 * without asking where it ends, as far as a margin reaches. */
#define PII_MARGIN 64

static inline uint8_t pii_at(struct view text, size_t at)
{
	return text.at[(ptrdiff_t)at];
}

static inline bool pii_is_at(struct view text, size_t at, uint32_t kinds)
{
	return pii_is(pii_at(text, at), kinds);
}

/* The number of bytes from `at` on that are of these kinds; at most max. */
static inline size_t pii_run(struct view text, size_t at, uint32_t kinds, size_t max)
{
	size_t left = at < text.len ? text.len - at : 0;
	const uint8_t *start = text.at + at, *end = start + (left < max ? left : max),
		      *byte = start;
	while (byte < end && pii_is(*byte, kinds))
		byte++;
	return (size_t)(byte - start);
}

/* The same before `at`. */
static inline size_t pii_run_back(struct view text, size_t at, uint32_t kinds, size_t max)
{
	const uint8_t *end = text.at + at, *start = end - (at < max ? at : max), *byte = end;
	while (byte > start && pii_is(byte[-1], kinds))
		byte--;
	return (size_t)(end - byte);
}

/*
 * The runs that were measured in a string, by their kinds. Several rules ask for the same run, each
 * from its own position; every byte is examined once for the same kinds. PII_BACKWARDS marks the
 * kinds of a run that was measured from its end.
 */
#define PII_RUNS 16
#define PII_BACKWARDS (1u << 31)

struct pii_runs { /* empty with count == 0 */
	unsigned count;
	/* What is left of the effort that the string is worth, in instructions, about. Whoever
	 * reads a row of unknown length takes from it. */
	int64_t effort;
	struct pii_known_run {
		uint32_t kinds;
		size_t start, end;
	} known[PII_RUNS];
};

/* Takes from the effort; false: none is left, and what is found does not count. */
static inline bool pii_spend(struct pii_runs *runs, size_t effort)
{
	runs->effort -= (int64_t)effort;
	return runs->effort >= 0;
}

/* Where the run of bytes of these kinds ends that begins at `at`. */
size_t pii_run_end(struct pii_runs *runs, struct view text, size_t at, uint32_t kinds);

/* Where the run of bytes of these kinds begins that ends before `at`. */
size_t pii_run_start(struct pii_runs *runs, struct view text, size_t at, uint32_t kinds);

/* Inline: most words differ in their first bytes, where a call of memcmp would cost more than the
 * comparison. */
static inline bool pii_has_at(struct view text, size_t at, const char *word, size_t len)
{
	size_t n = 0;
	if (at > text.len || text.len - at < len)
		return false;
	while (n < len && text.at[at + n] == (uint8_t)word[n])
		n++;
	return n == len;
}

/* The same for a word of up to 16 letters, small ones, which stand there in either case: that is
 * one bit, and no other byte becomes a letter by it. Inline, since the length is constant. */
static inline bool pii_is_letters(const uint8_t *at, const char *word, size_t len)
{
	uint64_t first, last, first_of_word, last_of_word;
	uint32_t front, back, front_of_word, back_of_word;
	if (len >= sizeof first) {
		memcpy(&first, at, sizeof first);
		memcpy(&last, at + len - sizeof last, sizeof last);
		memcpy(&first_of_word, word, sizeof first);
		memcpy(&last_of_word, word + len - sizeof last, sizeof last);
		return (last | 0x2020202020202020) == last_of_word &&
		       (first | 0x2020202020202020) == first_of_word;
	}
	if (len >= sizeof front) {
		memcpy(&front, at, sizeof front);
		memcpy(&back, at + len - sizeof back, sizeof back);
		memcpy(&front_of_word, word, sizeof front);
		memcpy(&back_of_word, word + len - sizeof back, sizeof back);
		return (back | 0x20202020) == back_of_word && (front | 0x20202020) == front_of_word;
	}
	while (len && (at[len - 1] | 0x20) == (uint8_t)word[len - 1])
		len--;
	return !len;
}

#define PII_LETTERS_AT(text, place, word) \
	pii_is_letters((text).at + (place), word, sizeof(word) - 1)
/* They end before `place`. */
#define PII_LETTERS_BEFORE(text, place, word) \
	pii_is_letters((text).at + (place) - (sizeof(word) - 1), word, sizeof(word) - 1)

/* Words of up to PII_WORD_MAX bytes by their length, those of one length one after the other. */
#define PII_WORD_MAX 13

static inline bool pii_is_word(struct view word, const char *const words[PII_WORD_MAX + 1])
{
	const char *other = word.len <= PII_WORD_MAX ? words[word.len] : NULL;
	for (; other && *other; other += word.len)
		if ((uint8_t)*other == word.at[0] && memcmp(word.at, other, word.len) == 0)
			return true;
	return false;
}

/* A string literal; the comparison is inline, since its length is constant. */
#define PII_WORD_AT(text, place, word) (memcmp((text).at + (place), word, sizeof(word) - 1) == 0)
/* It ends before `place`. */
#define PII_WORD_BEFORE(text, place, word) \
	(memcmp((text).at + (place) - (sizeof(word) - 1), word, sizeof(word) - 1) == 0)
/* In any part of a string. */
#define PII_WORD_IN(part, place, word) \
	((place) <= (part).len && (part).len - (place) >= sizeof(word) - 1 && \
	 PII_WORD_AT(part, place, word))

#endif
