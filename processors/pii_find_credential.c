/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_find.h"

/* What stands behind a name that says it is secret, in URLs, headers, command lines and JSON. */

/* Does the word end here? And with no letter or digit before it? */
#define ENDS(word) PII_LETTERS_BEFORE(text, end, word)
#define ALONE(word) (ENDS(word) && is_alone(text, end - (sizeof(word) - 1)))

static bool is_alone(struct view text, size_t start)
{
	return !pii_is_at(text, start - 1, PII_ALNUM) || pii_ends_escape(text, start);
}

/* What may stand before "key": api_key, api-key, apikey. */
static bool is_secret_key(struct view text, size_t end)
{
	if (end && pii_is(text.at[end - 1], PII_DASH | PII_UNDERSCORE))
		end--;
	switch (end ? text.at[end - 1] | 0x20 : 0) {
	case 'i':
		return ENDS("api");
	case 's':
		return ENDS("access");
	case 't':
		return ENDS("secret") || ENDS("account");
	case 'e':
		return ENDS("private");
	case 'h':
		return ALONE("auth");
	case 'r':
		return ENDS("master");
	case 'n':
		return ENDS("encryption") || ENDS("subscription");
	case 'g':
		return ENDS("signing");
	case 'd':
		return ENDS("shared");
	default:
		return false;
	}
}

static bool is_secret_key_base(struct view text, size_t end)
{
	return ENDS("base") && pii_at(text, end - 5) == '_' &&
	       PII_LETTERS_BEFORE(text, end - 5, "key") && pii_at(text, end - 9) == '_' &&
	       PII_LETTERS_BEFORE(text, end - 9, "secret");
}

static bool is_session(struct view text, size_t end)
{
	size_t name = end - 2;
	if (!ENDS("id"))
		return false;
	if (PII_LETTERS_BEFORE(text, name, "sess"))
		return true;
	name -= pii_is_at(text, name - 1, PII_DASH | PII_UNDERSCORE);
	return PII_LETTERS_BEFORE(text, name, "session");
}

#define LETTERS(a, b, c) ((uint32_t)(a) << 16 | (uint32_t)(b) << 8 | (uint32_t)(c))

/* Does a word end here that makes the value of a name secret? */
static bool is_secret(struct view text, size_t end)
{
	const uint8_t *tail = text.at + end - 3;
	switch (LETTERS(tail[0] | 0x20, tail[1] | 0x20, tail[2] | 0x20)) {
	case LETTERS('o', 'r', 'd'):
		return ENDS("password");
	case LETTERS('s', 'w', 'd'):
		return ENDS("passwd");
	case LETTERS('p', 'w', 'd'):
		return ALONE("pwd");
	case LETTERS('a', 's', 's'):
		return ALONE("pass");
	case LETTERS('a', 's', 'e'):
		return ENDS("passphrase") || is_secret_key_base(text, end);
	case LETTERS('r', 'e', 't'):
		return ENDS("secret");
	case LETTERS('k', 'e', 'n'): /* an assembly's PublicKeyToken is no secret */
		return ENDS("token") && !ENDS("publickeytoken");
	case LETTERS('k', 'e', 'y'):
		return is_secret_key(text, end - 3);
	case LETTERS('i', 'a', 'l'):
		return ENDS("credential");
	case LETTERS('a', 'l', 's'):
		return ENDS("credentials");
	case LETTERS('u', 'r', 'e'):
		return ENDS("signature");
	case LETTERS('s', 'i', 'g'):
		return ALONE("sig");
	case LETTERS('u', 't', 'h'):
		return ALONE("auth");
	default:
		return is_session(text, end);
	}
}

#define EFFORT_QUOTED 9 /* a byte between quotation marks */

