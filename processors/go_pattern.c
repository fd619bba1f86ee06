/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/go_pattern.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 100
#define GUARDS_MAX 32
#define NEVER SIZE_MAX /* the length of a run that is not looked for */

/* What RE2's \s matches; PCRE2's includes \v. */
#define SPACE "\\t\\n\\f\\r "
#define NOT_SPACE "\\x{0}-\\x{8}\\x{b}\\x{e}-\\x{1f}\\x{21}-\\x{10ffff}"

/* A match begins where the search begins, or where the run of this atom does. */
#define GUARD_BEFORE "(?:\\G|(?<!"
#define GUARD_BEHIND "))"

struct guard { /* in out */
	size_t at, len;
};

struct reader {
	const char *at;
	struct bytes *out;
	struct error *err;
	size_t depth;
	struct group {
		size_t start; /* in out */
		bool leading; /* did nothing of the pattern stand before it? */
	} groups[DEPTH_MAX];
	struct guard guards[GUARDS_MAX];
	size_t guard_count;
	bool leading;    /* nothing stands before, in this alternative and those around it */
	bool repeatable; /* is there something before that may be repeated? */
	/* A word boundary at the very start and the run behind it, if the pattern has no
	 * alternatives at the top: see close_boundary. */
	bool boundary;
	struct guard boundary_run;
};

static bool reject(const struct reader *r, const char *why)
{
	return error_set(r->err, ERROR_CONFIG, "invalid regular expression: %s", why);
}

static void put(struct reader *r, const char *text)
{
	bytes_add_text(r->out, text);
}

static void put_code(struct reader *r, unsigned long code)
{
	bytes_format(r->out, "\\x{%lx}", code);
}

/* Makes room in what was written; out has no maximum that a pattern could reach. */
static void insert(struct reader *r, size_t at, const void *text, size_t len)
{
	size_t behind = r->out->len - at;
	bytes_add(r->out, text, len);
	memmove(r->out->at + at + len, r->out->at + at, behind);
	memcpy(r->out->at + at, text, len);
}

static void erase(struct reader *r, struct guard guard)
{
	uint8_t *at = r->out->at + guard.at;
	memmove(at, at + guard.len, r->out->len - guard.at - guard.len);
	r->out->len -= guard.len;
}

/* \123: up to three octal digits. */
static bool read_octal(struct reader *r)
{
	unsigned long code = 0;
	if (*r->at != '0' && !(r->at[1] >= '0' && r->at[1] <= '7'))
		return reject(r, "backreferences are not part of Go's syntax");
	for (int i = 0; i < 3 && *r->at >= '0' && *r->at <= '7'; i++)
		code = code * 8 + (unsigned long)(*r->at++ - '0');
	put_code(r, code);
	return true;
}

static bool read_hex(struct reader *r)
{
	char *end;
	const char *digits = r->at + 1 + (r->at[1] == '{');
	if (!isxdigit((unsigned char)digits[0]) ||
	    (r->at[1] != '{' && !isxdigit((unsigned char)digits[1])))
		return reject(r, "\\x without two hex digits, or a number in braces");
	char two[3] = { digits[0], digits[1], '\0' };
	bool braces = r->at[1] == '{';
	unsigned long code = strtoul(braces ? digits : two, &end, 16);
	if (code > 0x10ffff || (braces && *end != '}'))
		return reject(r, "\\x{...} is not the number of a character");
	r->at = braces ? end + 1 : digits + 2;
	put_code(r, code);
	return true;
}

/* \pL, \p{Lu}, \p{^Lu}, \p{Greek}. PCRE2 reads a script's name as its extensions. */
static bool read_property(struct reader *r)
{
	const char *name = r->at + 1;
	if (*name != '{') {
		if (!isalpha((unsigned char)*name))
			return reject(r, "\\p without a class");
		bytes_format(r->out, "\\%c%c", *r->at, *name);
		r->at = name + 1;
		return true;
	}
	bool inverted = name[1] == '^';
	name += 1 + inverted;
	size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_");
	if (!len || name[len] != '}')
		return reject(r, "\\p{...} is not the name of a class");
	bool category = len <= 2 || (len == 3 && memcmp(name, "Any", 3) == 0);
	bytes_format(r->out, "\\%c{%s%s%.*s}", *r->at, inverted ? "^" : "",
		     category ? "" : "sc:", (int)len, name);
	r->at = name + len + 1;
	return true;
}

static void read_quoted(struct reader *r)
{
	const char *end = strstr(++r->at, "\\E");
	for (; *r->at && r->at != end; r->at++) {
		if (ispunct((unsigned char)*r->at))
			bytes_add_byte(r->out, '\\');
		bytes_add_byte(r->out, (uint8_t)*r->at);
	}
	r->at += end ? 2 : 0;
}

