/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_find.h"

/* What is made of digits and separators. The anchors see to what stands in front. */
static bool is_digit(struct view text, size_t at)
{
	return pii_is_at(text, at, PII_DIGIT);
}

static bool is_alnum(struct view text, size_t at)
{
	return pii_is_at(text, at, PII_ALNUM);
}

static bool digits_at(struct view text, size_t at, size_t count)
{
	return pii_run(text, at, PII_DIGIT, count) == count;
}

/* Is what ends here only the front of something longer? "-1", ".1" */
static bool goes_on(struct view text, size_t at, bool dash)
{
	uint8_t back = pii_at(text, at);
	return (back == '.' || (dash && back == '-')) && is_digit(text, at + 1);
}

/* Two hex digits; where they end. */
static inline size_t digits_end(struct view text, size_t at)
{
	return pii_is_at(text, at, PII_HEX) && pii_is_at(text, at + 1, PII_HEX) ? at + 2 : 0;
}

/* Where an escaped character ends (pii_ends_escape) that begins here; 0: none does. */
static inline size_t escape_end(struct view text, size_t at)
{
	uint8_t kind = pii_at(text, at + 1);
	size_t digits = text.at[at] == '%' ? at + 1 : at + 2;
	if (digits == at + 2 && (kind == 'n' || kind == 'r' || kind == 't'))
		return digits;
	if (digits == at + 2 && kind == 'u')
		return digits_end(text, digits) ? digits_end(text, digits + 2) : 0;
	return digits == at + 1 || kind == 'x' ? digits_end(text, digits) : 0;
}

#define EFFORT_ESCAPED 90 /* of a call: mostly something else follows the escape */

bool pii_find_escaped(const struct pii_rule *rule, struct view text, size_t at,
		      struct pii_seen *seen, struct regex_span *span)
{
	if (seen->escape != at) {
		seen->escape = at;
		seen->escape_end = escape_end(text, at);
	}
	size_t end = seen->escape_end;
	if (!end || !pii_is_at(text, end + rule->min - 1, rule->kinds))
		return false;
	pii_spend(&seen->runs, EFFORT_ESCAPED);
	return rule->escaped(rule, text, end, seen, span);
}

/* Four numbers up to 255 with the same separator; where they end, 0: they are none. */
static size_t four_numbers(struct view text, size_t i, uint8_t gap)
{
	for (int part = 0; part < 4; part++) {
		unsigned number = 0;
		size_t n = 0;
		if (part && pii_at(text, i++) != gap)
			return 0;
		for (; n < 3 && is_digit(text, i + n); n++)
			number = number * 10 + (text.at[i + n] - '0');
		if (!n || number > 255)
			return 0;
		i += n;
	}
	return i;
}

/* "libfoo-3.21.12.0.so": a version, behind the name of what has it, and in front of more of the
 * name. */
static bool is_named_version(struct view text, size_t at, size_t end)
{
	static const char *const endings[PII_WORD_MAX + 1] = {
		[2] = "so",
		[3] = "dll"
		      "jar"
		      "whl"
		      "egg"
		      "deb"
		      "rpm"
		      "gem"
		      "tar"
		      "tgz"
		      "zip"
		      "exe",
		[5] = "dylib",
	};
	if (at < 2 || !pii_is(text.at[at - 1], PII_DASH | PII_UNDERSCORE) ||
	    !(pii_is(text.at[at - 2], PII_ALNUM) || text.at[at - 2] == '+'))
		return false;
	uint8_t back = pii_at(text, end);
	if (back == '.') {
		size_t len = pii_run(text, end + 1, PII_ALNUM, 6);
		return pii_is_word((struct view){ text.at + end + 1, len }, endings);
	}
	return back == '/' || back == '-' || back == '_';
}

