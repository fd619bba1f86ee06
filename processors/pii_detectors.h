/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_PII_DETECTORS_H
#define PROCESSORS_PII_DETECTORS_H

#include "processors/pii_text.h"
#include "processors/regex.h"

/*
 * What the `pii` processor detects: the table pii_table.h. A detector has one or more rules. A rule
 * consists of a function that decides whether there is a match at a position (pii_find.h), the
 * anchor (a pair of adjacent bytes and what is around it, at which the function is called), and
 * what a string must contain for the rule to match at all. One pass (pii_summary) finds
 * the rules whose pair of bytes occurs. Of these, a second pass calls the ones that can match,
 * where their anchor occurs. The cost of a string therefore does not depend on the number of rules.
 *
 * tests/processors/test_pii_select.c compares this with running all rules on all strings, and with
 * regular expressions.
 */
enum pii_detector {
#define PII_DETECTOR(name, ...) PII_##name,
#define PII_PART(name, ...) PII_##name,
#include "processors/pii_table.h"
#undef PII_DETECTOR
#undef PII_PART
	PII_PATTERNS,                 /* the operator's own patterns follow */
	PII_BUILT_IN = PII_WORKSPACE, /* the number of detectors with a configuration key */
	PII_DETECTORS_MAX = PII_PATTERNS + 32
};

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
	PII_HAS_B = 1 << 15,   /* b or B */
	PII_HAS_PERCENT = 1 << 16,
	PII_HAS_QUOTE = 1 << 17,  /* " or ' */
	PII_HAS_ESCAPE = 1 << 18, /* what begins an escaped character: % or \ */
	PII_CLASSES = 19
};

/* What is in a string: in four lanes the number of digits, dots, colons and dashes, each at most
 * PII_COUNT_MAX. */
#define PII_COUNT_MAX 0x7fffull
#define PII_LANES(digits, dots, colons, dashes) \
	((uint64_t)(digits) | (uint64_t)(dots) << 16 | (uint64_t)(colons) << 32 | \
	 (uint64_t)(dashes) << 48)

struct pii_summary {
	uint64_t counts;
	uint32_t classes;
	size_t length;
};

/* The minimum that a string must contain. */
struct pii_needs {
	uint32_t classes;
	uint8_t digits, dots, colons, dashes;
	size_t length;
};

#define PII_RUN(digits) (1 << (digits))
#define PII_RUN_MAX 5
#define PII_RUN_LONG PII_RUN(PII_RUN_MAX) /* or more */

/* Kinds of bytes whose runs select rules. */
enum pii_run_kind { PII_RUN_DIGITS, PII_RUN_HEX, PII_RUN_KINDS };

struct pii_rule;

/* What is known of a string from earlier calls. */
struct pii_seen {
	size_t from;          /* of the rule that is called: none of its matches begins before */
	struct pii_runs runs; /* of all rules */
	/* Where an escaped character was looked for last, and where it ends; 0: there is none. */
	size_t escape, escape_end;
};

/* See pii_find.h. */
typedef bool pii_find_function(const struct pii_rule *rule, struct view text, size_t at,
			       struct pii_seen *seen, struct regex_span *span);

struct pii_rule {
	/*
	 * The anchor: a byte of the set `first` after one of the set `before`. Sets are written as
	 * in regular expressions, without brackets and with - last. The position before a string
	 * counts as NUL; NULL is any byte. The function's `at` is `back` bytes before the byte of
	 * `first`.
	 */
	const char *before, *first;
	/* What may follow the pair: a set. With `runs`, for numbers, a run of digits begins at the
	 * byte of `first`: how many there may be, PII_RUN(1) to PII_RUN_LONG, and the set may
	 * follow them unless the run is long. It is measured once for all rules. */
	const char *behind;
	uint8_t runs;      /* 0: any */
	const char *prior; /* what may stand in front of `before` */
	const char *next;  /* and behind the byte that follows the pair */
	/* With runs, unless the run is long or missing: the lengths of a second one behind the byte
	 * of `behind`, PII_RUN(0) for none, and the set that may follow it. */
	uint8_t second; /* 0: any */
	const char *mark;
	/* Occurs in every match. Without `first` it is the anchor, around its byte `back`, and `at`
	 * is its start. The rarer the pair of bytes that ends there, the fewer strings are searched
	 * for nothing. */
	const char *literal;
	uint8_t literal_len;
	uint8_t back;
	uint8_t run_kind; /* enum pii_run_kind */
	struct pii_needs needs;
	uint32_t unless; /* classes whose strings another rule searches for the same */
	pii_find_function *find;
	pii_find_function *escaped; /* for pii_find_escaped: called behind the character */
	/* For pii_find_run, what follows the literal: enum pii_kind, and the minimum number of
	 * bytes. For pii_find_escaped, the kinds of the byte of that number. */
	uint32_t kinds;
	size_t min;
	/* What a call costs, in instructions, without what the function takes itself
	 * (pii_find.h); 0: as most do. */
	uint16_t effort;
};

struct pii_example {
	const char *in, *out;
};

/* A row of the table. */
struct pii_detector_info {
	const char *name;
	bool on;        /* unless the configuration says otherwise */
	uint32_t roles; /* where it searches by default, a bit for each role; 0: everywhere */
	const char *matches, *leaves, *checks; /* sentences */
	const struct pii_example *examples;    /* in == NULL ends */
	const char *const *others;             /* strings that stay as they are; NULL ends */
	const struct pii_rule *rules;
	size_t rule_count;
};

extern const struct pii_detector_info pii_detectors[PII_PATTERNS];

/* A bit for each rule. */
#define PII_RULE_WORDS 2
#define PII_RULES_MAX (64 * PII_RULE_WORDS)
typedef uint64_t pii_rule_set __attribute__((vector_size(8 * PII_RULE_WORDS)));

/* What a byte means: the rules of whose anchor it may be the first byte, the second, and the one
 * behind them; its classes, and where it counts. */
struct pii_meaning {
	pii_rule_set before, first, behind;
	uint64_t counts;
	uint32_t classes;
};

/* Sets classes and counts. */
void pii_meanings_init(struct pii_meaning meanings[256]);

/* Sets `found` to the rules whose anchor occurs. */
struct pii_summary pii_summary(const struct pii_meaning meanings[256], struct view text,
			       pii_rule_set *found);

#endif