size_t pii_quoted_end(struct pii_seen *seen, struct view text, size_t at)
{
	uint8_t mark = text.at[at - 1];
	bool escaped = pii_at(text, at - 2) == '\\';
	size_t end = at;
	for (; end < text.len; end++) {
		if (escaped && text.at[end] == '\\' && pii_at(text, end + 1) == mark)
			break;
		if (!escaped && text.at[end] == mark)
			break;
		if (!escaped && text.at[end] == '\\' && end + 1 < text.len)
			end++;
	}
	pii_spend(&seen->runs, EFFORT_QUOTED * (end - at));
	return end;
}

static size_t blanks_at(struct view text, size_t at)
{
	size_t n = 0;
	while (n < 4 && pii_at(text, at + n) == ' ')
		n++;
	return n;
}

/* Where the blanks in front of `end` begin, but not before `start`. */
static size_t blanks_before(struct view text, size_t start, size_t end)
{
	while (end > start && text.at[end - 1] == ' ')
		end--;
	return end;
}

/* What may stand between a name and its value, in front of `end`, but not before `start`: =, : and
 * Ruby's =>; the length. */
static size_t mark_before(struct view text, size_t start, size_t end)
{
	uint8_t last = end > start ? text.at[end - 1] : 0;
	if (last == '=' || last == ':')
		return 1;
	return last == '>' && end - start > 1 && text.at[end - 2] == '=' ? 2 : 0;
}

/* The same for a quotation mark, which may be escaped. */
static size_t quote_before(struct view text, size_t start, size_t end)
{
	if (end == start || (text.at[end - 1] != '"' && text.at[end - 1] != '\''))
		return 0;
	return end - start > 1 && text.at[end - 2] == '\\' ? 2 : 1;
}

/* The span of a value. Where it ends as the name of another does ("secret=token='x'"), what stands
 * behind that name is left to it. */
static bool value_between(struct view text, size_t start, size_t end, struct regex_span *span)
{
	size_t name = blanks_before(text, start, end);
	name = blanks_before(text, start, name - mark_before(text, start, name));
	name -= quote_before(text, start, name);
	bool other = name > start && name < end && is_secret(text, name);
	return pii_hit(span, start, other ? name : end);
}

static bool quoted_at(struct pii_seen *seen, struct view text, size_t at, struct regex_span *span)
{
	size_t quote = pii_quote_at(text, at), start = at + quote;
	return quote && value_between(text, start, pii_quoted_end(seen, text, start), span);
}

/* Where the name that ends here begins. */
#define NAME_MAX_LEN 64
#define EFFORT_NAME_BYTE 6

static size_t name_start(struct pii_seen *seen, struct view text, size_t end)
{
	size_t len = pii_run_back(text, end, PII_BASE64URL | PII_DOT, NAME_MAX_LEN);
	pii_spend(&seen->runs, EFFORT_NAME_BYTE * len);
	return end - len;
}

#define EFFORT_VALUE 165 /* behind the name of a secret */

static bool value_at(struct pii_seen *seen, struct view text, size_t at, struct regex_span *span)
{
	if (pii_quote_at(text, at))
		return quoted_at(seen, text, at, span);
	return value_between(text, at, pii_run_end(&seen->runs, text, at, PII_SECRET), span);
}

/* Is the name a parameter in a path, as in /app/cart;token=x/items? A value in it ends with the
 * segment. The path, or the URL of a page, begins the string, or stands behind a blank. */
#define FRONT_MAX 256

static bool is_path_parameter(struct view text, size_t name)
{
	size_t window = name < FRONT_MAX ? name : FRONT_MAX;
	const uint8_t *blank = memrchr(text.at + name - window, ' ', window);
	size_t start = blank ? (size_t)(blank - text.at) + 1 : 0;
	if (!blank && window < name)
		return false;
	return PII_WORD_AT(text, start, "http://") || PII_WORD_AT(text, start, "https://") ||
	       (text.at[start] == '/' && pii_at(text, start + 1) != '/');
}

