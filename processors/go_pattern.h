/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_GO_PATTERN_H
#define PROCESSORS_GO_PATTERN_H

#include "base/bytes.h"
#include "base/error.h"

/*
 * Go's regular expressions (RE2), which configurations of the Collector contain, in the syntax of
 * PCRE2. A pattern that Go does not accept is ERROR_CONFIG, with the reason: backreferences,
 * lookarounds, and possessive and atomic groups are not part of its syntax. What both know but
 * read differently is rewritten: \v, \s and its inverse, octal escapes, scripts such as \p{Greek},
 * and braces that are not a repetition. The flags that remain (REGEX_GO) are in regex.c.
 *
 * Go searches in linear time. A backtracking engine takes quadratic time where a pattern begins
 * with a repetition that has no maximum (".*token", "[a-z.]+@"), because it tries every position of
 * a run. The leftmost match of such a pattern always begins where the run begins, so other
 * positions are excluded here, and the result is the same.
 */
enum { GO_PATTERN_MAX = 4096 }; /* bytes of a pattern */

/* Appends the translation and a NUL that does not count. out has no maximum that matters. */
bool go_pattern_translate(const char *pattern, struct bytes *out, struct error *err);

#endif
