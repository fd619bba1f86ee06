/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_PII_SCAN_H
#define PROCESSORS_PII_SCAN_H

#include "base/digest.h"
#include "base/hash.h"
#include "processors/pii_detectors.h"
#include "profile/sites.h"

/*
 * Scans one text at a time. The engine (rules, actions per role) is immutable and shared; a struct
 * pii_scratch belongs to one worker and holds its buffers and its verdicts.
 *
 * Roles with equal actions form one class, so a verdict is remembered once per (text, class), keyed
 * with the per-process secret of base/hash.h.
 */
enum pii_action { PII_LEAVE, PII_HASH, PII_MASK, PII_DROP }; /* later ones take precedence */

#define PII_MASK_TEXT "****"
#define PII_NAME_MASK "*" /* in paths */
#define PII_KEY_MIN 32    /* bytes of hmac_key */

/*
 * What the rules may cost in a string, in instructions for each of its bytes and at least for
 * PII_EFFORT_MIN of them: a string that needs more is replaced as a whole. Names of functions need
 * at most a third of it, other strings of real profiles at most two thirds. What is charged is what
 * a step was measured to cost, so no timer is read and a string has the same verdict everywhere.
 */
#define PII_EFFORT 45
#define PII_EFFORT_MIN 64

/* A rule whose detector is used in some role. */
struct pii_active_rule {
	const struct pii_rule *rule;
	pii_find_function *find;
	const char *literal; /* if it is the anchor */
	size_t literal_len;
	uint64_t mask, start; /* its first eight bytes */
	uint16_t effort;
	uint8_t back, detector;
};

/* Of a word of the set: the rules that have runs, those that a run of a length fits or a second
 * one, and those that a byte fits which is behind these. */
struct pii_run_rules {
	uint64_t any, digits[PII_RUN_MAX + 1], hex[PII_RUN_MAX + 1];
	uint64_t second_digits[PII_RUN_MAX + 1], second_hex[PII_RUN_MAX + 1];
	uint64_t behind[256], mark[256];
};

/* The rules that what a string has is enough for: its length, each of its four counts, its classes
 * in three parts. What is more than the largest need counts as that. */
#define PII_LENGTH_MAX 79
#define PII_COUNTED_MAX 15
#define PII_CLASS_BITS 7

struct pii_enough {
	pii_rule_set length[PII_LENGTH_MAX + 1];
	pii_rule_set counts[4][PII_COUNTED_MAX + 1];
	pii_rule_set classes[3][1 << PII_CLASS_BITS];
};

struct pii_engine {
	struct pii_meaning meanings[256];
	struct pii_enough enough;
	struct pii_run_rules run_rules[PII_RULE_WORDS];
	/* All, by the byte in front of the anchor's three, and by the one behind them. */
	pii_rule_set prior[256], next[256];
	struct pii_active_rule rules[PII_RULES_MAX];
	size_t rule_count;
	pii_rule_set rules_of[ROLE_COUNT];                 /* whose detector has an action */
	pii_rule_set rules_with[ROLE_COUNT][PII_DROP + 1]; /* by that action */
	struct regex **patterns;                           /* the operator's */
	size_t pattern_count;
	unsigned effort;                                /* PII_EFFORT, but for tests */
	uint8_t actions[ROLE_COUNT][PII_DETECTORS_MAX]; /* enum pii_action; by class */
	uint8_t class_of[ROLE_COUNT];
	bool active[ROLE_COUNT]; /* by class: does any action apply? */
	struct digest_key hmac;  /* of PII_HASH */
};

enum pii_outcome { PII_CLEAN, PII_CHANGED, PII_DROPPED };

struct pii_verdict {
	enum pii_outcome outcome;
	uint64_t hits;    /* 1 << enum pii_detector */
	struct view text; /* of PII_CHANGED; until the next scan with this scratch */
};

struct pii_found;
struct pii_entry { /* matches in a string */
	struct hash128 key;
	uint64_t hits;    /* 0: unused */
	uint32_t at, len; /* of the changed text in `texts` */
};

/*
 * Most strings have no match. They are identified by half of their digest, in sets of one cache
 * line each; the other half selects the set.
 */
#define PII_CLEAN_SETS 16384
#define PII_CLEAN_WAYS 8
#define PII_SETS 4096
#define PII_WAYS 4
#define PII_TEXTS_MAX (1 << 20)

struct pii_scratch { /* zeroed memory is an empty one; touched as it fills */
	struct regex_memory *regex;
	struct pii_found *found;
	struct bytes out, texts;
	uint64_t clean[PII_CLEAN_SETS][PII_CLEAN_WAYS]; /* 0: unused */
	struct pii_entry entries[PII_SETS][PII_WAYS];
};

/* Compiles the operator's patterns (count <= 32). actions must be set by then, by role;
 * here roles are put into classes. */
bool pii_engine_init(struct pii_engine *engine, char *const *patterns, size_t count,
		     struct error *err);
void pii_engine_fini(struct pii_engine *engine);

/* With the verdicts remembered. */
struct pii_verdict pii_scan(const struct pii_engine *engine, struct pii_scratch *scratch,
			    enum site_role role, struct view text);

/* By which a verdict is remembered: the text's digest, its half `high` changed by the class and
 * never 0. */
static inline struct hash128 pii_key(unsigned class, struct view text)
{
	struct hash128 key = hash_bytes_128(text.at, text.len);
	key.high = (key.high ^ class * 0x9e3779b97f4a7c15) | 1;
	return key;
}

/* Where a key stands that found its favourite place free: mostly the only one that is looked at. */
static inline unsigned pii_clean_way(struct hash128 key)
{
	return (unsigned)(key.low / PII_CLEAN_SETS) % PII_CLEAN_WAYS;
}

/* Is it remembered that the string of this key has no match? False means unknown. */
static inline bool pii_known_clean(const struct pii_scratch *scratch, struct hash128 key)
{
	return scratch->clean[key.low % PII_CLEAN_SETS][pii_clean_way(key)] == key.high;
}

/* Without; `select` false runs every rule, for the test that compares. */
struct pii_verdict pii_scan_plain(const struct pii_engine *engine, struct pii_scratch *scratch,
				  enum site_role role, struct view text, bool select);

void pii_scratch_fini(struct pii_scratch *scratch);

#endif
