/* SPDX-License-Identifier: Apache-2.0 */
#include "config/suggest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NAME_MAX_BYTES = 64 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* "-", "_" and the case of letters are what is mixed up most. */
static int folded(char c)
{
	return c == '-' ? '_' : tolower((unsigned char)c);
}

/* The number of characters to insert, remove, replace or swap with their neighbour. */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t rows[3][NAME_MAX_BYTES + 1];
	size_t *before = rows[0], *last = rows[1], *row = rows[2];
	for (size_t k = 0; k <= b_len; k++)
		last[k] = k;
	for (size_t i = 1; i <= a_len; i++) {
		row[0] = i;
		for (size_t k = 1; k <= b_len; k++) {
			bool same = folded(a[i - 1]) == folded(b[k - 1]);
			row[k] = least(last[k - 1] + !same, least(last[k], row[k - 1]) + 1);
			if (i > 1 && k > 1 && folded(a[i - 1]) == folded(b[k - 2]) &&
			    folded(a[i - 2]) == folded(b[k - 1]))
				row[k] = least(row[k], before[k - 2] + 1);
		}
		size_t *free = before;
		before = last;
		last = row;
		row = free;
	}
	return last[b_len];
}

/* One name is the beginning of the other, or its last words: "queue" for "sending_queue". */
static bool is_part(const char *a, size_t a_len, const char *b, size_t b_len)
{
	if (a_len < 4 || a_len >= b_len)
		return false;
	const char *end = b + b_len - a_len;
	return !strncasecmp(a, b, a_len) ||
	       (!strncasecmp(a, end, a_len) && !isalnum((unsigned char)end[-1]));
}

void suggest_try(struct suggest *s, const char *known)
{
	size_t known_len = strlen(known), len = s->name ? strlen(s->name) : 0;
	if (!len || len > NAME_MAX_BYTES || !known_len || known_len > NAME_MAX_BYTES)
		return;
	size_t limit = len < 5 ? 1 : len < 10 ? 2 : 3;
	size_t far = distance(s->name, len, known, known_len);
	if (far > limit &&
	    (is_part(s->name, len, known, known_len) || is_part(known, known_len, s->name, len)))
		far = limit;
	if (far > limit || far >= len || (s->best && far >= s->distance))
		return;
	s->best = known;
	s->distance = far;
}

void suggest_hint(struct suggest *s, const struct config_hint *hints)
{
	for (; hints && hints->name && s->name; hints++)
		if (!strcmp(hints->name, s->name))
			s->hint = hints;
}

/* The path to what is suggested; NULL: there is none. */
static const char *path_of(const struct suggest *s)
{
	if (s->hint)
		return s->hint->use;
	return *s->place ? s->place : s->best;
}

bool suggest_is(const struct suggest *s, const char *known)
{
	const char *path = path_of(s);
	size_t len = strlen(known);
	return path && !strncmp(path, known, len) &&
	       (!path[len] || path[len] == ':' || path[len] == '`');
}

const char *suggest_text(const struct suggest *s, char out[SUGGEST_TEXT])
{
	out[0] = '\0';
	if (s->hint)
		snprintf(out, SUGGEST_TEXT, s->hint->text ? " (%s)" : " (write it as `%s`)",
			 s->hint->text ? s->hint->text : s->hint->use);
	else if (*s->place)
		snprintf(out, SUGGEST_TEXT, " (put it under `%s`)", s->place);
	else if (s->best)
		snprintf(out, SUGGEST_TEXT, " (did you mean `%s`?)", s->best);
	return out;
}
