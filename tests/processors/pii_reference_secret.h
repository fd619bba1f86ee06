/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PROCESSORS_PII_REFERENCE_SECRET_H
#define TESTS_PROCESSORS_PII_REFERENCE_SECRET_H

#include "profile/wire.h"
#include "tests/processors/pii_reference_text.h"

/* Part of pii_reference.h: tokens, credentials, queries and paths. */

/* What is glued to the front of the header goes with it; so do the parts that follow. */
static bool is_jwt(struct view text, struct regex_span *span)
{
	while (span->start && is_base64url(text.at[span->start - 1]))
		span->start--;
	while (span->end < text.len &&
	       (is_base64url(text.at[span->end]) || text.at[span->end] == '.'))
		span->end++;
	return true;
}

static bool is_aws(struct view text, struct regex_span *span)
{
	uint8_t front = before(text, span), back = behind(text, span->end);
	return ((!isupper(front) && !isdigit(front)) || ends_escape(text, span->start)) &&
	       !isupper(back) && !isdigit(back);
}

/* What follows the host is long enough to be the token. */
static bool is_hook(struct view text, struct regex_span *span)
{
	return is_prefix(text, span) && span->end - span->start > strlen("hooks.slack.com") + 20;
}

/* With the four bytes in front, in which another one may end. */
static bool is_azure(struct view text, struct regex_span *span)
{
	(void)text;
	span->start -= 4;
	return true;
}

/* "bearer authentication" is prose: a token is long or has a digit. */
static bool is_bearer(struct view text, struct regex_span *span)
{
	bool digit = false;
	size_t plus = span->start - 1;
	if (text.at[plus] == '+' && (text.at[plus - 1] == ' ' || text.at[plus - 1] == '\t' ||
				     is_word_before(text, plus, "%20")))
		span->start = plus;
	for (size_t i = span->start; i < span->end; i++)
		digit |= isdigit(text.at[i]) != 0;
	return digit || span->end - span->start >= 16;
}

static bool is_basic(struct view text, struct regex_span *span)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint8_t plain[4096];
	size_t n = 0, len = span->end - span->start, pads = 0;
	while (len && text.at[span->start + len - 1] == '=' && pads < 3)
		len--, pads++;
	if (len % 4 == 1 || (pads && (len + pads) % 4))
		return false;
	uint32_t bits = 0;
	bool colon = false;
	for (size_t i = 0; i < len; i++) {
		bits = bits << 6 |
		       (uint32_t)(strchr(alphabet, text.at[span->start + i]) - alphabet);
		if (i % 4 && n < sizeof plain)
			plain[n++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
	}
	for (size_t i = 0; i < n; i++) {
		colon |= plain[i] == ':';
		if (plain[i] < 0x20 || plain[i] == 0x7f)
			return false;
	}
	return colon && wire_utf8_slow(plain, n);
}

/* There is a colon, and something behind it. */
static bool is_userinfo(struct view text, struct regex_span *span)
{
	const uint8_t *colon = memchr(text.at + span->start, ':', span->end - span->start);
	return colon && colon + 1 < text.at + span->end;
}

/* Up to the last @, of as many bytes as a password may have. */
static bool is_odd_userinfo(struct view text, struct regex_span *span)
{
	size_t password = span->start, end;
	while (text.at[password++] != ':')
		;
	end = span->end - password > 128 ? password + 128 : span->end;
	while (--end > password && text.at[end - 1] != '@')
		;
	span->end = end - 1;
	return end > password;
}

/* Where the last such byte in front of a value is. */
static size_t mark_before(struct view text, size_t value, const char *marks)
{
	while (!strchr(marks, text.at[value - 1]))
		value--;
	return value - 1;
}

static size_t blanks_start(struct view text, size_t end)
{
	while (end && text.at[end - 1] == ' ')
		end--;
	return end;
}

static size_t name_start(struct view text, size_t end)
{
	size_t n = 0;
	while (n < 64 && n < end &&
	       (is_base64url(text.at[end - n - 1]) || text.at[end - n - 1] == '.'))
		n++;
	return end - n;
}

static bool is_option(struct view text, struct regex_span *span)
{
	size_t blank = mark_before(text, span->start, " "),
	       name = name_start(text, blanks_start(text, blank));
	return text.at[name] == '-' && (!name || strchr(" \t\n\"'([{=,;>", text.at[name - 1]));
}

