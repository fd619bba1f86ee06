/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_PII_DETECTORS_H
#define PROCESSORS_PII_DETECTORS_H

#include "base/bytes.h"
#include "processors/regex.h"

/*
 * What the `pii` processor looks for. A detector has one rule or more; a rule is a function that
 * decides whether there is a hit at a place (pii_find.h), what two neighbouring bytes make such a
 * place, its anchor, and what a text must hold for the rule to match at all. One pass over a text
 * (pii_summary) selects the rules that are worth a second one, which calls each where its anchor
 * stands. So the cost of a text does not depend on the number of rules.
 *
 * tests/processors/test_pii_select.c compares this with running all rules on all texts, and with
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
	PII_BUILT_IN,                 /* the number of those with a key of their own */
	PII_WORKSPACE = PII_BUILT_IN, /* part of normalize_paths */
	PII_TOO_LONG,                 /* above REGEX_TEXT_MAX, and something could match */
	PII_PATTERNS,                 /* the operator's own patterns follow */
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
	/* a bit for each kind of neighbouring bytes; kinds collide, so it can only say no */
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
	 * The anchor: a byte of the set `first` behind one of the set `before`. Sets are written as
	 * in regular expressions, without brackets, - last; what stands before a text counts as
	 * NUL; NULL is any byte. `at` of the function is `back` bytes in front of the byte of
	 * `first`.
	 */
	const char *before, *first;
	/*
	 * Of numbers, where a digit is the anchor: how many digits may stand there, PII_RUN(1) to
	 * PII_RUN_LONG, and what may follow them unless the run is long. The run is measured once
	 * for all rules.
	 */
	const char *behind;
	uint8_t runs; /* 0: does not matter */
	/* Stands in every match. Without `first` it is the anchor, around its byte `back`, and `at`
	 * is where it begins. */
	const char *literal;
	uint8_t back;
	struct pii_summary needs; /* at least all of this */
	pii_find_function *find;
	uint32_t kinds; /* of pii_find_run: what follows the literal, enum pii_kind */
	size_t min;     /* the fewest bytes */
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