/* As value_at does, but in a path. */
static bool assigned_at(struct pii_seen *seen, struct view text, size_t name_end,
			struct regex_span *span)
{
	size_t start = name_end + 1, end = start;
	if (!value_at(seen, text, start, span) || span->start != start)
		return span->end > span->start;
	size_t name = name_start(seen, text, name_end);
	if (pii_at(text, name - 1) != ';')
		return true;
	while (end < span->end && text.at[end] != '/' && text.at[end] != '?' && text.at[end] != '#')
		end++;
	pii_spend(&seen->runs, EFFORT_VALUE + 3 * (end - start));
	if (end < span->end && is_path_parameter(text, name))
		span->end = end;
	return span->end > start;
}

/* Where the % stands that the digits in front of `end` belong to, if it is one; it may be escaped
 * itself, any number of times. */
static size_t percent_before(struct view text, size_t end)
{
	while (end > 2 && text.at[end - 1] == '5' && text.at[end - 2] == '2')
		end -= 2;
	return end - 1;
}

/* Is a bracket opened in front of a name, as such or escaped any number of times? */
static bool is_bracket_before(struct view text, size_t name)
{
	uint8_t front = pii_at(text, name - 1);
	if (front != '%')
		return front == '[';
	while (PII_WORD_AT(text, name, "25"))
		name += 2;
	return PII_WORD_AT(text, name, "5B") || PII_WORD_AT(text, name, "5b");
}

/* Where the name in front of `end` ends: in front of the bracket, if it is a part of another name,
 * as in "user[password]=x". */
static size_t part_end(struct pii_seen *seen, struct view text, size_t end)
{
	size_t part = end;
	if (pii_at(text, end - 1) == ']')
		part = end - 1;
	else if (pii_at(text, end - 2) == '5' && PII_LETTERS_BEFORE(text, end, "d"))
		part = percent_before(text, end - 2);
	bool closed = part < end && (text.at[part] == ']' || text.at[part] == '%');
	return closed && is_bracket_before(text, name_start(seen, text, part)) ? part : end;
}

/* name=value. "operator==", "token=>" and "token=(" are code, "PWD=/" is a directory. */
bool pii_find_assigned(const struct pii_rule *rule, struct view text, size_t at,
		       struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	uint8_t first = pii_at(text, at + 1);
	if (!is_secret(text, part_end(seen, text, at)))
		return false;
	if (!pii_spend(&seen->runs, EFFORT_VALUE))
		return false;
	if (first == '>') /* Ruby's name=>"value" */
		return quoted_at(seen, text, at + 2 + blanks_at(text, at + 2), span);
	if (pii_is(first, PII_SLASH | PII_DOT) && PII_LETTERS_BEFORE(text, at, "pwd") &&
	    !(at > 3 && pii_is(text.at[at - 4], PII_DASH | PII_UNDERSCORE)))
		return false;
	return assigned_at(seen, text, at, span);
}

/* %26, or %2526 and so on: an escaped & */
static bool is_escaped_and(struct view text, size_t at)
{
	size_t digits = at + 1;
	if (pii_at(text, at) != '%')
		return false;
	while (PII_WORD_AT(text, digits, "25"))
		digits += 2;
	return PII_WORD_AT(text, digits, "26");
}

/* name%3Dvalue, up to an escaped &; at what stands in front of "3D", which is escaped as often as
 * the string was. */
bool pii_find_assigned_escaped(const struct pii_rule *rule, struct view text, size_t at,
			       struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	size_t name = percent_before(text, at + 1), start = at + 3, end = start;
	if (text.at[name] != '%' || !is_secret(text, part_end(seen, text, name)))
		return false;
	if (!pii_spend(&seen->runs, EFFORT_VALUE / 2))
		return false;
	size_t max = pii_run_end(&seen->runs, text, start, PII_SECRET);
	for (const uint8_t *mark; end < max && !is_escaped_and(text, end);) {
		mark = memchr(text.at + end + 1, '%', max - end - 1);
		end = mark ? (size_t)(mark - text.at) : max;
	}
	pii_spend(&seen->runs, EFFORT_QUOTED * (end - start));
	return pii_hit(span, start, end);
}

