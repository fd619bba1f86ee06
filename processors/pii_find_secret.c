/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_find.h"
#include "processors/pii_text.h"

/* E-mail addresses, tokens, and what stands in a URL's query. */

/* "v1.2", "1.2-rc": what stands behind the @ of a module or a package; "2x.png": of a picture;
 * "0x1234.bar": of a symbol. */
static bool is_module_version(struct view domain)
{
	size_t i = pii_byte(domain, 0) == 'v', digits = pii_run(domain, i, PII_DIGIT, SIZE_MAX);
	i += digits;
	if (!digits)
		return false;
	if (pii_byte(domain, i) == '.')
		return pii_is(pii_byte(domain, i + 1), PII_DIGIT);
	size_t hex = pii_run(domain, i + 1, PII_HEX, SIZE_MAX);
	return i == 1 && pii_byte(domain, i) == 'x' && pii_byte(domain, i + 1 + hex) == '.';
}

/* "user@1000.service" is a unit of systemd. */
static bool is_unit(struct view domain)
{
	size_t len = pii_run_back(domain, domain.len, PII_LOWER, 10), at = domain.len - len;
	if (pii_byte(domain, at - 1) != '.')
		return false;
	switch (len) {
	case 5:
		return PII_WORD_AT(domain, at, "slice") || PII_WORD_AT(domain, at, "scope") ||
		       PII_WORD_AT(domain, at, "timer") || PII_WORD_AT(domain, at, "mount");
	case 6:
		return PII_WORD_AT(domain, at, "socket") || PII_WORD_AT(domain, at, "target") ||
		       PII_WORD_AT(domain, at, "device");
	case 7:
		return PII_WORD_AT(domain, at, "service");
	case 9:
		return PII_WORD_AT(domain, at, "automount");
	default:
		return false;
	}
}

/* The end of the longest domain: up to eight labels with a dot each, then two letters or more; 0:
 * none. */
static size_t domain_end(struct view text, size_t at)
{
	size_t end = 0;
	for (int labels = 0;; labels++) {
		size_t letters = pii_run(text, at, PII_LETTER | PII_HIGH, 24);
		if (labels && letters >= 2)
			end = at + letters;
		if (labels == 8 || pii_is(pii_byte(text, at), PII_DASH))
			return end;
		size_t len = letters + pii_run(text, at + letters, PII_ALNUM | PII_DASH | PII_HIGH,
					       63 - letters);
		if (!len || pii_byte(text, at + len) != '.')
			return end;
		at += len + 1;
	}
}

/* Of a Java object: with a digit and a letter. */
static bool is_hash(struct view domain, size_t len)
{
	return len >= 5 && len <= 8 && pii_run(domain, 0, PII_HEX, len) == len &&
	       pii_run(domain, 0, PII_DIGIT, len) < len && pii_run(domain, 0, PII_LOWER, len) < len;
}

/* "com.acme.Session@6d06d69c.close": a Java object, by its class and its hash, and a method. */
static bool is_object(struct view local, struct view domain)
{
	size_t hash = pii_run(domain, 0, PII_DIGIT | PII_LOWER, 9), behind = hash + 1;
	if (!is_hash(domain, hash) || pii_byte(domain, hash) != '.' ||
	    memchr(domain.at + behind, '.', domain.len - behind))
		return false;
	size_t class = local.len - pii_run_back(local, local.len, PII_ALNUM | PII_UNDERSCORE, 64);
	return class && local.at[class - 1] == '.' && pii_is(local.at[class], PII_UPPER) &&
	       pii_is(local.at[0], PII_LOWER);
}

/* "Base.@node.inner": a macro in a module of Julia. Some old addresses end with a dot too, at hosts
 * of three labels. */
static bool is_macro(struct view local, struct view domain)
{
	if (local.at[local.len - 1] != '.' || !pii_is(local.at[0], PII_UPPER))
		return false;
	const uint8_t *dot = memchr(domain.at, '.', domain.len);
	return dot && !memchr(dot + 1, '.', (size_t)(domain.at + domain.len - dot) - 1);
}

/* Does the local part end scheme://user:password, which url_credentials matches? The nearest slash,
 * if there is one, ends the scheme. */
#define USERINFO_MAX 128

static bool ends_userinfo(struct view text, size_t local, size_t at)
{
	if (!local || text.at[local - 1] == '@')
		return false;
	size_t window = at < USERINFO_MAX + 3 ? at : USERINFO_MAX + 3;
	const uint8_t *slash = memrchr(text.at + at - window, '/', window);
	size_t start = slash ? (size_t)(slash - text.at) + 1 : 0;
	if (!slash || !PII_WORD_BEFORE(text, start, "://") || start == at ||
	    !memchr(slash + 1, ':', at - start - 1))
		return false;
	while (start < at && pii_is(text.at[start], PII_URL) && text.at[start] != '\\' &&
	       text.at[start] != '#' && text.at[start] != '@')
		start++;
	return start == at;
}

static bool email_at(struct view text, size_t at, size_t separator, size_t end,
		     struct regex_span *span)
{
	size_t before = end ? pii_run_back(text, at, PII_LOCAL, 64) : 0, start = at + separator;
	if (!before)
		return false;
	struct view local = { text.at + at - before, before };
	struct view domain = { text.at + start, end - start };
	if (is_module_version(domain) || is_unit(domain) || is_object(local, domain) ||
	    is_macro(local, domain))
		return false;
	return !(separator == 1 && ends_userinfo(text, at - before, at)) &&
	       pii_hit(span, at - before, end);
}