/* "Version=4.0.0.0" of an assembly, "Chrome/120.0.0.0" of a browser. */
static bool is_labelled_version(struct view text, size_t at)
{
	uint8_t mark = pii_at(text, at - 1);
	if (mark == '=')
		return PII_WORD_BEFORE(text, at - 1, "ersion");
	return mark == '/' &&
	       (PII_WORD_BEFORE(text, at - 1, "Chrome") ||
		PII_WORD_BEFORE(text, at - 1, "Chromium") ||
		PII_WORD_BEFORE(text, at - 1, " Edg") || PII_WORD_BEFORE(text, at - 1, " OPR"));
}

/* "C:\Program Files\jvm\17.0.2.8\": below the name of what is installed. */
static bool is_installed_version(struct view text, size_t at, size_t end)
{
	if (pii_at(text, at - 1) != '\\' || pii_at(text, end) != '\\')
		return false;
	size_t name = pii_run_back(text, at - 1, PII_NAME, 64), front = at - 1 - name;
	return name && (PII_WORD_BEFORE(text, front, "\\Program Files\\") ||
			PII_WORD_BEFORE(text, front, "\\Program Files (x86)\\"));
}

static bool is_version(struct view text, size_t at, size_t end)
{
	return is_named_version(text, at, end) || is_labelled_version(text, at) ||
	       is_installed_version(text, at, end);
}

#define EFFORT_VERSION 60

/* Not part of a longer dotted number. */
bool pii_find_ipv4(const struct pii_rule *rule, struct view text, size_t at, struct pii_seen *seen,
		   struct regex_span *span)
{
	(void)rule;
	size_t end = four_numbers(text, at, '.');
	return end && pii_spend(&seen->runs, EFFORT_VERSION) && !is_alnum(text, end) &&
	       !goes_on(text, end, false) && !is_version(text, at, end) && pii_hit(span, at, end);
}

/* The name of a host in a cloud, in small letters or capitals: what stands in front of its numbers;
 * its length, 0: it is none. */
static size_t host_front(struct view text, size_t dash)
{
	uint8_t last = pii_at(text, dash - 1) | 0x20, first = pii_at(text, dash - 2) | 0x20;
	if (last == 'p' && first == 'i')
		return 2;
	return pii_at(text, dash - 1) == '2' && first == 'c' &&
			       (pii_at(text, dash - 3) | 0x20) == 'e'
		       ? 3
		       : 0;
}

/* ip-10-1-2-3, ec2-203-0-113-25, at the first dash */
bool pii_find_ipv4_host(const struct pii_rule *rule, struct view text, size_t at,
			struct pii_seen *seen, struct regex_span *span)
{
	(void)rule, (void)seen;
	size_t front = host_front(text, at), start = at + 1;
	if (!front || (at > front && pii_is_glued(text, at - front)))
		return false;
	size_t end = four_numbers(text, start, '-');
	return end && !is_alnum(text, end) && !goes_on(text, end, true) &&
	       pii_hit(span, start, end);
}

/* Area 000, 666, 9xx, group 00 and serial 0000 are never given (SSA, since 2011). */
bool pii_find_ssn(const struct pii_rule *rule, struct view text, size_t at, struct pii_seen *seen,
		  struct regex_span *span)
{
	(void)rule, (void)seen;
	if (pii_at(text, at + 3) != '-' || pii_at(text, at + 6) != '-' || !digits_at(text, at, 3) ||
	    !digits_at(text, at + 4, 2) || !digits_at(text, at + 7, 4))
		return false;
	if (PII_WORD_AT(text, at, "000") || PII_WORD_AT(text, at, "666") || text.at[at] == '9' ||
	    PII_WORD_AT(text, at + 4, "00") || PII_WORD_AT(text, at + 7, "0000"))
		return false;
	return !is_alnum(text, at + 11) && pii_at(text, at + 11) != '-' &&
	       pii_hit(span, at, at + 11);
}

/* A separator in a phone number; its length. In a URL, blanks and brackets are escaped. */
static size_t phone_gap(struct view text, size_t at, bool escaped)
{
	uint8_t last = pii_at(text, at + 2);
	switch (pii_at(text, at)) {
	case ' ':
	case '.':
	case '(':
	case ')':
	case '-':
		return 1;
	case '+':
		return escaped;
	case '%':
		return escaped && pii_at(text, at + 1) == '2' &&
				       (last == '0' || last == '8' || last == '9')
			       ? 3
			       : 0;
	default:
		return 0;
	}
}

