/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_find.h"
#include "processors/pii_text.h"

/* E-mail addresses, tokens, keys, and what stands in a URL's query. */

/* "v1.2", "1.2-rc": what stands behind the @ of a module or a package. */
static bool is_version(struct view domain)
{
	size_t i = pii_byte(domain, 0) == 'v', digits = pii_run(domain, i, PII_DIGIT, SIZE_MAX);
	i += digits;
	return digits && pii_byte(domain, i) == '.' && pii_is(pii_byte(domain, i + 1), PII_DIGIT);
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

bool pii_find_email(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		    struct regex_span *span)
{
	(void)rule, (void)from;
	size_t before = pii_run_back(text, at, PII_LOCAL, 64), end = domain_end(text, at + 1);
	if (!before || !end)
		return false;
	struct view domain = { text.at + at + 1, end - at - 1 };
	return !is_version(domain) && !is_unit(domain) && pii_hit(span, at - before, end);
}

/* Inside the header. What is glued to its front goes with it; so do the parts that follow. */
bool pii_find_jwt(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		  struct regex_span *span)
{
	(void)rule;
	size_t header = at + pii_run(text, at, PII_BASE64URL, SIZE_MAX);
	*from = header;
	if (pii_byte(text, header) != '.')
		return false;
	size_t end = header + 1 + pii_run(text, header + 1, PII_BASE64URL, SIZE_MAX);
	if (pii_byte(text, end) != '.')
		return false;
	end += pii_run(text, end, PII_BASE64URL | PII_DOT, SIZE_MAX);
	return pii_hit(span, at - pii_run_back(text, at, PII_BASE64URL, SIZE_MAX), end);
}

/* Between "bearer" and its token: the end, if one stands there. */
static size_t bearer_gap(struct view text, size_t at)
{
	uint8_t byte = pii_byte(text, at);
	if (PII_WORD_AT(text, at, "%20"))
		return at + 3;
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
	return len && pii_hit(span, query + 1, query + 1 + len);
}

static bool glued(struct view text, size_t at)
{
	return at && pii_is(text.at[at - 1], PII_ALNUM);
}

/* A run of at least min bytes at `tail`. */
static bool run_from(struct view text, size_t start, size_t tail, uint32_t kinds, size_t min,
		     struct regex_span *span)
{
	size_t len = pii_run(text, tail, kinds, SIZE_MAX);
	return len >= min && pii_hit(span, start, tail + len);
}

bool pii_find_run(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		  struct regex_span *span)
{
	(void)from;
	return run_from(text, at, at + strlen(rule->literal), rule->kinds, rule->min, span);
}

bool pii_find_key(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		  struct regex_span *span)
{
	return !glued(text, at) && pii_find_run(rule, text, at, from, span);
}

static bool is_aws_prefix(struct view text, size_t at)
{
	static const char prefixes[][5] = { "AKIA", "ASIA", "AGPA", "AIDA", "AROA",
					    "AIPA", "ANPA", "ANVA", "ABIA", "ACCA" };
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (pii_has_at(text, at, prefixes[i], 4))
			return true;
	return PII_WORD_AT(text, at, "A3T");
}

/* A word of twenty capitals and digits. */
bool pii_find_key_aws(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		      struct regex_span *span)
{
	(void)rule, (void)from;
	return pii_run(text, at, PII_UPPER | PII_DIGIT, 21) == 20 && is_aws_prefix(text, at) &&
	       pii_hit(span, at, at + 20);
}

static bool one_of(struct view text, size_t at, const char *bytes)
{
	uint8_t byte = pii_byte(text, at);
	return byte && strchr(bytes, byte);
}

/* ghp_..., at the "gh" */
bool pii_find_key_github(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			 struct regex_span *span)
{
	(void)rule, (void)from;
	return pii_byte(text, at + 3) == '_' && one_of(text, at + 2, "opsur") && !glued(text, at) &&
	       run_from(text, at, at + 4, PII_ALNUM, 36, span);
}

/* sk_live_..., at the "k_" */
bool pii_find_key_stripe(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			 struct regex_span *span)
{
	(void)rule;
	return at > *from && (text.at[at - 1] == 's' || text.at[at - 1] == 'r') &&
	       !glued(text, at - 1) &&
	       (PII_WORD_AT(text, at + 2, "live_") || PII_WORD_AT(text, at + 2, "test_")) &&
	       run_from(text, at - 1, at + 7, PII_ALNUM, 20, span);
}

/* xoxb-..., at the "xox" */
bool pii_find_key_slack(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			struct regex_span *span)
{
	(void)rule, (void)from;
	return pii_byte(text, at + 4) == '-' && one_of(text, at + 3, "abeoprs") &&
	       !glued(text, at) && run_from(text, at, at + 5, PII_ALNUM | PII_DASH, 10, span);
}

/* sk-proj-..., at the "sk-" */
bool pii_find_key_openai(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			 struct regex_span *span)
{
	(void)rule, (void)from;
	size_t kind = PII_WORD_AT(text, at + 3, "ant-")       ? 4
		      : PII_WORD_AT(text, at + 3, "proj-")    ? 5
		      : PII_WORD_AT(text, at + 3, "svcacct-") ? 8
		      : PII_WORD_AT(text, at + 3, "admin-")   ? 6
							      : 0;
	return kind && !glued(text, at) &&
	       run_from(text, at, at + 3 + kind, PII_BASE64URL, 20, span);
}

bool pii_find_key_openai_old(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			     struct regex_span *span)
{
	(void)rule, (void)from;
	return !glued(text, at) && pii_run(text, at + 3, PII_ALNUM, 49) == 48 &&
	       pii_hit(span, at, at + 51);
}

/* SG., 22 bytes, a dot, 43 bytes */
bool pii_find_key_sendgrid(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			   struct regex_span *span)
{
	(void)rule, (void)from;
	return !glued(text, at) && pii_byte(text, at + 25) == '.' &&
	       pii_run(text, at + 3, PII_BASE64URL, 22) == 22 &&
	       pii_run(text, at + 26, PII_BASE64URL, 43) == 43 && pii_hit(span, at, at + 69);
}

/* AccountKey=..., at the "Key=" */
bool pii_find_key_azure(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			struct regex_span *span)
{
	(void)rule;
	size_t name = PII_WORD_BEFORE(text, at, "Account")  ? 7
		      : PII_WORD_BEFORE(text, at, "Access") ? 6
							    : 0;
	if (!name || at - name < *from || !run_from(text, at + 4, at + 4, PII_BASE64, 32, span))
		return false;
	for (int i = 0; i < 2 && pii_byte(text, span->end) == '='; i++)
		span->end++;
	return true;
}

/* A client secret, at its "Q~". */
bool pii_find_secret_azure(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			   struct regex_span *span)
{
	static const uint32_t kinds = PII_BASE64URL | PII_DOT | PII_TILDE;
	(void)rule;
	if (at < *from + 4 || !pii_is(text.at[at - 1], PII_DIGIT) ||
	    pii_run_back(text, at - 1, kinds, 3) < 3)
		return false;
	size_t len = pii_run(text, at + 2, kinds, 34);
	return len >= 31 && pii_hit(span, at - 4, at + 2 + len);
}

/* A private key in PEM takes all that follows. */
bool pii_find_pem(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		  struct regex_span *span)
{
	(void)from;
	size_t name = at + strlen(rule->literal);
	for (size_t i = name; i <= name + 32; i++) {
		if (PII_WORD_AT(text, i, "PRIVATE KEY"))
			return pii_hit(span, at, text.len);
		if (pii_byte(text, i) != ' ' && !pii_is(pii_byte(text, i), PII_UPPER))
			return false;
	}
	return false;
}