/* What stands behind a backslash, for one character or class of characters. */
static bool read_escape(struct reader *r, bool in_class)
{
	char c = *r->at;
	if (c >= '0' && c <= '7')
		return read_octal(r);
	if (c == 'x')
		return read_hex(r);
	if (c == 'p' || c == 'P')
		return read_property(r);
	if (c == 'v')
		put_code(r, '\v');
	else if (c == 's')
		put(r, in_class ? SPACE : "[" SPACE "]");
	else if (c == 'S')
		put(r, in_class ? NOT_SPACE : "[^" SPACE "]");
	else if (c > 0 && (strchr("aftnrdDwW", c) || !isalnum((unsigned char)c)))
		bytes_format(r->out, "\\%c", c);
	else
		return reject(r, c ? "Go has no such escape sequence" : "a backslash at the end");
	r->at++;
	return true;
}

/* [:name:] of a class; its length. */
static size_t posix_class(const char *at)
{
	if (at[0] != '[' || at[1] != ':')
		return 0;
	size_t name = 2 + (at[2] == '^');
	name += strspn(at + name, "abcdefghijklmnopqrstuvwxyz");
	return at[name] == ':' && at[name + 1] == ']' ? name + 2 : 0;
}

static bool read_class(struct reader *r)
{
	bytes_add_byte(r->out, (uint8_t)*r->at++);
	if (*r->at == '^')
		bytes_add_byte(r->out, (uint8_t)*r->at++);
	for (bool first = true; *r->at && (first || *r->at != ']'); first = false) {
		size_t posix = posix_class(r->at);
		if (posix) {
			bytes_add(r->out, r->at, posix);
			r->at += posix;
		} else if (*r->at == '\\') {
			r->at++;
			if (!read_escape(r, true))
				return false;
		} else {
			if (*r->at == '[' || *r->at == ']')
				bytes_add_byte(r->out, '\\');
			bytes_add_byte(r->out, (uint8_t)*r->at++);
		}
	}
	if (!*r->at)
		return reject(r, "a class without its ]");
	bytes_add_byte(r->out, (uint8_t)*r->at++);
	return true;
}

/* The length of {n}, {n,} or {n,m}; 0: it is none, and the brace stands for itself. open: has it no
 * maximum? */
static size_t braces_at(const char *at, bool *open)
{
	static const char digits[] = "0123456789";
	size_t min = strspn(at + 1, digits), len = 1 + min;
	*open = false;
	if (!min)
		return 0;
	if (at[len] == ',') {
		size_t max = strspn(at + len + 1, digits);
		*open = !max;
		len += 1 + max;
	}
	return at[len] == '}' ? len + 1 : 0;
}

/* The length of the repetition at this place, with the ? that makes it lazy; 0: there is none. */
static size_t repetition_at(const char *at, bool *open)
{
	size_t len = 0;
	*open = *at == '*' || *at == '+';
	if (*open || *at == '?')
		len = 1;
	else if (*at == '{')
		len = braces_at(at, open);
	return len && at[len] == '?' ? len + 1 : len;
}

static bool read_repetition(struct reader *r, size_t len)
{
	bool open;
	if (!r->repeatable)
		return reject(r, "a repetition of nothing, or of a repetition");
	bytes_add(r->out, r->at, len);
	r->at += len;
	r->repeatable = false;
	if (repetition_at(r->at, &open))
		return reject(r, "a repetition of nothing, or of a repetition");
	return true;
}

/* Excludes the positions within a run, if the pattern begins with one. */
static void guard_run(struct reader *r, size_t start)
{
	bool open;
	struct bytes *out = r->out;
	struct guard guard = { start, out->len - start + sizeof GUARD_BEFORE GUARD_BEHIND - 1 };
	if (!r->leading || !repetition_at(r->at, &open) || !open)
		return;
	if (r->boundary && !r->boundary_run.len)
		r->boundary_run = (struct guard){ start, out->len - start };
	if (r->boundary || r->guard_count == GUARDS_MAX)
		return;
	r->guards[r->guard_count++] = guard;
	struct bytes text;
	bytes_init(&text, SIZE_MAX / 2);
	bytes_add_text(&text, GUARD_BEFORE);
	bytes_add(&text, out->at + start, out->len - start);
	bytes_add_text(&text, GUARD_BEHIND);
	insert(r, start, text.at, text.len);
	bytes_fini(&text);
}

/* One character or class of characters was written, from `start` on. */
static void end_atom(struct reader *r, size_t start)
{
	guard_run(r, start);
	r->boundary = false;
	r->leading = false;
	r->repeatable = true;
}

static bool read_backslash(struct reader *r)
{
	size_t start = r->out->len;
	char c = *++r->at;
	if (c == 'Q') {
		read_quoted(r);
		r->leading = r->boundary = false;
		r->repeatable = true;
		return true;
	}
	if (c && strchr("AzbB", c)) {
		bytes_format(r->out, "\\%c", c);
		r->at++;
		r->boundary = c == 'b' && r->leading && !r->depth && !r->boundary;
		r->leading &= r->boundary;
		r->repeatable = false;
		return true;
	}
	if (!read_escape(r, false))
		return false;
	end_atom(r, start);
	return true;
}

