/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"
#include "processors/pii_find.h"
#include "profile/wire.h"

/* What stands behind a name that says it is secret, in URLs, headers, command lines and JSON. */

/* scheme://user:password@host, at the ://, whose slashes may be escaped for JSON */
bool pii_find_userinfo(const struct pii_rule *rule, struct view text, size_t at,
		       struct pii_seen *seen, struct regex_span *span)
{
	size_t start = at + rule->literal_len;
	size_t len = pii_run_end(&seen->runs, text, start, PII_AUTHORITY) - start;
	if (len < sizeof ":p@h" - 1)
		return false;
	/* A host follows: the last byte is none of the @ that ends the password. */
	const uint8_t *user = text.at + start, *end = memrchr(user, '@', len - 1);
	const uint8_t *colon = end ? memchr(user, ':', (size_t)(end - user)) : NULL;
	return colon && end > colon + 1 && pii_hit(span, start, start + (size_t)(end - user));
}

/* "user:password": text with a colon. */
#define BASIC_MAX 4096

static bool is_user_and_password(struct view token)
{
	uint8_t plain[BASE64_SIZE(BASIC_MAX + 2)];
	size_t len = base64_decode_at(plain, token);
	for (size_t i = 0; i < len; i++)
		if (plain[i] < ' ' || plain[i] == 0x7f)
			return false;
	return len && memchr(plain, ':', len) && wire_utf8_slow(plain, len);
}

/* A blank, as such or escaped; its length. */
static size_t blank_at(struct view text, size_t at)
{
	uint8_t byte = pii_at(text, at);
	return byte == ' ' || byte == '\t' ? 1 : PII_WORD_AT(text, at, "%20") ? 3 : 0;
}

/* At the word "Basic". */
bool pii_find_basic(const struct pii_rule *rule, struct view text, size_t at, struct pii_seen *seen,
		    struct regex_span *span)
{
	(void)rule, (void)seen;
	size_t start = at + 5, gap = 1;
	if (!PII_LETTERS_AT(text, at, "basic"))
		return false;
	if (pii_at(text, start) == '+') /* a blank in a form */
		start++;
	else
		for (int i = 0; i < 8 && (gap = blank_at(text, start)); i++)
			start += gap;
	size_t len = pii_run(text, start, PII_BASE64, BASIC_MAX);
	if (start == at + 5 || len < 8)
		return false;
	for (int i = 0; i < 2 && pii_at(text, start + len) == '='; i++)
		len++;
	return is_user_and_password((struct view){ text.at + start, len }) &&
	       pii_hit(span, start, start + len);
}

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

/* Where what a quotation mark began ends: at the same mark, escaped as the first is; or with the
 * string. */
static size_t quoted_end(struct view text, size_t at, uint8_t mark, bool escaped)
{
	for (; at < text.len; at++) {
		if (escaped && text.at[at] == '\\' && pii_at(text, at + 1) == mark)
			return at;
		if (!escaped && text.at[at] == mark)
			return at;
		if (!escaped && text.at[at] == '\\' && at + 1 < text.len)
			at++;
	}
	return text.len;
}