/* "-H name", "--header='name" and the like, in front of a name. */
static bool is_behind_option(struct view text, size_t name)
{
	size_t at = name;
	if (is_word_at(text, name, "-H"))
		return true;
	if (at && (text.at[at - 1] == '"' || text.at[at - 1] == '\''))
		at -= at > 1 && text.at[at - 2] == '\\' ? 2 : 1;
	if (at && text.at[at - 1] == '=')
		at--;
	else if (at - blanks_start(text, at) <= 4)
		at = blanks_start(text, at);
	return is_word_before(text, at, "-H") || is_word_before(text, at, "--header");
}

/* A header: by a dash in its name; without a blank, by how it begins. */
static bool is_header(struct view text, struct regex_span *span)
{
	size_t colon = mark_before(text, span->start, ":"), name = name_start(text, colon);
	bool blank = text.at[colon + 1] == ' ',
	     extension = is_word_at(text, name, "X-") || is_word_at(text, name, "x-");
	return (blank ? memchr(text.at + name, '-', colon - name) != NULL : extension) ||
	       is_behind_option(text, name);
}

static bool is_no_header(struct view text, struct regex_span *span)
{
	return !is_header(text, span);
}

/* Does a bracket stand in front of the name that one closes in front of `end`? */
static bool is_part_of_name(struct view text, size_t end)
{
	size_t name = end - 1;
	if (text.at[name] != ']')
		while (text.at[name] != '%')
			name--;
	name = name_start(text, name);
	if (name && text.at[name - 1] == '[')
		return true;
	if (!name || text.at[name - 1] != '%')
		return false;
	while (is_word_at(text, name, "25"))
		name += 2;
	return is_word_at(text, name, "5B") || is_word_at(text, name, "5b");
}

static bool is_part(struct view text, struct regex_span *span)
{
	return is_part_of_name(text, mark_before(text, span->start, "="));
}

static bool is_escaped_part(struct view text, struct regex_span *span)
{
	return is_part_of_name(text, mark_before(text, span->start, "%"));
}

/* At the end of an element: what is between its tags. */
static bool is_element(struct view text, struct regex_span *span)
{
	static const char cdata[] = "<![CDATA[";
	size_t tag = span->start;
	span->end = span->start;
	while (tag && text.at[tag - 1] != '<')
		tag--;
	if (!tag--)
		return false;
	span->start = tag;
	if (is_word_at(text, tag, cdata)) {
		span->start += strlen(cdata);
		span->end -= is_word_before(text, span->end, "]]>") ? 3 : 0;
		return span->end > span->start;
	}
	while (span->start < span->end && text.at[span->start] != '>')
		span->start++;
	return ++span->start < span->end;
}

/* Where the user and the password end, with curl in front of the option. */
static bool is_of_curl(struct view text, struct regex_span *span)
{
	size_t option = mark_before(text, span->start, "uUr"), end = span->start;
	uint8_t mark = text.at[span->start - 1];
	bool quoted = mark == '"' || mark == '\'', escaped = text.at[span->start - 2] == '\\',
	     colon = false;
	for (; end < text.len; end++) {
		if (quoted && text.at[end] == mark && !escaped)
			break;
		if (quoted && escaped && text.at[end] == '\\' && behind(text, end + 1) == mark)
			break;
		if (!quoted && (isspace(text.at[end]) || memchr("\"'<>&;", text.at[end], 6)))
			break;
		colon |= text.at[end] == ':';
		if (quoted && !escaped && text.at[end] == '\\' && end + 1 < text.len)
			colon |= text.at[++end] == ':';
	}
	option -= is_word_before(text, option + 1, "-user") ? 4 : 1;
	span->end = end;
	return colon && end > span->start + 1 && memmem(text.at, option, "curl", 4);
}

/* A value in a path that begins with a slash ends with its segment. */
static bool is_assigned(struct view text, struct regex_span *span)
{
	size_t name = name_start(text, span->start - 1), start = name;
	if (text.at[span->start - 1] != '=' || !name || text.at[name - 1] != ';')
		return true;
	while (start && name - start < 256 && text.at[start - 1] != ' ')
		start--;
	bool page = is_word_at(text, start, "http://") || is_word_at(text, start, "https://");
	if ((start && (text.at[start - 1] != ' ' || name - start == 256)) ||
	    (!page && (text.at[start] != '/' || behind(text, start + 1) == '/')))
		return true;
	for (size_t i = span->start; i < span->end; i++)
		if (memchr("/?#", text.at[i], 3))
			span->end = i;
	return span->end > span->start;
}

