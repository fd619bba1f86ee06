/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_REDACTION_VALUES_H
#define PROCESSORS_REDACTION_VALUES_H

#include "config/table.h"
#include "processors/regex.h"

/*
 * What `redaction` makes of one string: the patterns for blocked and allowed values, in the
 * Collector's order, and the replacement for what they match.
 *
 * Each blocked pattern searches the result of the one before it. If the string is longer than
 * REGEX_TEXT_MAX, if a search reaches its limit, or if a pattern has more than
 * REDACTION_MATCHES_MAX matches, the string is replaced as a whole. For an allowed pattern, these
 * count as no match.
 *
 * struct redaction_values is immutable and shared; a struct redaction_scratch belongs to one
 * worker and one instance, because it remembers strings without a match.
 */
#define REDACTION_MASK "****"
enum { REDACTION_MATCHES_MAX = 512, REDACTION_CLEAN_SLOTS = 16384 };

struct redaction_values_config {
	const struct strings *blocked, *allowed;
	const char *hash_function; /* NULL or "": REDACTION_MASK; in any case */
	const char *hmac_key;      /* NULL: none */
};

struct redaction_values {
	struct regex_list {
		struct regex **at;
		size_t count;
	} blocked, allowed;
	struct regex *lines;               /* .* */
	const struct redaction_hash *hash; /* NULL: the mask */
	struct view hmac_key;
};

enum redaction_outcome {
	REDACTION_CLEAN,
	REDACTION_ALLOWED, /* an allowed pattern matches: the string stays */
	REDACTION_MASKED,
	REDACTION_WHOLE /* masked as a whole, because of a limit */
};

struct redaction_verdict {
	enum redaction_outcome outcome;
	struct view text; /* if masked; until the next call with this scratch */
};

struct redaction_scratch { /* zeroed memory is an empty one */
	struct regex_memory *regex;
	struct bytes text[2];
	/* half of the digest of strings without a match; the other half selects the slot */
	uint64_t clean[REDACTION_CLEAN_SLOTS];
};

/* Borrows config. fini must be called also after a failure. */
bool redaction_values_init(struct redaction_values *values,
			   const struct redaction_values_config *config, struct error *err);
/* Reports all that is wrong, and what a hostile string could make expensive. */
void redaction_values_check(const struct redaction_values_config *config, struct faults *faults);
void redaction_values_fini(struct redaction_values *values);

bool redaction_values_allow(const struct redaction_values *values,
			    struct redaction_scratch *scratch, struct view text);
/* The verdict on the value of an attribute, or another string. */
struct redaction_verdict redaction_values_search(const struct redaction_values *values,
						 struct redaction_scratch *scratch,
						 struct view text);
/* For the value of a blocked key, which is masked line by line, as in the Collector. */
struct redaction_verdict redaction_values_mask(const struct redaction_values *values,
					       struct redaction_scratch *scratch, struct view text);

void redaction_scratch_fini(struct redaction_scratch *scratch);

#endif