/* A quotation mark, or one behind a backslash; its length. */
static size_t quote_at(struct view text, size_t at)
{
	size_t escape = pii_at(text, at) == '\\';
	uint8_t mark = pii_at(text, at + escape);
	return mark == '"' || mark == '\'' ? 1 + escape : 0;
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

static bool quoted_at(struct view text, size_t at, struct regex_span *span)
{
	size_t quote = quote_at(text, at), start = at + quote;
	return quote &&
	       value_between(text, start, quoted_end(text, start, text.at[start - 1], quote == 2),
			     span);
}

/* Where the name that ends here begins. */
#define NAME_MAX_LEN 64

static size_t name_start(struct view text, size_t end)
{
	return end - pii_run_back(text, end, PII_BASE64URL | PII_DOT, NAME_MAX_LEN);
}

/* Is there a dash in it? */
static bool has_dash(struct view text, size_t end)
{
	size_t start = end < NAME_MAX_LEN ? 0 : end - NAME_MAX_LEN;
	while (end > start && pii_is(text.at[end - 1], PII_BASE64URL | PII_DOT))
		if (text.at[--end] == '-')
			return true;
	return false;
}

static bool value_at(struct pii_seen *seen, struct view text, size_t at, struct regex_span *span)
{
	if (quote_at(text, at))
		return quoted_at(text, at, span);
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
	size_t name = name_start(text, name_end);
	if (pii_at(text, name - 1) != ';')
		return true;
	while (end < span->end && text.at[end] != '/' && text.at[end] != '?' && text.at[end] != '#')
		end++;
	if (end < span->end && is_path_parameter(text, name))
		span->end = end;
	return span->end > start;
}

/* name=value. "operator==", "token=>" and "token=(" are code, "PWD=/" is a directory. */
bool pii_find_assigned(const struct pii_rule *rule, struct view text, size_t at,
		       struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	uint8_t first = pii_at(text, at + 1);
	if (!is_secret(text, at))
		return false;
	if (first == '>') /* Ruby's name=>"value" */
		return quoted_at(text, at + 2 + blanks_at(text, at + 2), span);
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
	size_t name = at, start = at + 3, end = start;
	while (name > 1 && text.at[name] == '5' && text.at[name - 1] == '2')
		name -= 2;
	if (text.at[name] != '%' || !is_secret(text, name))
		return false;
	size_t max = pii_run_end(&seen->runs, text, start, PII_SECRET);
	for (const uint8_t *mark; end < max && !is_escaped_and(text, end);) {
		mark = memchr(text.at + end + 1, '%', max - end - 1);
		end = mark ? (size_t)(mark - text.at) : max;
	}
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
	(void)rule, (void)seen;
	size_t name = at - quote_before(text, 0, at), value = mark_end(text, at);
	return value && is_secret(text, name) &&
	       quoted_at(text, value + blanks_at(text, value), span);
}

/* --name value, at the blank. */
bool pii_find_option_value(const struct pii_rule *rule, struct view text, size_t at,
			   struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	size_t value = at + blanks_at(text, at);
	if (pii_at(text, value) == '-' || pii_at(text, value) == ' ' || !is_secret(text, at))
		return false;
	size_t name = name_start(text, at);
	if (text.at[name] != '-' || (name && !strchr(" \t\n\"'([{=,;>", text.at[name - 1])))
		return false;
	return value_at(seen, text, value, span);
}

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
	return number_count(text, at, at + len, min) == min && pii_hit(span, at, at + len);
}

/* A token as generators draw them: a word of sixteen bytes or more with digits in two places. A
 * type ("token: Curve25519PrivateKey") has them in one, or is a path with dots. */
static bool drawn_at(struct pii_seen *seen, struct view text, size_t at, struct regex_span *span)
{
	size_t end = pii_run_end(&seen->runs, text, at, PII_BASE64URL | PII_BASE64 | PII_TILDE);
	if (end - at < 16 || !(pii_is(text.at[at], PII_BASE64URL) || text.at[at] == '+'))
		return false;
	bool drawn = number_count(text, at, end, 2) == 2;
	for (int i = 0; i < 2 && pii_at(text, end) == '='; i++)
		end++;
	uint8_t back = pii_at(text, end);
	bool ends = !back || strchr(" \t\r\n,;\"')]}&", back);
	return drawn && ends && pii_hit(span, at, end);
}

/* A value that looks like a secret, of the name that ends at `name`. */
static bool secret_at(struct pii_seen *seen, struct view text, size_t name, size_t value,
		      struct regex_span *span)
{
	if (PII_LETTERS_BEFORE(text, name, "password") ||
	    PII_LETTERS_BEFORE(text, name, "passwd") ||
	    PII_LETTERS_BEFORE(text, name, "passphrase"))
		return password_at(seen, text, value, span);
	return drawn_at(seen, text, value, span);
}

/* X-Api-Key: value, at the colon. The dash sets a header apart from a parameter of a function;
 * without it, the value has to look like a secret. */
bool pii_find_header_value(const struct pii_rule *rule, struct view text, size_t at,
			   struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	if (!is_secret(text, at))
		return false;
	size_t value = at + 1 + blanks_at(text, at + 1);
	if (value >= text.len || text.at[value] == ' ')
		return false;
	if (has_dash(text, at))
		return value_at(seen, text, value, span);
	return secret_at(seen, text, at, value, span);
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
	if (quote_at(text, value))
		return quoted_at(text, value, span);
	return text.at[at + 1] == ' ' && secret_at(seen, text, name, value, span);
}
