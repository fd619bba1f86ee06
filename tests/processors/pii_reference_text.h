/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PROCESSORS_PII_REFERENCE_TEXT_H
#define TESTS_PROCESSORS_PII_REFERENCE_TEXT_H

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "processors/pii_detectors.h"
#include "processors/regex.h"

/* What the parts of pii_reference.h share. */

/* The byte before or behind a span; 0 at the ends of the text. */
static uint8_t before(struct view text, const struct regex_span *span)
{
	return span->start ? text.at[span->start - 1] : 0;
}

static uint8_t behind(struct view text, size_t end)
{
	return end < text.len ? text.at[end] : 0;
}

static struct view cut(struct view text, const struct regex_span *span)
{
	return (struct view){ text.at + span->start, span->end - span->start };
}

static bool is_alone(struct view text, struct regex_span *span)
{
	return !isalnum(before(text, span)) && !isalnum(behind(text, span->end));
}

static bool is_to_end(struct view text, struct regex_span *span)
{
	span->end = text.len;
	return true;
}

static bool is_word_at(struct view text, size_t at, const char *word)
{
	return at <= text.len && text.len - at >= strlen(word) &&
	       memcmp(text.at + at, word, strlen(word)) == 0;
}

static bool is_word_before(struct view text, size_t end, const char *word)
{
	return end >= strlen(word) && is_word_at(text, end - strlen(word), word);
}

static bool is_base64url(uint8_t c)
{
	return isalnum(c) || c == '-' || c == '_';
}

/* Copies the digits of a span; their number. */
static size_t digits_of(struct view text, const struct regex_span *span, uint8_t *out, size_t max)
{
	size_t count = 0;
	for (size_t i = span->start; i < span->end && count < max; i++)
		if (isdigit(text.at[i]))
			out[count++] = text.at[i] - '0';
	return count;
}

/* An escaped character: %3D, \\n, \\x3d, \\u003d. */
static bool ends_escape(struct view text, size_t at)
{
	size_t digits = 0;
	while (digits < 4 && digits < at && isxdigit(text.at[at - digits - 1]))
		digits++;
	if (is_word_before(text, at, "\\n") || is_word_before(text, at, "\\r") ||
	    is_word_before(text, at, "\\t"))
		return true;
	if (digits < 2)
		return false;
	return is_word_before(text, at - 2, "%") || is_word_before(text, at - 2, "\\x") ||
	       (digits == 4 && is_word_before(text, at - 4, "\\u"));
}

/* No letter or digit stands in front, but the end of an escaped character. */
static bool is_prefix(struct view text, struct regex_span *span)
{
	return !isalnum(before(text, span)) || ends_escape(text, span->start);
}

static bool is_free(struct view text, struct regex_span *span)
{
	return is_prefix(text, span) && !isalnum(behind(text, span->end));
}

/* Of a symbol, by the compiler. */
static bool is_suffix(struct view text, const struct regex_span *span)
{
	return span->start >= 6 && is_word_at(text, span->start - 6, ".llvm.");
}

#endif