/* The length of "?flags:", "?flags)", or "?P<name>" behind a parenthesis; 0: Go has nothing of the
 * kind. */
static size_t group_head(const char *at)
{
	size_t len = 1 + strspn(at + 1, "imsU-");
	if (at[len] == ':' || at[len] == ')')
		return len + 1;
	len = at[1] == 'P' ? 2 : 1;
	if (at[len] != '<')
		return 0;
	size_t name = strspn(at + len + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					   "0123456789_");
	return name && at[len + 1 + name] == '>' ? len + name + 2 : 0;
}

static bool open_group(struct reader *r)
{
	size_t head = 0, start = r->out->len;
	if (r->at[1] == '?') {
		head = group_head(r->at + 1);
		if (!head)
			return reject(r, "lookarounds, atomic groups and the like are not part of "
					 "Go's syntax");
	}
	bytes_add(r->out, r->at, 1 + head);
	r->at += 1 + head;
	r->repeatable = false;
	if (head && r->at[-1] == ')') {
		/* Flags, up to the end of the group: they would change what close_boundary adds. */
		r->leading &= !r->boundary;
		r->boundary = false;
		if (!r->leading)
			r->boundary_run.len = NEVER;
		return true;
	}
	if (r->depth == DEPTH_MAX)
		return reject(r, "groups are nested too deeply");
	r->groups[r->depth++] = (struct group){ start, r->leading && !r->boundary };
	r->leading &= !r->boundary;
	r->boundary = false;
	return true;
}

/* The second round of a group that is repeated may begin within a run. */
static bool close_group(struct reader *r)
{
	bool open;
	if (!r->depth)
		return reject(r, "a ) without its (");
	const struct group *group = &r->groups[--r->depth];
	bytes_add_byte(r->out, (uint8_t)*r->at++);
	while (repetition_at(r->at, &open) && r->guard_count &&
	       r->guards[r->guard_count - 1].at >= group->start)
		erase(r, r->guards[--r->guard_count]);
	r->leading = r->boundary = false;
	r->repeatable = true;
	return true;
}

static void open_alternative(struct reader *r)
{
	bytes_add_byte(r->out, (uint8_t)*r->at++);
	r->leading = !r->depth || r->groups[r->depth - 1].leading;
	r->boundary = r->repeatable = false;
	if (!r->depth)
		r->boundary_run.len = NEVER;
}

static bool read_literal(struct reader *r)
{
	size_t start = r->out->len;
	if (*r->at == '{' || *r->at == '}' || *r->at == ']')
		bytes_add_byte(r->out, '\\');
	do
		bytes_add_byte(r->out, (uint8_t)*r->at++);
	while (((uint8_t)*r->at & 0xc0) == 0x80);
	end_atom(r, start);
	return true;
}

static bool read_next(struct reader *r)
{
	bool open;
	size_t start = r->out->len, repetition = repetition_at(r->at, &open);
	if (repetition)
		return read_repetition(r, repetition);
	switch (*r->at) {
	case '(':
		return open_group(r);
	case ')':
		return close_group(r);
	case '|':
		open_alternative(r);
		return true;
	case '[':
		if (!read_class(r))
			return false;
		end_atom(r, start);
		return true;
	case '\\':
		return read_backslash(r);
	case '^':
	case '$':
		bytes_add_byte(r->out, (uint8_t)*r->at++);
		r->leading = r->boundary = r->repeatable = false;
		return true;
	default:
		return read_literal(r);
	}
}

/*
 * \b before a run: the leftmost match begins at the first boundary of the run. If none begins
 * there, the search goes on behind the run.
 */
static void close_boundary(struct reader *r)
{
	struct guard run = r->boundary_run;
	if (!run.len || run.len == NEVER)
		return;
	struct bytes atom;
	bytes_init(&atom, SIZE_MAX / 2);
	bytes_add(&atom, r->out->at + run.at, run.len);
	insert(r, run.at, "(?:", 3);
	put(r, "|");
	bytes_add(r->out, atom.at, atom.len);
	put(r, "*+(*SKIP)(*F))");
	bytes_fini(&atom);
}

bool go_pattern_translate(const char *pattern, struct bytes *out, struct error *err)
{
	struct reader r = { .at = pattern, .out = out, .err = err, .leading = true };
	if (strlen(pattern) > GO_PATTERN_MAX)
		return error_set(err, ERROR_CONFIG,
				 "the regular expression is longer than %d bytes", GO_PATTERN_MAX);
	put(&r, "(*LF)");
	while (*r.at)
		if (!read_next(&r))
			return false;
	if (r.depth)
		return reject(&r, "a ( without its )");
	close_boundary(&r);
	bytes_add_byte(out, 0);
	out->len--;
	return true;
}