/* Digits stand in two places. */
static bool is_random(struct view text, struct regex_span *span)
{
	unsigned places = 0;
	for (size_t i = span->start; i < span->end; i++)
		places += isdigit(text.at[i]) && !isdigit(text.at[i - 1]);
	return places > 1;
}

static bool is_drawn(struct view text, struct regex_span *span)
{
	return is_random(text, span) && is_no_header(text, span);
}

/* name=true&name=false */
static bool is_switches(struct view query)
{
	size_t at = 0;
	for (;;) {
		size_t name = at;
		while (name < query.len && (isalnum(query.at[name]) ||
					    (query.at[name] && strchr("_-.%[]", query.at[name]))))
			name++;
		if (name == at || name - at > 64 || behind(query, name) != '=')
			return false;
		char value[6] = { 0 };
		for (at = name + 1; at < query.len && query.at[at] != '&'; at++)
			if (at - name - 1 < 5)
				value[at - name - 1] = (char)tolower(query.at[at]);
		if (!(strcmp(value, "true") == 0 && at - name == 5) &&
		    !(strcmp(value, "false") == 0 && at - name == 6))
			return false;
		if (at++ == query.len)
			return true;
	}
}

/* Not the digest or the version of a bundle's file, nor switches. */
static bool is_query(struct view text, struct regex_span *span)
{
	static const char *const files[] = { ".js",  ".mjs", ".cjs", ".jsx",   ".ts",
					     ".tsx", ".css", ".vue", ".svelte" };
	size_t query = span->start - 1, start = span->start;
	start += is_word_at(text, start, "v=") || is_word_at(text, start, "t=") ? 2
		 : is_word_at(text, start, "ver=")                              ? 4
										: 0;
	bool digest = span->end - start <= 32, file = false;
	for (size_t i = start; i < span->end; i++)
		digest = digest &&
			 (isalnum(text.at[i]) || (start > span->start && text.at[i] == '.'));
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		file |= query >= strlen(files[i]) &&
			is_word_at(text, query - strlen(files[i]), files[i]);
	return !(digest && file) && !is_switches(cut(text, span));
}

static bool is_name_end(struct view text, size_t at)
{
	static const char ends[] = "/\\ \t\n\v\f\r:;,\"'<>|*?()[]{}";
	return at >= text.len || (text.at[at] && strchr(ends, text.at[at]));
}

static size_t name_length(struct view text, size_t at)
{
	size_t n = 0;
	while (n < 256 && !is_name_end(text, at + n))
		n++;
	return n;
}

static bool is_dots(struct view text, size_t at, size_t len)
{
	return (len == 1 && text.at[at] == '.') || (len == 2 && is_word_at(text, at, ".."));
}

/* "C:/" */
static bool is_drive_at(struct view text, size_t at)
{
	uint8_t slash = behind(text, at + 2);
	return isalpha(behind(text, at)) && behind(text, at + 1) == ':' &&
	       (slash == '/' || slash == '\\');
}

/* "First Last" */
static void add_words(struct view text, struct regex_span *span)
{
	size_t at = span->end;
	bool capitals = true;
	for (int words = 0; words < 3 && behind(text, at) == ' '; words++) {
		size_t n = name_length(text, at + 1);
		n = n > 64 ? 64 : n;
		if (!n || is_drive_at(text, at + 1))
			return;
		capitals &= isupper(text.at[at + 1]) != 0;
		at += 1 + n;
		bool more = behind(text, at) == ' ' && behind(text, at + 1) != '/' &&
			    behind(text, at + 1) != '-' && !is_drive_at(text, at + 1);
		if (behind(text, at) == '/' || behind(text, at) == '\\' || (capitals && !more)) {
			span->end = at;
			return;
		}
	}
}

/* A route begins with its method. */
static bool is_home(struct view text, struct regex_span *span)
{
	if (is_dots(text, span->start, span->end - span->start))
		return false;
	while (is_word_at(text, span->end, "/../")) {
		size_t n = name_length(text, span->end + 4);
		if (!n || is_dots(text, span->end + 4, n))
			break;
		span->end += 4 + n;
	}
	return true;
}

static bool is_users(struct view text, struct regex_span *span)
{
	if (is_dots(text, span->start, span->end - span->start))
		return false;
	add_words(text, span);
	return is_home(text, span);
}

/* A name without a slash behind it. */
static bool is_windows(struct view text, struct regex_span *span)
{
	uint8_t back = behind(text, span->end);
	if (back != '/' && back != '\\')
		add_words(text, span);
	return true;
}

#endif
