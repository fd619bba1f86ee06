/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"
#include "processors/pii_find.h"
#include "profile/wire.h"

/* What logs in: users with their passwords, and what stands behind a scheme of HTTP. */

/* Is what ends here the scheme of a database or a queue? */
static bool is_database(struct view text, size_t end)
{
	static const char *const schemes[PII_WORD_MAX + 1] = {
		[4] = "amqp",
		[5] = "amqps"
		      "mysql"
		      "redis"
		      "mssql",
		[6] = "rediss",
		[7] = "mongodb"
		      "mariadb",
		[8] = "postgres",
		[9] = "sqlserver",
		[10] = "postgresql"
		       "clickhouse",
		[11] = "cockroachdb"
		       "mongodb+srv",
	};
	size_t len = pii_run_back(text, end, PII_LOWER, 12);
	if (pii_at(text, end - len - 1) == '+')
		len += 1 + pii_run_back(text, end - len - 1, PII_LOWER, 12);
	return pii_is_word((struct view){ text.at + end - len, len }, schemes);
}

/*
 * postgres://user:pa/ss#w@host: a slash, # or ? that is not escaped belongs to the password, if
 * what stands in front of it is no port. Pages and modules have an @ in their path, databases do
 * not.
 */
#define PASSWORD_MAX 128
#define EFFORT_DATABASE 150

static bool odd_userinfo(struct view text, size_t start, struct pii_seen *seen,
			 struct regex_span *span)
{
	size_t colon = start + pii_run(text, start, PII_BASE64URL | PII_DOT, 64),
	       password = colon + 1;
	size_t digits = pii_run(text, password, PII_DIGIT, 6);
	if (pii_at(text, colon) != ':' || !pii_is_at(text, password, PII_ALNUM) ||
	    (digits && strchr(",/?#", pii_at(text, password + digits))))
		return false;
	size_t end = pii_run_end(&seen->runs, text, password, PII_SECRET);
	size_t len = end - password < PASSWORD_MAX ? end - password : PASSWORD_MAX;
	const uint8_t *mark = len ? memrchr(text.at + password, '@', len - 1) : NULL;
	return mark && pii_hit(span, start, (size_t)(mark - text.at));
}

/* scheme://user:password@host, at the ://, whose slashes may be escaped for JSON */
bool pii_find_userinfo(const struct pii_rule *rule, struct view text, size_t at,
		       struct pii_seen *seen, struct regex_span *span)
{
	size_t start = at + rule->literal_len;
	size_t len = pii_run_end(&seen->runs, text, start, PII_AUTHORITY) - start;
	if (len < sizeof ":p" - 1)
		return false;
	/* A host follows: the last byte is none of the @ that ends the password. */
	const uint8_t *user = text.at + start, *end = memrchr(user, '@', len - 1);
	const uint8_t *colon = end ? memchr(user, ':', (size_t)(end - user)) : NULL;
	if (colon && end > colon + 1)
		return pii_hit(span, start, start + (size_t)(end - user));
	return !end && pii_spend(&seen->runs, EFFORT_DATABASE) && is_database(text, at) &&
	       odd_userinfo(text, start, seen, span);
}

/* user/password, as tools of Oracle have it. */
static bool slashed_at(struct pii_seen *seen, struct view text, size_t at, struct regex_span *span)
{
	size_t slash = at + pii_run(text, at, PII_BASE64URL | PII_DOT, 64);
	if (!pii_is_at(text, at, PII_ALNUM) || pii_at(text, slash) != '/')
		return false;
	size_t end = pii_run_end(&seen->runs, text, slash + 1, PII_SECRET);
	const uint8_t *mark = memchr(text.at + slash, '@', end - slash);
	size_t last = mark ? (size_t)(mark - text.at) : end;
	return last > slash + 1 && pii_hit(span, at, last);
}

/* "sqlplus -s user/password@host", at the word. */
bool pii_find_sqlplus(const struct pii_rule *rule, struct view text, size_t at,
		      struct pii_seen *seen, struct regex_span *span)
{
	size_t start = at + rule->literal_len;
	for (int i = 0; i < 4 && pii_at(text, start) == '-'; i++) {
		start += 1 + pii_run(text, start + 1, PII_LETTER, 8);
		if (pii_at(text, start++) != ' ')
			return false;
	}
	start += pii_quote_at(text, start);
	return slashed_at(seen, text, start, span);
}

/* "jdbc:oracle:thin:user/password@host", behind the colon. */
bool pii_find_oracle(const struct pii_rule *rule, struct view text, size_t at,
		     struct pii_seen *seen, struct regex_span *span)
{
	return slashed_at(seen, text, at + rule->literal_len, span) &&
	       pii_at(text, span->end) == '@';
}