/* Where : or Ruby's => between a name and its value ends; 0: it is neither. */
static size_t mark_end(struct view text, size_t at)
{
	if (pii_at(text, at) == ':')
		return at + 1;
	return PII_WORD_AT(text, at, "=>") ? at + 2 : 0;
}

/* "name": "value" and "name"=>"value", at what stands behind the name. */
bool pii_find_json_value(const struct pii_rule *rule, struct view text, size_t at,
			 struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	size_t name = at - quote_before(text, 0, at), value = mark_end(text, at);
	if (!value || !is_secret(text, name))
		return false;
	if (!pii_spend(&seen->runs, EFFORT_VALUE))
		return false;
	return quoted_at(seen, text, value + blanks_at(text, value), span);
}

/* --name value, at the blank. */
bool pii_find_option_value(const struct pii_rule *rule, struct view text, size_t at,
			   struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	size_t value = at + blanks_at(text, at);
	if (pii_at(text, value) == '-' || pii_at(text, value) == ' ' || !is_secret(text, at))
		return false;
	if (!pii_spend(&seen->runs, EFFORT_VALUE))
		return false;
	size_t name = name_start(seen, text, at);
	if (text.at[name] != '-' || (name && !strchr(" \t\n\"'([{=,;>", text.at[name - 1])))
		return false;
	return value_at(seen, text, value, span);
}

#define EFFORT_NUMBERS_BYTE 8

/* The number of places with digits, up to max. */
static unsigned number_count(struct view text, size_t start, size_t end, unsigned max)
{
	unsigned count = 0;
	bool digit = false;
	for (size_t i = start; i < end && count < max; i++) {
		count += !digit && pii_is(text.at[i], PII_DIGIT);
		digit = pii_is(text.at[i], PII_DIGIT);
	}
	return count;
}

/* A password as people choose them. A type ("password: Base64String") begins with a capital and has
 * digits in one place at most. */
static bool password_at(struct pii_seen *seen, struct view text, size_t at, struct regex_span *span)
{
	size_t len = pii_run_end(&seen->runs, text, at, PII_SECRET) - at;
	while (len && text.at[at + len - 1] == ':') /* of a name */
		len--;
	if (len < 8 || !pii_is(text.at[at], PII_ALNUM))
		return false;
	unsigned min = pii_is(text.at[at], PII_UPPER) ? 2 : 1;
	pii_spend(&seen->runs, EFFORT_NUMBERS_BYTE * len);
	return number_count(text, at, at + len, min) == min && pii_hit(span, at, at + len);
}

/* A type ("token: Curve25519PrivateKey") has digits in one place, or is a path with dots. */
size_t pii_drawn_end(struct pii_seen *seen, struct view text, size_t at)
{
	size_t end = pii_run_end(&seen->runs, text, at, PII_BASE64URL | PII_BASE64 | PII_TILDE);
	if (end - at < 16 || !(pii_is(text.at[at], PII_BASE64URL) || text.at[at] == '+'))
		return 0;
	bool drawn = number_count(text, at, end, 2) == 2;
	pii_spend(&seen->runs, EFFORT_NUMBERS_BYTE * (end - at));
	for (int i = 0; i < 2 && pii_at(text, end) == '='; i++)
		end++;
	uint8_t back = pii_at(text, end);
	bool ends = !back || strchr(" \t\r\n,;\"')]}&", back);
	return drawn && ends ? end : 0;
}

/* A value that looks like a secret, of the name that ends at `name`. */
static bool secret_at(struct pii_seen *seen, struct view text, size_t name, size_t value,
		      struct regex_span *span)
{
	if (PII_LETTERS_BEFORE(text, name, "password") ||
	    PII_LETTERS_BEFORE(text, name, "passwd") ||
	    PII_LETTERS_BEFORE(text, name, "passphrase"))
		return password_at(seen, text, value, span);
	return pii_hit(span, value, pii_drawn_end(seen, text, value));
}

