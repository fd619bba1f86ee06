/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_REGEX_H
#define PROCESSORS_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/error.h"

/*
 * Regular expressions (PCRE2) under limits; this is the one file that includes the library. The
 * library's interpreter runs them. Its JIT would require memory that is both writable and
 * executable.
 *
 * A struct regex is immutable and shared by all threads; a struct regex_memory belongs to one
 * thread. A search that reaches a limit, or a string larger than REGEX_TEXT_MAX, is REGEX_ERROR;
 * the caller decides which result is safe.
 */
#define REGEX_TEXT_MAX 8192
#define REGEX_GROUPS_MAX 31

enum regex_flag {
	/* the whole string must match: no prefix, no suffix, no trailing newline */
	REGEX_WHOLE = 1,
	REGEX_BYTES = 2, /* the string is bytes, not UTF-8 */
	/* for regex_check_cost: a pattern that matches the empty string is an error */
	REGEX_NOT_EMPTY = 4,
	/* the pattern is one of the Collector's, in Go's syntax (go_pattern.h), and matches what
	 * it matches there */
	REGEX_GO = 8
};

enum regex_result { REGEX_NO, REGEX_YES, REGEX_ERROR };

struct regex;
struct regex_memory;

struct regex_span { /* start == end: empty; set is false if the group did not participate */
	size_t start, end;
	bool set;
};

/* NULL with ERROR_CONFIG and the library's reason. */
struct regex *regex_new(const char *pattern, unsigned flags, struct error *err);
void regex_unref(struct regex **regex); /* clears; accepts NULL */

unsigned regex_groups(const struct regex *regex);                        /* without group 0 */
const char *regex_group_name(const struct regex *regex, unsigned group); /* NULL: has none */

struct regex_memory *regex_memory_new(void);
void regex_memory_unref(struct regex_memory **memory); /* clears; accepts NULL */

/*
 * Searches a string from an offset on. The text before it still counts for \b and ^. The permitted
 * number of steps grows with the string, so the cost per byte is bounded for every pattern.
 */
enum regex_result regex_find(const struct regex *regex, struct regex_memory *memory,
			     struct view text, size_t from);
/* A group of the last REGEX_YES of this memory; 0 is the whole match. */
struct regex_span regex_group(const struct regex_memory *memory, unsigned group);

/*
 * Rejects (ERROR_CONFIG) a pattern that takes more than a fixed number of steps per byte on any of
 * a set of hostile strings. Steps are counted, not timed, so the result for a pattern is the same
 * everywhere.
 */
bool regex_check_cost(const char *pattern, unsigned flags, struct error *err);

#endif