/* "user:password": text with a colon. */
#define BASIC_MAX 4096

static bool is_user_and_password(struct view token)
{
	uint8_t plain[BASE64_SIZE(BASIC_MAX + 2)], high = 0;
	size_t len = base64_decode_at(plain, token);
	for (size_t i = 0; i < len; high |= plain[i++])
		if (plain[i] < ' ' || plain[i] == 0x7f)
			return false;
	return len && memchr(plain, ':', len) && (high < 0x80 || wire_utf8_slow(plain, len));
}

/* A blank, as such or escaped; its length. */
static size_t blank_at(struct view text, size_t at)
{
	uint8_t byte = pii_at(text, at);
	return byte == ' ' || byte == '\t' ? 1 : PII_WORD_AT(text, at, "%20") ? 3 : 0;
}

#define EFFORT_GAP_BYTE 25
#define EFFORT_BASIC 200
#define EFFORT_BASE64 18 /* a character */

/* At the word "Basic". */
bool pii_find_basic(const struct pii_rule *rule, struct view text, size_t at, struct pii_seen *seen,
		    struct regex_span *span)
{
	(void)rule;
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
	return pii_spend(&seen->runs, EFFORT_BASIC + EFFORT_BASE64 * len) &&
	       is_user_and_password((struct view){ text.at + start, len }) &&
	       pii_hit(span, start, start + len);
}

/* Between "bearer" and its token: the end, if one stands there. "Bearer::f" is a name. */
static size_t bearer_gap(struct view text, size_t at)
{
	switch (pii_at(text, at)) {
	case ' ':
	case '\t':
	case '=':
	case '+':
		return at + 1;
	case ':':
		return at + (pii_at(text, at + 1) != ':');
	case '%':
		return at + (PII_WORD_AT(text, at, "%20") ? 3 : 0);
	default:
		return at;
	}
}

static bool is_blank_before(struct view text, size_t at)
{
	return text.at[at - 1] == ' ' || text.at[at - 1] == '\t' ||
	       PII_WORD_BEFORE(text, at, "%20");
}

/* A character of a token that is percent-encoded: + / = ~ */
static bool is_escaped_token(struct view text, size_t at)
{
	uint8_t first = pii_at(text, at + 1), second = pii_at(text, at + 2) | 0x20;
	return pii_at(text, at) == '%' &&
	       ((first == '2' && (second == 'b' || second == 'f')) ||
		(first == '3' && second == 'd') || (first == '7' && second == 'e'));
}

/* A token whose gap began at `first`: = and + may be of either. "bearer authentication" is prose: a
 * token is long or has a digit. */
static bool token_at(struct pii_seen *seen, struct view text, size_t first, size_t start,
		     struct regex_span *span)
{
	size_t len = pii_run_end(&seen->runs, text, start, PII_TOKEN) - start;
	for (; len < 8 && start > first && (text.at[start - 1] == '=' || text.at[start - 1] == '+');
	     start--)
		len++;
	if (len < 8)
		return false;
	if (start > first && text.at[start - 1] == '+' && is_blank_before(text, start - 1))
		start--, len++; /* as base64 has it: the blank has been read */
	while (is_escaped_token(text, start + len))
		len = pii_run_end(&seen->runs, text, start + len + 3, PII_TOKEN) - start;
	bool long_enough = len >= 16;
	for (size_t i = start; i < start + len && !long_enough; i++)
		long_enough = pii_is(text.at[i], PII_DIGIT);
	return long_enough && pii_hit(span, start, start + len);
}

bool pii_find_bearer(const struct pii_rule *rule, struct view text, size_t at,
		     struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	if (!PII_LETTERS_AT(text, at, "bearer"))
		return false;
	size_t first = bearer_gap(text, at + 6), start = first;
	if (first == at + 6)
		return false;
	for (size_t i = 1, next; i < 8 && (next = bearer_gap(text, start)) > start; i++)
		start = next;
	pii_spend(&seen->runs, EFFORT_GAP_BYTE * (start - first));
	return token_at(seen, text, first, start, span);
}

/*
 * What stands between Authorization and its scheme or token: a mark, and perhaps blanks, quotation
 * marks and a bracket around it. Where it ends; 0: the word is a name ("authorization::Layer").
 */
static size_t authorization_gap(struct view text, size_t at)
{
	at += pii_quote_at(text, at);
	for (int i = 0; i < 4 && pii_at(text, at) == ' '; i++)
		at++;
	if (PII_WORD_AT(text, at, "%3A") || PII_WORD_AT(text, at, "%3a"))
		at += 3;
	else if (pii_at(text, at) == '=' && pii_at(text, at + 1) == '>')
		at += 2;
	else if (pii_at(text, at) == ':' || pii_at(text, at) == '=')
		at++;
	else
		return 0;
	for (size_t i = 0, gap; i < 4 && (gap = blank_at(text, at)); i++)
		at += gap;
	at += pii_at(text, at) == '[';
	return at + pii_quote_at(text, at);
}

