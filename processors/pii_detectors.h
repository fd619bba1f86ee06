/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_PII_DETECTORS_H
#define PROCESSORS_PII_DETECTORS_H

#include "base/bytes.h"
#include "processors/regex.h"

/*
 * What the `pii` processor detects. A detector has one or more rules. A rule consists of a function
 * that decides whether there is a match at a position (pii_find.h), the anchor (a pair of adjacent
 * bytes at which the function is called), and what a string must contain for the rule to match at
 * all. One pass over a string (pii_summary) selects the rules that can match. A second pass calls
 * each of these where its anchor occurs. The cost of a string therefore does not depend on the
 * number of rules.
 *
 * tests/processors/test_pii_select.c compares this with running all rules on all strings, and with
 * regular expressions.
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
	/* the number of detectors with a configuration key of their own */
	PII_BUILT_IN,
	PII_WORKSPACE = PII_BUILT_IN, /* part of normalize_paths */
	PII_TOO_LONG,                 /* longer than REGEX_TEXT_MAX, and something could match */
	PII_PATTERNS,                 /* the operator's own patterns follow */
	PII_DETECTORS_MAX = PII_PATTERNS + 32
};

extern const char *const pii_detector_names[PII_PATTERNS];

/* Kinds of characters that a string contains. */
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
	PII_HAS_GAP = 1 << 14, /* what may separate "bearer" from its token: blank : = + % */
	PII_HAS_B = 1 << 15    /* b or B */
};

struct pii_summary {
	/* a bit for each kind of adjacent bytes; kinds collide, so a set bit proves nothing, while
	 * an unset bit rules the pair out */
	uint64_t pairs;
	uint32_t classes;
	uint32_t digits, dots, colons, dashes;
	size_t length;
};

#define PII_RUN(digits) (1 << (digits))
#define PII_RUN_MAX 5
#define PII_RUN_LONG PII_RUN(PII_RUN_MAX) /* or more */

struct pii_rule;

/* See pii_find.h. */
typedef bool pii_find_function(const struct pii_rule *rule, struct view text, size_t at,
			       size_t *from, struct regex_span *span);

struct pii_rule {
	enum pii_detector detector;
	/*
	 * The anchor: a byte of the set `first` after one of the set `before`. Sets are written as
	 * in regular expressions, without brackets and with - last. The position before a string
	 * counts as NUL; NULL is any byte. The function's `at` is `back` bytes before the byte of
	 * `first`.
	 */
	const char *before, *first;
	/* For numbers, whose anchor is a digit: how many digits there may be, PII_RUN(1) to
	 * PII_RUN_LONG, and what may follow them unless the run is long. The run is measured once
	 * for all rules. */
	const char *behind;
	uint8_t runs; /* 0: any */
	/* Occurs in every match. Without `first` it is the anchor, around its byte `back`, and `at`
	 * is its start. */
	const char *literal;
	uint8_t back;
	struct pii_summary needs; /* the minimum that a string must contain */
	pii_find_function *find;
	uint32_t kinds; /* for pii_find_run: what follows the literal, enum pii_kind */
	size_t min;     /* the minimum number of bytes */
};

extern const struct pii_rule pii_rules[];
extern const size_t pii_rule_count;

struct pii_summary pii_summary(struct view text);

static inline bool pii_can_match(const struct pii_summary *text, const struct pii_summary *needs)
{
	return (text->pairs & needs->pairs) == needs->pairs &&
	       (text->classes & needs->classes) == needs->classes &&
	       text->digits >= needs->digits && text->dots >= needs->dots &&
	       text->colons >= needs->colons && text->dashes >= needs->dashes &&
	       text->length >= needs->length;
}

#endif