/* Where a phone number ends, with its extension; 0: something longer goes on. */
static size_t phone_end(struct view text, size_t end)
{
	size_t extension = pii_at(text, end) == 'x' ? pii_run(text, end + 1, PII_DIGIT, 6) : 0;
	end += extension ? 1 + extension : 0;
	return is_alnum(text, end) || goes_on(text, end, true) ? 0 : end;
}

#define EFFORT_PHONE_DIGIT 14

/* + or %2B, then 8 to 15 digits (E.164), with up to two separators between them but in the
 * country's code. */
bool pii_find_phone(const struct pii_rule *rule, struct view text, size_t at, struct pii_seen *seen,
		    struct regex_span *span)
{
	size_t start = at + rule->back + 1;
	size_t country = pii_run(text, start, PII_DIGIT, 3);
	if (!country || text.at[start] == '0' ||
	    (rule->back ? text.at[at] != '%' : pii_is_glued(text, at)))
		return false;
	size_t count = country, end = start + country;
	for (; count < country + 14; count++) {
		size_t i = end;
		for (int gaps = 0; gaps < 2 && !is_digit(text, i); gaps++)
			i += phone_gap(text, i, rule->back);
		if (!is_digit(text, i))
			break;
		end = i + 1;
	}
	pii_spend(&seen->runs, EFFORT_PHONE_DIGIT * count);
	return count >= 8 && count <= 15 && pii_hit(span, at, phone_end(text, end));
}

static bool is_dialled(struct view text, size_t at)
{
	uint8_t first = pii_at(text, at);
	return first >= '2' && first <= '9' && digits_at(text, at + 1, 2);
}

static bool is_phone_gap(uint8_t byte)
{
	return byte == '-' || byte == '.' || byte == ' ';
}

/* Where a North American number ends: (202) 555-0143, 202-555-0143; 0: it is none. */
static size_t nanp_end(struct view text, size_t at)
{
	size_t i = at;
	if (pii_at(text, at) == '(') {
		if (pii_at(text, at + 4) != ')' || !is_dialled(text, at + 1))
			return 0;
		i += pii_at(text, at + 5) == ' ' ? 6 : 5;
	} else {
		if (!is_phone_gap(pii_at(text, at + 3)) || !is_dialled(text, at))
			return 0;
		i += 4;
	}
	if (!is_dialled(text, i) || !is_phone_gap(pii_at(text, i + 3)) ||
	    !digits_at(text, i + 4, 4))
		return 0;
	return phone_end(text, i + 8);
}

bool pii_find_phone_nanp(const struct pii_rule *rule, struct view text, size_t at,
			 struct pii_seen *seen, struct regex_span *span)
{
	(void)rule, (void)seen;
	return pii_hit(span, at, nanp_end(text, at));
}

/* 1-202-555-0143 */
bool pii_find_phone_trunk(const struct pii_rule *rule, struct view text, size_t at,
			  struct pii_seen *seen, struct regex_span *span)
{
	(void)rule, (void)seen;
	return pii_hit(span, at, nanp_end(text, at + 2));
}

/* Either. */
bool pii_find_phone_national(const struct pii_rule *rule, struct view text, size_t at,
			     struct pii_seen *seen, struct regex_span *span)
{
	(void)rule, (void)seen;
	size_t trunk = PII_WORD_AT(text, at, "1-") ? 2 : 0;
	return pii_hit(span, at, nanp_end(text, at + trunk));
}

/* Three letters, the kind of holder, a letter, four digits, a letter. */
bool pii_find_pan(const struct pii_rule *rule, struct view text, size_t at, struct pii_seen *seen,
		  struct regex_span *span)
{
	(void)rule, (void)seen;
	if (pii_run(text, at, PII_UPPER, 6) != 5 || !strchr("ABCFGHJLPT", text.at[at + 3]) ||
	    !digits_at(text, at + 5, 4) || !pii_is_at(text, at + 9, PII_UPPER))
		return false;
	return !is_alnum(text, at + 10) && pii_hit(span, at, at + 10);
}