#define SCHEME_MAX 32

/* Is the word in front of `end` a scheme whose value is a secret of any form: Token, ApiKey? */
static bool is_key_scheme(struct view text, size_t end)
{
	return PII_LETTERS_BEFORE(text, end, "token") || PII_LETTERS_BEFORE(text, end, "key");
}

/* "Authorization: Token x" and "Authorization: x", at the word. Of another scheme, or without one,
 * the token has to look drawn at random. Bearer and Basic are searched for by themselves. */
bool pii_find_authorization(const struct pii_rule *rule, struct view text, size_t at,
			    struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	if (!PII_LETTERS_AT(text, at, "authorization"))
		return false;
	size_t scheme = authorization_gap(text, at + sizeof "authorization" - 1);
	if (!scheme || pii_hit(span, scheme, pii_drawn_end(seen, text, scheme)))
		return scheme;
	size_t end = scheme + pii_run(text, scheme, PII_ALNUM | PII_DASH, SCHEME_MAX), start = end;
	for (size_t i = 0, blank; i < 4 && (blank = blank_at(text, start)); i++)
		start += blank;
	if (start == end || PII_LETTERS_AT(text, scheme, "bearer") ||
	    PII_LETTERS_AT(text, scheme, "basic"))
		return false;
	if (is_key_scheme(text, end))
		return token_at(seen, text, start, start, span);
	return pii_hit(span, start, pii_drawn_end(seen, text, start));
}

/* What may stand between an option and its value, also in arguments as JSON has them. */
static bool is_option_gap(uint8_t byte)
{
	return byte == ' ' || byte == '=' || byte == ',' || byte == '"' || byte == '\'' ||
	       byte == '\\';
}

static bool is_option_front(uint8_t byte)
{
	return byte == ' ' || byte == '"' || byte == '\'' || byte == ',' || byte == '[' ||
	       byte == '\t';
}

/* Is the option that begins at the dash one of curl's, -u, -U, --user or --proxy-user? Where its
 * name ends; 0: it is another. */
static size_t user_option(struct view text, size_t dash)
{
	uint8_t front = pii_at(text, dash - 1);
	if (PII_WORD_AT(text, dash, "-user")) {
		bool option = front == '-' || PII_WORD_BEFORE(text, dash, "--proxy");
		return option && pii_at(text, dash + 5) != '-' ? dash + 5 : 0;
	}
	return is_option_front(front) ? dash + 2 : 0;
}

/* Does the word stand in front of the option? It did if a match ended at seen->from. Else there was
 * an option without it, or nothing, and it is not searched for in front of that again. */
static bool is_of_curl(struct pii_seen *seen, struct view text, size_t dash)
{
	size_t from = seen->from;
	if ((from && text.at[from] != '-') || memmem(text.at + from, dash - from, "curl", 4))
		return true;
	seen->from = dash;
	return false;
}

#define EFFORT_USER 150

/* A user and a password behind an option of curl that ends at `start`. */
static bool user_at(struct pii_seen *seen, struct view text, size_t dash, size_t start,
		    struct regex_span *span)
{
	for (int i = 0; i < 6 && is_option_gap(pii_at(text, start)); i++)
		start++;
	bool quoted = text.at[start - 1] == '"' || text.at[start - 1] == '\'';
	size_t end = quoted ? pii_quoted_end(seen, text, start)
			    : pii_run_end(&seen->runs, text, start, PII_SECRET);
	pii_spend(&seen->runs, EFFORT_USER);
	return end > start + 1 && memchr(text.at + start, ':', end - start) &&
	       is_of_curl(seen, text, dash) && pii_hit(span, start, end);
}

/* "curl -u user:password", at the dash in front of the u: the user too. */
bool pii_find_curl_user(const struct pii_rule *rule, struct view text, size_t at,
			struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	size_t end = user_option(text, at);
	return end && user_at(seen, text, at, end, span);
}

/* "curl -sku user:password", at the u behind other options, which have no value. */
bool pii_find_curl_options(const struct pii_rule *rule, struct view text, size_t at,
			   struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	size_t dash = at - 1;
	while (at - dash < 8 && memchr("BGIJLNORSafgijklnpqsv", pii_at(text, dash), 21))
		dash--;
	return pii_at(text, dash) == '-' && is_option_front(pii_at(text, dash - 1)) &&
	       user_at(seen, text, dash, at + 1, span);
}
