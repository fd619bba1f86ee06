/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_PII_DETECTORS_H
#define PROCESSORS_PII_DETECTORS_H

#include "base/bytes.h"
#include "processors/regex.h"

/*
 * What the `pii` processor looks for. A detector has one rule or more; a rule is a strict, look-around-free
 * pattern, whose hits a function of pii_checks.h confirms (check digits, boundaries, structure), and what a
 * text must hold for the pattern to match at all. One scalar pass over a text (pii_summary) thus selects
 * the rules that are worth running. tests/processors/test_pii_select.c compares this with running all rules
 * on all texts.
 */
enum pii_detector {
	PII_EMAIL,
	PII_IPV4,
	PII_IPV6,
	PII_JWT,
	PII_ACCESS_KEY,
	PII_CARD,
	PII_SSN,
	PII_PHONE,
	PII_PAN,
	PII_AADHAAR,
	PII_UUID,
	PII_BEARER,
	PII_HOME_DIRECTORY,
	PII_URL_QUERY,
	PII_BUILT_IN,          /* the number of those with a key of their own */
	PII_WORKSPACE = PII_BUILT_IN, /* part of normalize_paths */
	PII_TOO_LONG,          /* above REGEX_TEXT_MAX, and something could match */
	PII_PATTERNS,          /* the operator's own patterns follow */
	PII_DETECTORS_MAX = PII_PATTERNS + 32
};

extern const char *const pii_detector_names[PII_PATTERNS];

/* Kinds of characters that stand in a text. */
enum pii_class {
	PII_HAS_AT = 1 << 0,
	PII_HAS_DOT = 1 << 1,
	PII_HAS_COLON = 1 << 2,
	PII_HAS_DASH = 1 << 3,
	PII_HAS_SLASH = 1 << 4,
	PII_HAS_BACKSLASH = 1 << 5,
	PII_HAS_QUESTION = 1 << 6,
	PII_HAS_EQUALS = 1 << 7,
	PII_HAS_PLUS = 1 << 8,
	PII_HAS_UNDERSCORE = 1 << 9,
	PII_HAS_TILDE = 1 << 10,
	PII_HAS_UPPER = 1 << 11,
	PII_HAS_DIGIT = 1 << 12,
	PII_HAS_SPACE = 1 << 13,
	PII_HAS_GAP = 1 << 14, /* what may part "bearer" from its token: blank : = + % */
	PII_HAS_B = 1 << 15    /* b or B */
};

struct pii_summary {
	uint64_t pairs; /* a bit for each kind of neighbouring bytes; kinds collide, so it can only say no */
	uint32_t classes;
	uint32_t digits, dots, colons, dashes;
	size_t length;
};

struct pii_rule {
	enum pii_detector detector;
	const char *pattern;      /* group 1, if there is one, is the part that is masked */
	const char *literal;      /* stands in every match, as it is here; may be NULL */
	struct pii_summary needs; /* at least all of this */
	/* May move the ends; false: no hit. NULL: every match is one. */
	bool (*confirm)(struct view text, struct regex_span *span);
};

extern const struct pii_rule pii_rules[];
extern const size_t pii_rule_count;

struct pii_summary pii_summary(struct view text);

static inline bool pii_can_match(const struct pii_summary *text, const struct pii_summary *needs)
{
	return (text->pairs & needs->pairs) == needs->pairs &&
	       (text->classes & needs->classes) == needs->classes && text->digits >= needs->digits &&
	       text->dots >= needs->dots && text->colons >= needs->colons &&
	       text->dashes >= needs->dashes && text->length >= needs->length;
}

#endif