/*
 * The check digit of Aadhaar numbers (Verhoeff): each digit, turned by its place, is multiplied in
 * the dihedral group D5. Here of four digits, in places that begin with an even multiple of four or
 * an odd one.
 */
static unsigned verhoeff(unsigned check, const uint8_t *digits, bool odd)
{
	static const uint8_t turn[8][10] = {
		{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 }, { 1, 5, 7, 6, 2, 8, 3, 0, 9, 4 },
		{ 5, 8, 0, 3, 7, 9, 6, 1, 4, 2 }, { 8, 9, 1, 6, 0, 4, 3, 5, 2, 7 },
		{ 9, 4, 5, 3, 1, 2, 6, 8, 7, 0 }, { 4, 2, 8, 6, 5, 7, 3, 9, 0, 1 },
		{ 2, 7, 9, 3, 8, 0, 6, 4, 1, 5 }, { 7, 0, 4, 6, 9, 1, 3, 2, 5, 8 },
	};
	static const uint8_t product[10][10] = {
		{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 }, { 1, 2, 3, 4, 0, 6, 7, 8, 9, 5 },
		{ 2, 3, 4, 0, 1, 7, 8, 9, 5, 6 }, { 3, 4, 0, 1, 2, 8, 9, 5, 6, 7 },
		{ 4, 0, 1, 2, 3, 9, 5, 6, 7, 8 }, { 5, 9, 8, 7, 6, 0, 4, 3, 2, 1 },
		{ 6, 5, 9, 8, 7, 1, 0, 4, 3, 2 }, { 7, 6, 5, 9, 8, 2, 1, 0, 4, 3 },
		{ 8, 7, 6, 5, 9, 3, 2, 1, 0, 4 }, { 9, 8, 7, 6, 5, 4, 3, 2, 1, 0 },
	};
	const uint8_t(*row)[10] = turn + 4 * odd;
	check = product[check][row[0][digits[3] - '0']];
	check = product[check][row[1][digits[2] - '0']];
	check = product[check][row[2][digits[1] - '0']];
	return product[check][row[3][digits[0] - '0']];
}

#define EFFORT_VERHOEFF 170

/* Twelve digits, or three groups of four with the same separator. */
bool pii_find_aadhaar(const struct pii_rule *rule, struct view text, size_t at,
		      struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	uint8_t gap = pii_at(text, at + 4);
	size_t step = gap == ' ' || gap == '-' ? 5 : 4, end = at + 2 * step + 4;
	if (end > text.len || (step == 5 && text.at[at + 9] != gap))
		return false;
	const uint8_t *first = text.at + at, *second = first + step, *third = second + step;
	if (!pii_four_digits(first) || !pii_four_digits(second) || !pii_four_digits(third))
		return false;
	if (is_alnum(text, end) || pii_at(text, end) == '-' || pii_is_part(text, at))
		return false;
	pii_spend(&seen->runs, EFFORT_VERHOEFF);
	unsigned check = verhoeff(verhoeff(verhoeff(0, third, false), second, true), first, false);
	return check == 0 && pii_hit(span, at, end);
}

bool pii_find_uuid(const struct pii_rule *rule, struct view text, size_t at, struct pii_seen *seen,
		   struct regex_span *span)
{
	static const uint8_t lengths[] = { 8, 4, 4, 4, 12 };
	(void)rule, (void)seen;
	size_t i = at;
	if (pii_at(text, at + 8) != '-')
		return false;
	for (size_t part = 0; part < sizeof lengths; part++) {
		if (part && pii_at(text, i++) != '-')
			return false;
		if (pii_run(text, i, PII_HEX, lengths[part]) < lengths[part])
			return false;
		i += lengths[part];
	}
	return !is_alnum(text, i) && pii_hit(span, at, i);
}