/* Does an option of curl stand in front, -H or --header? It may be glued to the name. */
static bool is_header_option(struct view text, size_t name)
{
	if (PII_WORD_AT(text, name, "-H"))
		return true;
	name -= quote_before(text, 0, name);
	if (pii_at(text, name - 1) == '=')
		name--;
	else
		name = blanks_before(text, name > 4 ? name - 4 : 0, name);
	return PII_WORD_BEFORE(text, name, "-H") || PII_WORD_BEFORE(text, name, "--header");
}

/* Is the name that of a header? A dash sets it apart from a parameter of a function. With no blank
 * behind the colon, it might be a module or a picture with a tag ("csi-secret:v1"). */
static bool is_header(struct pii_seen *seen, struct view text, size_t end, bool blank)
{
	size_t name = name_start(seen, text, end);
	if (blank ? memchr(text.at + name, '-', end - name) != NULL
		  : PII_LETTERS_AT(text, name, "x") && text.at[name + 1] == '-')
		return true;
	return is_header_option(text, name);
}

/* X-Api-Key: value, at the colon. Behind a blank, the value of another name has to look like a
 * secret. */
bool pii_find_header_value(const struct pii_rule *rule, struct view text, size_t at,
			   struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	if (!is_secret(text, at))
		return false;
	if (!pii_spend(&seen->runs, 2 * EFFORT_VALUE))
		return false;
	size_t value = at + 1 + blanks_at(text, at + 1);
	if (value >= text.len || text.at[value] == ' ')
		return false;
	if (is_header(seen, text, at, value > at + 1))
		return value_at(seen, text, value, span);
	return value > at + 1 && secret_at(seen, text, at, value, span);
}

/* "name" : "value", name = value and name => "value", at what stands between blanks. A value
 * without quotation marks has to look like a secret. */
bool pii_find_spaced_value(const struct pii_rule *rule, struct view text, size_t at,
			   struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	size_t name = blanks_before(text, at > 4 ? at - 4 : 0, at), mark = mark_end(text, at);
	size_t value = mark ? mark : at + 1;
	value += blanks_at(text, value);
	if (mark)
		name -= quote_before(text, 0, name);
	if (!is_secret(text, name))
		return false;
	if (!pii_spend(&seen->runs, EFFORT_VALUE))
		return false;
	if (pii_quote_at(text, value))
		return quoted_at(seen, text, value, span);
	return text.at[at + 1] == ' ' && secret_at(seen, text, name, value, span);
}

/* <password>value</password>, at the end of the element: what stands behind the tag in front, whose
 * attributes are not looked at. */
bool pii_find_element(const struct pii_rule *rule, struct view text, size_t at,
		      struct pii_seen *seen, struct regex_span *span)
{
	static const char cdata[] = "![CDATA[";
	(void)rule;
	size_t name = at + 1 + (pii_at(text, at + 1) == '\\'), end = at;
	size_t name_end = name + 1 + pii_run(text, name + 1, PII_QUERY, NAME_MAX_LEN);
	if (text.at[name] != '/' || pii_at(text, name_end) != '>' || !is_secret(text, name_end) ||
	    !pii_spend(&seen->runs, EFFORT_VALUE))
		return false;
	const uint8_t *open = memrchr(text.at, '<', at);
	if (!open)
		return false;
	const uint8_t *tag = memchr(open, '>', (size_t)(text.at + at - open));
	size_t start = tag ? (size_t)(tag - text.at) + 1 : at;
	if (PII_WORD_AT(text, (size_t)(open - text.at) + 1, "![CDATA[")) {
		start = (size_t)(open - text.at) + sizeof cdata;
		end -= PII_WORD_BEFORE(text, at, "]]>") ? 3 : 0;
	}
	return pii_hit(span, start, end);
}