/* The rule's literal, or @, stands between the parts. */
bool pii_find_email(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		    struct regex_span *span)
{
	(void)from;
	size_t separator = rule->literal ? strlen(rule->literal) : 1;
	return email_at(text, at, separator, domain_end(text, at + separator), span);
}

/* In full-width characters, the dots too. The domain ends where the next address's begins. */
bool pii_find_email_wide(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			 struct regex_span *span)
{
	(void)from;
	size_t separator = strlen(rule->literal), start = at + separator, end = start;
	bool dot = false;
	while (pii_is(pii_byte(text, end), PII_ALNUM | PII_DASH | PII_DOT | PII_HIGH) &&
	       !pii_has_at(text, end, rule->literal, separator)) {
		dot = dot || (end > start + 3 && PII_WORD_AT(text, end - 3, "\xef\xbc\x8e"));
		end++;
	}
	struct view domain = { text.at, end };
	return email_at(text, at, separator, dot ? end : domain_end(domain, start), span);
}

/* Inside the header. What is glued to its front goes with it; so do the parts that follow. Without
 * a signature, the second part must begin as JSON does. */
bool pii_find_jwt(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		  struct regex_span *span)
{
	(void)rule;
	size_t header = at + pii_run(text, at, PII_BASE64URL, SIZE_MAX);
	*from = header;
	if (pii_byte(text, header) != '.')
		return false;
	size_t end = header + 1 + pii_run(text, header + 1, PII_BASE64URL, SIZE_MAX);
	if (pii_byte(text, end) == '.')
		end += pii_run(text, end, PII_BASE64URL | PII_DOT, SIZE_MAX);
	else if (!PII_WORD_AT(text, header + 1, "eyJ"))
		return false;
	return pii_hit(span, at - pii_run_back(text, at, PII_BASE64URL, SIZE_MAX), end);
}

/* Between "bearer" and its token: the end, if one stands there. "Bearer::f" is a name. */
static size_t bearer_gap(struct view text, size_t at)
{
	uint8_t byte = pii_byte(text, at);
	if (PII_WORD_AT(text, at, "%20"))
		return at + 3;
	if (byte == ':' && pii_byte(text, at + 1) == ':')
		return at;
	return at < text.len && strchr(" \t:=+", byte) && byte ? at + 1 : at;
}

static bool is_bearer(struct view text, size_t at)
{
	static const char word[] = "bearer";
	for (size_t i = 0; i < sizeof word - 1; i++)
		if ((pii_byte(text, at + i) | 0x20) != word[i])
			return false;
	return true;
}

/* "bearer authentication" is prose: a token is long or has a digit. = and + may be of the gap or
 * the token. */
bool pii_find_bearer(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		     struct regex_span *span)
{
	(void)rule, (void)from;
	if (!is_bearer(text, at))
		return false;
	size_t first = bearer_gap(text, at + 6), start = first;
	if (first == at + 6)
		return false;
	for (int i = 1; i < 8; i++)
		start = bearer_gap(text, start);
	size_t len = pii_run(text, start, PII_TOKEN, SIZE_MAX);
	for (; len < 8 && start > first && (text.at[start - 1] == '=' || text.at[start - 1] == '+');
	     start--)
		len++;
	if (len < 8)
		return false;
	bool long_enough = len >= 16;
	for (size_t i = start; i < start + len && !long_enough; i++)
		long_enough = pii_is(text.at[i], PII_DIGIT);
	return long_enough && pii_hit(span, start, start + len);
}

/* From the name behind the ? on. */
bool pii_find_query(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		    struct regex_span *span)
{
	(void)rule, (void)from;
	size_t name = pii_run(text, at + 1, PII_QUERY_NAME, 64), value = at + 1 + name + 1;
	if (!name || pii_byte(text, value - 1) != '=')
		return false;
	size_t len = pii_run(text, value, PII_QUERY, SIZE_MAX);
	return len && pii_hit(span, at + 1, value + len);
}

/* "index.js?abcd": a file of a bundle, and the digest of its content. */
static bool is_bundle(struct view text, size_t at, size_t query, size_t len)
{
	static const char *const files[] = { ".js",  ".mjs", ".cjs", ".jsx",   ".ts",
					     ".tsx", ".css", ".vue", ".svelte" };
	if (PII_WORD_BEFORE(text, at, "webpack") || PII_WORD_BEFORE(text, at, "webpack-internal"))
		return true;
	if (len > 32 || pii_run(text, query + 1, PII_ALNUM, len) < len)
		return false;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		size_t name = strlen(files[i]);
		if (query >= name && pii_has_at(text, query - name, files[i], name))
			return true;
	}
	return false;
}

bool pii_find_url(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		  struct regex_span *span)
{
	(void)rule;
	size_t path = pii_run(text, at + 3, PII_URL, SIZE_MAX), query = at + 3 + path;
	if (!path)
		return false;
	*from = query;
	if (pii_byte(text, query) != '?')
		return false;
	size_t len = pii_run(text, query + 1, PII_QUERY, SIZE_MAX);
	return len && !is_bundle(text, at, query, len) && pii_hit(span, query + 1, query + 1 + len);
}
